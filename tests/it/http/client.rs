//! A plain HTTP/1.1 client for one request a connection, and `closer serve` in the background.

use crate::support::{CLOSER, Place, free_port};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }
}

/// Sends these bytes and reads whatever comes until the connection ends.
pub(crate) fn raw(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The service may hang up before it has read everything.
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) fn parsed(text: &str) -> Reply {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply in {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    Reply { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
}

/// `closer serve` in the background, until it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
    pub(crate) announced: Value,
}

impl Served {
    /// Serves a deployment; `http` is put into its section `[http]`.
    pub(crate) fn start(place: &Place, http: &str) -> Self {
        Self::start_with(place, http, &[])
    }

    pub(crate) fn start_with(place: &Place, http: &str, environment: &[(&str, &str)]) -> Self {
        let port = free_port();
        let file = place.path().join("closer.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let before = text.split("\n# --- served\n").next().unwrap();
        let section = format!("{before}\n# --- served\n[http]\nlisten = \"127.0.0.1:{port}\"\n{http}\n");
        std::fs::write(&file, section).unwrap();
        let mut command = Command::new(CLOSER);
        command.args(["--json", "serve"]).arg(place.path()).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        Self { child, port, announced }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let _ = write!(head, "Host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        parsed(&raw(self.port, format!("{head}\r\n{body}").as_bytes()))
    }

    pub(crate) fn get(&self, path: &str, token: &str) -> Reply {
        self.ask("GET", path, &[("Authorization", &format!("Bearer {token}"))], "")
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {token}");
        self.ask("POST", path, &[("Authorization", &bearer), ("Content-Type", "application/json")], &body.to_string())
    }

    /// Asks it to end and gives its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code()
    }

    /// Kills it where it stands.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// A new token's secret.
pub(crate) fn token(place: &Place, identity: &str, scopes: &[&str]) -> String {
    let mut arguments = vec!["--json", "--as", identity, "token", "new"];
    arguments.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    place.call(&arguments).expect(0).json()["secret"].as_str().unwrap().to_owned()
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
