//! The guides: every command in them is typed as it stands, in order, by one shell.

use crate::support::{CLOSER, has_openssl};
use std::path::Path;
use std::process::Command;

/// The lines between ```sh and ```.
fn commands(guide: &str) -> String {
    let (mut commands, mut inside) = (String::new(), false);
    for line in guide.lines() {
        match (line, inside) {
            ("```sh", false) => inside = true,
            ("```", true) => inside = false,
            (_, true) => {
                commands.push_str(line);
                commands.push('\n');
            }
            (_, false) => {}
        }
    }
    commands
}

#[test]
fn every_command_of_the_guides_does_what_it_is_there_for() {
    if !has_openssl() || Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: `openssl` or `curl` is not installed");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = |name: &str| std::fs::read_to_string(root.join("docs/guides").join(name)).unwrap();
    let (deployment, person) = (commands(&guide("deployment.md")), commands(&guide("person.md")));
    assert!(deployment.lines().count() > 20 && person.lines().count() >= 4);
    let port = crate::support::free_port().to_string();
    // The person's commands are typed while the service still runs; the last ones of the other guide stop it.
    let (before, stop) = deployment.split_once("closer -C mine backup copy").unwrap();
    let script = format!(
        "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{before}\n{person}\ncloser -C mine backup copy{stop}\ntest -d copy\n\
         closer -C mine restrictions | grep 'certificate.renew'\n"
    );
    let script = script.replace("8461", &port);
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), place.path().join("examples")).unwrap();
    let path = format!("{}:{}", Path::new(CLOSER).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(place.path()).env("PATH", path).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- out\n{out}\n--- err\n{err}");
    for told in
        ["\"status\":\"recorded\"", "\"status\":\"duplicate\"", "closer_packets_waiting", "it would restrict at once"]
    {
        assert!(out.contains(told), "no {told} in {out}");
    }
}

#[test]
fn every_command_of_the_gates_guide_does_what_it_is_there_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = commands(&std::fs::read_to_string(root.join("docs/guides/gate.md")).unwrap());
    assert!(guide.lines().count() >= 7, "{guide}");
    let place = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", Path::new(CLOSER).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let script = format!("set -euo pipefail\n{guide}");
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(place.path()).env("PATH", path).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- out\n{out}\n--- err\n{err}");
    for told in ["+       \"args\": [", "every question is answered"] {
        assert!(out.contains(told), "no {told} in {out}");
    }
}

/// The guide for agents outside, typed as it stands.
#[test]
fn every_command_of_the_agents_guide_does_what_it_is_there_for() {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("python3") || !has("curl") {
        eprintln!("skipped: `python3` or `curl` is not installed");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("docs/guides/agents.md")).unwrap();
    let typed = commands(&guide).replace("8462", &crate::support::free_port().to_string());
    assert!(typed.lines().count() > 20);
    let script = format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nset -m\n{typed}");
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), place.path().join("examples")).unwrap();
    let path = format!("{}:{}", Path::new(CLOSER).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("timeout");
    command.args(["120", "bash", "-c", &script]).current_dir(place.path()).env("PATH", path);
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- out\n{out}\n--- err\n{err}");
    for told in [
        "Does the notice say",
        "answered work-",
        "resolved",
        "open from 9 to 5",
        "\"permissionDecision\":\"allow\"",
        "\"permissionDecision\":\"deny\"",
    ] {
        assert!(out.contains(told), "no {told} in {out}");
    }
}
