//! Starting, stopping, who comes in, and what is turned away before anything is asked.

use super::client::{Served, parsed, raw, token, until};
use crate::support::{Place, counting};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn the_first_start_says_where_it_listens_and_how_to_sign_in_and_a_signal_ends_it() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let link = served.announced["sign_in"].as_str().unwrap();
    assert!(link.starts_with(&format!("http://127.0.0.1:{}/signin?link=", served.port)), "{link}");
    served.ask("GET", "/healthz", &[], "").expect(200);
    served.ask("GET", "/readyz", &[], "").expect(200);
    assert_eq!(served.stop(), Some(0));
    place.call(&["verify"]).expect(0);
}

#[test]
fn only_a_token_that_holds_and_opens_it_comes_in() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    served.ask("GET", "/v1/obligations", &[], "").expect(401);
    served.get("/v1/obligations", "closer_0").expect(401);
    let made = place.call(&["--json", "token", "new", "--scope", "read"]).expect(0).json();
    let (id, secret) = (made["token_id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    served.get("/v1/obligations", secret).expect(200);
    let refused = served.post("/v1/restrictions", secret, &json!({ "reason": "enough" })).expect(403);
    assert_eq!(refused.json()["code"], "scope_missing");
    assert!(!place.call(&["token", "list"]).expect(0).stdout.contains(secret), "a secret is told once");
    place.call(&["token", "revoke", id]).expect(0);
    served.get("/v1/obligations", secret).expect(401);
}

#[test]
fn no_token_is_made_for_whom_nobody_may_speak() {
    let place = Place::with(&counting("conditional"));
    let _served = Served::start(&place, "");
    for identity in ["agent.worker", "closer.assessor", "nobody"] {
        place.call(&["--as", identity, "token", "new", "--scope", "read"]).expect(3);
        place.call(&["--as", identity, "signin"]).expect(3);
    }
}

#[test]
fn plain_http_beyond_this_machine_is_refused() {
    let refused = |http: &str| {
        let place = Place::with(&format!("{}\n[http]\n{http}\n", counting("conditional")));
        let mut called = std::process::Command::new(crate::support::CLOSER);
        let output = called.args(["--json", "serve"]).arg(place.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{http}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["field"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused("listen = \"0.0.0.0:0\""), "http.listen");
    assert_eq!(refused("listen = \"0.0.0.0:0\"\ntrusted_proxies = [\"10.0.0.1\"]"), "http.public_url");
    assert_eq!(refused("public_url = \"http://closer.example\""), "http.public_url");
    assert_eq!(refused("public_url = \"https://closer.example/bench\""), "http.public_url");
    assert_eq!(refused("listen = \"127.0.0.1:0\"\ntls = { certificate = \"a\" }"), "http.tls");
}

#[test]
fn a_request_that_names_another_host_leads_nowhere() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let secret = token(&place, "user.owner", &["read"]);
    let bearer = format!("Bearer {secret}");
    for host in ["evil.example", "evil.example:80", "127.0.0.1", ""] {
        served.ask("GET", "/v1/obligations", &[("Host", host), ("Authorization", &bearer)], "").expect(421);
    }
    let absolute = format!(
        "GET http://evil.example/v1/obligations HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: {bearer}\r\nConnection: close\r\n\r\n",
        served.port
    );
    assert_eq!(parsed(&raw(served.port, absolute.as_bytes())).status, 421);
}

/// Two readings of where a request ends are never both possible: each of these is refused or ends the connection, and
/// what follows is never answered as a request of its own.
#[test]
fn what_could_be_read_as_two_requests_is_read_as_one_or_none() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let host = format!("Host: 127.0.0.1:{}\r\n", served.port);
    let second = format!("GET /healthz HTTP/1.1\r\n{host}\r\n");
    let shapes = [
        format!("POST /v1/events HTTP/1.1\r\n{host}Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc{second}"),
        format!(
            "POST /v1/events HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc{second}"
        ),
        format!("POST /v1/events HTTP/1.1\r\n{host}Content-Length: +3\r\n\r\nabc{second}"),
        format!("GET /healthz HTTP/1.1\r\n{host} folded: x\r\n\r\n{second}"),
        format!("GET /healthz HTTP/1.1\r\n{host}Bad Header: x\r\n\r\n{second}"),
        format!("GET /heal\u{0}thz HTTP/1.1\r\n{host}\r\n{second}"),
        format!("GET /healthz HTTP/9.9\r\n{host}\r\n{second}"),
    ];
    for shape in &shapes {
        let told = raw(served.port, shape.as_bytes());
        assert!(told.matches("HTTP/1.1 ").count() <= 1, "{shape:?} was answered twice: {told}");
        assert!(!told.contains("HTTP/1.1 200"), "{shape:?}: {told}");
    }
    served.ask("GET", "/healthz", &[], "").expect(200);
}

#[test]
fn bodies_and_rates_are_bounded() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "body_bytes_max = 1000\nrequests_per_minute = 40");
    let secret = token(&place, "user.owner", &["read", "answer"]);
    let large = json!({ "option": "x".repeat(2_000), "packet_digest": "" });
    let refused = served.post("/v1/packets/none/decisions", &secret, &large).expect(413).json();
    assert_eq!(refused["code"], "oversize");
    let bearer = format!("Bearer {secret}");
    let endless = format!(
        "POST /v1/packets/none/decisions HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: {bearer}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        served.port,
        format!("100\r\n{}\r\n", "y".repeat(256)).repeat(50)
    );
    assert_eq!(parsed(&raw(served.port, endless.as_bytes())).status, 413);
    let statuses: Vec<u16> = (0..60).map(|_| served.get("/v1/packets", &secret).status).collect();
    let limited = statuses.iter().filter(|status| **status == 429).count();
    assert!(limited >= 10, "{statuses:?}");
    // Whoever restricts is heard all the same.
    let issuer = token(&place, "issuer.security", &["restrict"]);
    for _ in 0..60 {
        served
            .post("/v1/restrictions", &issuer, &json!({ "operation": "file.finish", "reason": "enough" }))
            .expect(200);
    }
}

#[test]
fn whoever_guesses_tokens_is_turned_away() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let statuses: Vec<u16> = (0..40).map(|n| served.get("/v1/packets", &format!("closer_{n}")).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 30);
    assert_eq!(statuses.last(), Some(&429));
    let secret = token(&place, "user.owner", &["read"]);
    served.get("/v1/packets", &secret).expect(200);
}

/// As many connections as are served stand open and say nothing; a restriction is heard within the time one may take.
#[test]
fn a_restriction_is_heard_through_a_crowd_of_slow_connections() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "connections_max = 20");
    let reader = token(&place, "user.owner", &["read"]);
    let issuer = token(&place, "issuer.security", &["restrict"]);
    let slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    until("the crowd is served", || served.get("/v1/packets", &reader).status == 503);
    let begin = Instant::now();
    served.post("/v1/restrictions", &issuer, &json!({ "operation": "file.finish", "reason": "enough" })).expect(200);
    assert!(begin.elapsed() < Duration::from_secs(2));
    // Whoever says nothing is hung up on, and then others are served again.
    let mut rest = Vec::new();
    let mut last = slow.last().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = last.read_to_end(&mut rest);
    until("others are served again", || served.get("/v1/packets", &reader).status == 200);
}

#[test]
fn a_connection_over_tls_is_served_and_a_plain_one_is_not() {
    if !crate::support::has_openssl() {
        return;
    }
    let place = Place::with(&counting("conditional"));
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(made.status.success());
    let served = Served::start(&place, "tls = { certificate = \"cert.pem\", key = \"key.pem\" }");
    let address = format!("127.0.0.1:{}", served.port);
    let mut client = std::process::Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-verify_return_error",
            "-servername",
            "localhost",
            "-CAfile",
            "cert.pem",
            "-connect",
            &address,
        ])
        .current_dir(place.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    client.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    let told = client.wait_with_output().unwrap();
    let reply = parsed(&String::from_utf8_lossy(&told.stdout)).expect(200);
    assert!(reply.header("strict-transport-security").is_some());
    let plain = raw(served.port, request.as_bytes());
    assert!(!plain.contains("200 OK"), "{plain}");
}

#[test]
fn what_it_notices_is_one_json_object_a_line_and_holds_no_secret() {
    let place = Place::with(&counting("conditional"));
    let secret = {
        place.call(&["init", &place.path().to_string_lossy()]).expect(0);
        token(&place, "user.owner", &["read"])
    };
    let port = crate::support::free_port();
    let file = place.path().join("closer.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[http]\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
    let log = std::fs::File::create(place.path().join("log")).unwrap();
    let mut child = std::process::Command::new(crate::support::CLOSER)
        .arg("serve")
        .arg(place.path())
        .env("CLOSER_LOG_FORMAT", "json")
        .stderr(log)
        .spawn()
        .unwrap();
    until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let request = format!(
        "GET /v1/search?words=private HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(parsed(&raw(port, request.as_bytes())).status, 200);
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let text = std::fs::read_to_string(place.path().join("log")).unwrap();
    assert!(!text.contains(&secret) && !text.contains("private"), "{text}");
    let lines: Vec<serde_json::Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let asked = lines.iter().find(|line| line["route"] == "/v1/search").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(asked["status"], 200);
}
