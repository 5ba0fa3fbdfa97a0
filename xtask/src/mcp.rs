//! The MCP face against what others have made: the official conformance suite and the official Python SDK, both fetched once by
//! their ordinary installers into `target/mcp`.
//!
//! The suite cannot send a token, so that a small proxy puts one on every request. Its scenarios that want fixture tools of their
//! own are listed with their reason in `tests/mcp/expected.yaml`; a scenario that passes against that list fails the step too.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{cargo, must};

/// The revisions that are spoken, and how the Python SDK asks for them.
const REVISIONS: [(&str, &str); 2] = [("2025-11-25", "legacy"), ("2026-07-28", "auto")];

/// Ends a process that this one started.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        if self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

/// Builds the binary, serves the example, and runs both against it. Writes to `target/mcp` alone.
///
/// # Errors
/// What cannot be installed; a scenario or a call that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (source, place) = (root.join("tests/mcp"), root.join("target/mcp"));
    std::fs::create_dir_all(&place).context("cannot make target/mcp")?;
    install(&source, &place)?;
    must(cargo(root).args(["build", "--locked", "--package", "closer"]))?;
    let closer = root.join("target/debug/closer");
    for (revision, mode) in REVISIONS {
        let deployment = deployment(root, &place, revision)?;
        let (served, port) = serve(&closer, &deployment)?;
        let token = token(&closer, &deployment)?;
        let drive = |arguments: &[&str]| {
            must(Command::new(place.join("python/bin/python")).arg(source.join("drive.py")).args(arguments))
        };
        drive(&["stdio", mode, &closer.to_string_lossy(), &deployment.to_string_lossy()])?;
        drive(&["http", mode, &format!("http://127.0.0.1:{port}/mcp"), &token])?;
        let (proxy, through) = proxy(&source, port, &token)?;
        let mut suite = Command::new(node(&place));
        suite.arg(place.join("node_modules/.bin/conformance")).args(["server", "--url"]);
        suite.arg(format!("http://127.0.0.1:{through}/mcp")).args(["--requirements", revision]);
        suite.arg("--expected-failures").arg(source.join(format!("expected-{revision}.yaml")));
        must(suite.current_dir(&place))?;
        drop((proxy, served));
    }
    Ok(())
}

fn node(place: &Path) -> PathBuf {
    place.join("node_modules/node/bin/node")
}

fn install(source: &Path, place: &Path) -> Result<()> {
    for file in ["package.json", "package-lock.json"] {
        std::fs::copy(source.join(file), place.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    let mut npm = Command::new("npm");
    must(npm.args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(place))?;
    ensure!(node(place).exists(), "npm brought no Node: allow the install script of the package `node`");
    let python = place.join("python");
    if !python.join("bin/python").exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
    }
    let requirements = source.join("requirements.txt");
    must(Command::new(python.join("bin/pip")).args(["install", "--quiet", "--requirement"]).arg(requirements))
}

/// A fresh copy of the example that an agent works in.
fn deployment(root: &Path, place: &Path, revision: &str) -> Result<PathBuf> {
    let folder = place.join(format!("deployment-{revision}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove the last run's deployment")?;
    }
    std::fs::create_dir_all(&folder).context("cannot make the deployment's folder")?;
    let text = std::fs::read_to_string(root.join("examples/agent-at-work/closer.toml"))?;
    let http = "\n[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_minute = 60000\n";
    std::fs::write(folder.join("closer.toml"), format!("{text}{http}"))?;
    Ok(folder)
}

fn serve(closer: &Path, deployment: &Path) -> Result<(Started, u16)> {
    let mut command = Command::new(closer);
    command.args(["--json", "serve"]).arg(deployment).env("CLOSER_LOG", "error");
    let mut served = Started(command.stdout(Stdio::piped()).spawn().context("cannot serve the example")?);
    let line = first_line(&mut served)?;
    let port = line.split_once("\"address\":\"127.0.0.1:").and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok());
    Ok((served, port.with_context(|| format!("no address in {line}"))?))
}

fn first_line(started: &mut Started) -> Result<String> {
    let mut line = String::new();
    let stdout = started.0.stdout.take().context("a process without output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// A token for the agent, once work waits for it, so that whoever drives has something to answer.
fn token(closer: &Path, deployment: &Path) -> Result<String> {
    let ask = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(closer);
        command.arg("-C").arg(deployment).args(["--as", "agent.clerk"]).args(arguments);
        let output = command.stderr(Stdio::null()).output().context("cannot ask the example")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let until = Instant::now() + Duration::from_secs(30);
    while !ask(&["work", "list"])?.starts_with("work-") {
        if Instant::now() > until {
            bail!("no work came for the agent of the example");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    ask(&["token", "new", "--scope", "work"])
}

fn proxy(source: &Path, port: u16, token: &str) -> Result<(Started, u16)> {
    let mut command = Command::new("node");
    command.arg(source.join("with_token.cjs")).arg(port.to_string()).arg(token).stdout(Stdio::piped());
    let mut proxy = Started(command.spawn().context("cannot start the proxy")?);
    let through = first_line(&mut proxy)?.parse().context("the proxy told no port")?;
    Ok((proxy, through))
}
