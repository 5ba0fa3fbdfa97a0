//! The server as a process.

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn it_answers_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_notes-server"));
        let mut child = command.arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let asked = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_note","arguments":{"path":"a","content":"b"}}}"#;
        writeln!(child.stdin.take().unwrap(), "{asked}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("wrote 1 bytes"));
        assert_eq!(std::fs::read_to_string(folder.path().join("a")).unwrap(), "b");
        assert_eq!(std::fs::read_to_string(folder.path().join("calls.log")).unwrap(), "write_note a\n");
    }
}
