//! Notifications against a mail server and a web address of this machine: told once, also over a restart, and no way to
//! answer by a look.

use crate::http::api::asking;
use crate::http::client::{Served, until};
use crate::support::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type Kept = Arc<Mutex<Vec<String>>>;

/// A mail server that takes every letter.
fn mail() -> (u16, Kept) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, kept) = (listener.local_addr().unwrap().port(), Kept::default());
    let letters = Arc::clone(&kept);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut writer = stream.try_clone().unwrap();
            let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
            writer.write_all(b"220 here\r\n").unwrap();
            while let Some(line) = lines.next() {
                let word = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
                if word == "DATA" {
                    writer.write_all(b"354 go on\r\n").unwrap();
                    let letter: Vec<String> = lines.by_ref().take_while(|line| line != ".").collect();
                    letters.lock().unwrap().push(letter.join("\n"));
                }
                let answer: &[u8] = if word == "QUIT" { b"221 bye\r\n" } else { b"250 ok\r\n" };
                if writer.write_all(answer).is_err() || word == "QUIT" {
                    break;
                }
            }
        }
    });
    (port, kept)
}

/// A web address that takes every message once it is let.
fn web(open: Arc<AtomicBool>) -> (u16, Kept) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, kept) = (listener.local_addr().unwrap().port(), Kept::default());
    let messages = Arc::clone(&kept);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let status = if open.load(Ordering::SeqCst) { "200 OK" } else { "503 Busy" };
            if open.load(Ordering::SeqCst) {
                messages.lock().unwrap().push(String::from_utf8(body).unwrap());
            }
            let mut stream = stream;
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (port, kept)
}

fn secret(place: &Path, name: &str, text: &str) {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(0o600).open(place.join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_question_is_told_once_by_each_way_also_over_a_restart() {
    let open = Arc::new(AtomicBool::new(true));
    let ((smtp, letters), (port, messages)) = (mail(), web(Arc::clone(&open)));
    let place = Place::with(&asking());
    secret(place.path(), "slack", &format!("http://127.0.0.1:{port}/services/T0/B0/hidden"));
    let section = format!(
        "[notify.smtp]\nhost = \"127.0.0.1\"\nport = {smtp}\nprotection = \"none\"\nfrom = \"Closer <closer@example.org>\"\n\
         [[notify.channel]]\nkind = \"email\"\nto = \"owner@example.org\"\n\
         [[notify.channel]]\nkind = \"webhook\"\nurl_file = \"slack\"\nshape = \"slack\"\n"
    );
    let served = Served::start(&place, &section);
    let count = |kept: &Kept| kept.lock().unwrap().len();
    until("both are told", || count(&letters) == 1 && count(&messages) == 1);
    let letter = letters.lock().unwrap()[0].clone();
    // Quoted-printable lines are put together again.
    let letter = letter.replace("=\n", "").replace("=3D", "=");
    assert!(letter.contains("To: owner@example.org") && letter.contains("May `file.finish` be done once"), "{letter}");
    assert!(letter.contains("answer by 20") && letter.contains("Unanswered: without an answer"), "{letter}");
    let link = format!("http://127.0.0.1:{}/packets/decision-", served.port);
    assert!(letter.contains(&link), "{letter}");
    assert!(!letter.contains("link=") && !letter.contains("secret"), "it signs nobody in: {letter}");
    let message: Value = serde_json::from_str(&messages.lock().unwrap()[0]).unwrap();
    assert!(message["blocks"].to_string().contains(&link));
    // Whoever follows the link answers nothing and has to sign in.
    let path = &message["blocks"][1]["elements"][0]["url"].as_str().unwrap()[link.find("/packets").unwrap()..];
    served.ask("GET", path, &[], "").expect(303);
    assert_eq!(served.stop(), Some(0));
    let served = Served::start(&place, &section);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!((count(&letters), count(&messages)), (1, 1), "told once");
    drop(served);
}

#[test]
fn what_could_not_be_delivered_is_delivered_later() {
    let open = Arc::new(AtomicBool::new(false));
    let (port, messages) = web(Arc::clone(&open));
    let place = Place::with(&asking());
    secret(place.path(), "address", &format!("http://127.0.0.1:{port}/"));
    let section = "[[notify.channel]]\nkind = \"webhook\"\nurl_file = \"address\"\nshape = \"json\"\n";
    let served = Served::start(&place, section);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(messages.lock().unwrap().is_empty());
    open.store(true, Ordering::SeqCst);
    // Anything that changes is a reason to try again.
    let token = crate::http::client::token(&place, "issuer.security", &["restrict"]);
    let draft = serde_json::json!({ "operation": "file.finish", "reason": "enough" });
    served.post("/v1/restrictions", &token, &draft).expect(200);
    until("it is told", || messages.lock().unwrap().len() == 1);
    let told: Value = serde_json::from_str(&messages.lock().unwrap()[0]).unwrap();
    assert_eq!(told["total"], 1);
}
