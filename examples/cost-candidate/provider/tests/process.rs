//! The provider as the process that a deployment starts. With a test of its own, cargo builds it for every test run.

#[cfg(test)]
mod process {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    fn provider() -> Command {
        Command::new(env!("CARGO_BIN_EXE_cost-provider"))
    }

    #[test]
    fn it_says_where_it_listens_and_keeps_its_state_in_the_file_named() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        let mut child = provider().arg(&state).args(["--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let port: u16 = line.trim().strip_prefix("listening on http://127.0.0.1:").unwrap().parse().unwrap();
        assert_ne!(port, 0);
        assert!(state.is_file());
    }

    #[test]
    fn what_it_does_not_know_is_told_with_its_usage() {
        let output = provider().args(["state.json", "--generous"]).output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("`--generous` is not known") && said.contains("usage:"), "{said}");
    }
}
