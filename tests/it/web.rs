//! The Bench over HTTP, as a browser without JavaScript would use it: signing in, answering, stopping, hostile text and forms.

use crate::http::api::asking;
use crate::http::client::{Reply, Served, until};
use crate::support::{Place, counting};
use closer_contracts::shows;
use std::fmt::Write as _;

/// A signed-in browser.
struct Browser<'a> {
    served: &'a Served,
    cookie: String,
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte.is_ascii_alphanumeric() {
            true => encoded.push(char::from(byte)),
            false => write!(encoded, "%{byte:02X}").unwrap(),
        }
        encoded
    })
}

fn body(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

fn sign_in(served: &Served, secret: &str) -> Reply {
    served.ask("POST", "/signin", &[FORM], &body(&[("secret", secret), ("to", "/decisions")]))
}

impl<'a> Browser<'a> {
    fn with(served: &'a Served, secret: &str) -> Self {
        let reply = sign_in(served, secret).expect(303);
        assert_eq!(reply.header("location"), Some("/decisions"), "it lands where it came for");
        let set = reply.header("set-cookie").unwrap();
        assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
        Self { served, cookie: set.split(';').next().unwrap().to_owned() }
    }

    /// Signs in with the link that the first start announced.
    fn first(served: &'a Served) -> Self {
        Self::with(served, link(served.announced["sign_in"].as_str().unwrap()))
    }

    fn get(&self, path: &str) -> Reply {
        self.served.ask("GET", path, &[("Cookie", &self.cookie)], "")
    }

    fn post_with(&self, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
        let mut all = vec![("Cookie", self.cookie.as_str()), FORM];
        all.extend(headers);
        self.served.ask("POST", path, &all, &body(fields))
    }

    /// Sends a form of the page at `from`, with its token.
    fn post(&self, from: &str, path: &str, fields: &[(&str, &str)]) -> Reply {
        let page = self.get(from).expect(200).body;
        let csrf = value(&page, "csrf");
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend(fields);
        self.post_with(path, &[], &all)
    }

    /// The path of the first packet that waits.
    fn packet(&self) -> String {
        until("a packet is on The Bench", || self.get("/").body.contains("href=\"/packets/"));
        let page = self.get("/").body;
        let from = page.find("href=\"/packets/").unwrap() + 6;
        page[from..].split('"').next().unwrap().to_owned()
    }
}

fn link(url: &str) -> &str {
    url.split("link=").nth(1).unwrap()
}

/// The value of a page's first hidden field of this name.
#[track_caller]
fn value(page: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    let from = page.find(&field).unwrap_or_else(|| panic!("no field {name} in {page}")) + field.len();
    page[from..].split('"').next().unwrap().to_owned()
}

/// What a page is about.
fn main(page: &str) -> &str {
    page.split("<main").nth(1).unwrap().split("</main>").next().unwrap()
}

#[test]
fn a_link_is_looked_at_without_being_used_and_used_once() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let url = served.announced["sign_in"].as_str().unwrap().to_owned();
    let secret = link(&url).to_owned();
    let there = served.ask("GET", "/decisions?after=x", &[], "").expect(303);
    assert_eq!(there.header("location"), Some("/signin?to=%2Fdecisions%3Fafter%3Dx"));
    for _ in 0..3 {
        let page = served.ask("GET", &format!("/signin?link={secret}"), &[], "").expect(200);
        assert!(page.header("set-cookie").is_none(), "a look uses nothing up");
    }
    let browser = Browser::with(&served, &secret);
    browser.get("/").expect(200);
    sign_in(&served, &secret).expect(403);
    let away = served.ask("POST", "/signin", &[FORM], &body(&[("secret", "x"), ("to", "//evil.example")]));
    assert!(!away.expect(403).body.contains("evil"));
    let second = place.call(&["--json", "signin"]).expect(0).json();
    Browser::with(&served, link(second["link"].as_str().unwrap()));
}

#[test]
fn a_second_device_signs_in_by_a_code_and_is_signed_out_from_the_first() {
    let place = Place::with(&counting("conditional"));
    let served = Served::start(&place, "");
    let first = Browser::first(&served);
    let page = first.post("/devices", "/devices/code", &[]).expect(200).body;
    let code = page.split("<p class=\"code\"><code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let second = Browser::with(&served, &code.to_lowercase());
    second.get("/").expect(200);
    let ids: Vec<String> = first
        .get("/devices")
        .body
        .split("name=\"session\" value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .filter(|id| id != "all")
        .collect();
    assert_eq!(ids.len(), 2);
    first.post("/devices", "/devices/end", &[("session", &ids[1])]).expect(303);
    second.get("/").expect(303);
    second.post_with("/stop", &[], &[("csrf", "x")]).expect(303);
    first.get("/").expect(200);
    let out = first.post("/devices", "/devices/end", &[("session", "all")]).expect(303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    first.get("/").expect(303);
}

#[test]
fn every_page_over_the_record_says_that_observing_is_on() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let pages = ["/", "/work", "/obligations", "/decisions", "/restrictions", "/search", "/devices", "/stop"];
    let says = |page: &str| browser.get(page).expect(200).body.contains("mode &#34;observe&#34; is on until");
    assert!(!pages.iter().any(|page| says(page)));
    place.call(&["gate", "--observe", "--as", "agent.client"]);
    for page in pages.into_iter().map(str::to_owned).chain([browser.packet()]) {
        assert!(says(&page), "{page}: {}", browser.get(&page).body);
    }
    place.call(&["gate", "--observe", "--as", "agent.client", "--until", "2026-01-01T00:00:00Z"]);
    assert!(!pages.iter().any(|page| says(page)));
}

#[test]
fn a_form_that_is_not_of_this_session_changes_nothing() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let page = browser.get(&path).body;
    let (csrf, digest) = (value(&page, "csrf"), value(&page, "digest"));
    let fields = [("csrf", csrf.as_str()), ("digest", digest.as_str()), ("option", "allow")];
    let forged = [("csrf", "0123"), ("digest", digest.as_str()), ("option", "allow")];
    browser.post_with(&path, &[], &forged).expect(403);
    browser.post_with(&path, &[], &fields[1..]).expect(403);
    for headers in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        browser.post_with(&path, &[headers], &fields).expect(403);
    }
    // Nothing is answered by looking.
    browser.get(&format!("{path}?option=allow&csrf={csrf}&digest={digest}")).expect(200);
    let token = crate::http::client::token(&place, "user.owner", &["read"]);
    assert_eq!(served.get("/v1/decisions", &token).json()["page"]["total"], 0);
    let origin = format!("http://127.0.0.1:{}", served.port);
    browser.post_with(&path, &[("Origin", &origin), ("Sec-Fetch-Site", "same-origin")], &fields).expect(303);
    assert_eq!(served.get("/v1/decisions", &token).json()["page"]["total"], 1);
}

#[test]
fn a_packet_says_what_matters_first_and_what_it_would_allow() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let page = browser.get(&path).body;
    let main = main(&page);
    let at = |text: &str| main.find(text).unwrap_or_else(|| panic!("no {text:?} in {main}"));
    assert!(at("Answer by") < at("<h1>") && at("Unanswered: without an answer nothing is permitted") < at("<h1>"));
    assert!(at("<h1>") < at("type=\"radio\""));
    assert!(at("Nothing is recommended:") < at("type=\"radio\""));
    assert!(!main.contains("checked"), "nothing is chosen for the person");
    for told in ["Gives authority", "Refuses", "Asks for more", "<dd>once</dd>", "file.finish"] {
        at(told);
    }
    assert!(at("file.finish") < at("Send the chosen answer"));
    // Without a choice nothing is recorded.
    let digest = value(&page, "digest");
    browser.post(&path, &path, &[("digest", &digest)]).expect(422);
}

#[test]
fn an_answer_to_another_version_is_told_with_nothing_chosen() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let other = format!("sha256:{}", "0".repeat(64));
    let told = browser.post(&path, &path, &[("digest", &other), ("option", "allow")]).expect(409).body;
    assert!(told.contains("role=\"alert\"") && told.contains("Nothing was recorded"), "{told}");
    assert!(!main(&told).contains("checked"));
    let right = value(&told, "digest");
    browser.post(&path, &path, &[("digest", &right), ("option", "refuse")]).expect(303);
    let page = browser.get(&path).body;
    assert!(page.contains("This was answered.") && !page.contains("type=\"radio\""));
}

#[test]
fn an_answer_is_followed_and_taken_back() {
    let place = Place::with(&asking().replace("echo run >> runs;", "echo run >> runs; exit 1;"));
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let digest = value(&browser.get(&path).body, "digest");
    browser.post(&path, &path, &[("digest", &digest), ("option", "allow")]).expect(303);
    let decisions = || browser.get("/decisions").body;
    assert!(decisions().contains("<b>allow</b>"));
    until("it can be taken back, and says what cannot be undone", || {
        decisions().contains("What was sent already is not undone.")
    });
    let packet = path.trim_start_matches("/packets/");
    browser.post("/decisions", &format!("/packets/{packet}/withdraw"), &[("digest", &digest)]).expect(303);
    let page = decisions();
    assert!(page.contains("<b>refuse</b>") && !page.contains("Take it back"), "{page}");
}

/// Two requests of an appointed person stop an operation: the page, and one button of it.
#[test]
fn two_taps_stop_what_the_person_is_appointed_for() {
    shows!("CP-7.2-17"; by "monitor.restriction_covers");
    let place = Place::with(&asking());
    let served =
        Served::start(&place, "[[http.person]]\nidentity = \"user.owner\"\nrestricts_as = \"issuer.security\"");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let page = browser.get(&path).body;
    assert!(page.contains("href=\"/stop?obligation=obligation.count\""), "it is on every page");
    let stop = browser.get("/stop").expect(200).body;
    assert!(stop.contains("Stop everything"));
    let what = "{\"covers\":\"operation\",\"operation\":\"file.finish\"}";
    assert!(stop.contains(&what.replace('"', "&#34;")), "{stop}");
    let made = browser.post("/stop", "/stop", &[("what", what), ("reason", "enough")]).expect(303);
    assert_eq!(made.header("location"), Some("/restrictions?made=now"));
    let page = browser.get("/restrictions?made=now").body;
    assert!(page.contains("<h2>`file.finish`</h2>") && page.contains("to be reconciled by"), "{page}");
    browser.post("/stop", "/stop", &[("what", what), ("reason", " ")]).expect(422);
    browser.post("/stop", "/stop", &[("what", "{}"), ("reason", "enough")]).expect(400);
    // What is allowed now is not sent.
    let digest = value(&browser.get(&path).body, "digest");
    browser.post(&path, &path, &[("digest", &digest), ("option", "allow")]).expect(303);
    until("it is refused", || browser.get("/decisions").body.contains("was refused: restricted"));
    assert!(!place.path().join("var/world/runs").exists());
}

#[test]
fn whoever_is_not_appointed_and_does_not_govern_has_no_stop() {
    if !crate::support::has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    let served = Served::start(&place, "");
    let made = place.call(&["--json", "--as", "owner.security", "signin"]).expect(0).json();
    let browser = Browser::with(&served, link(made["link"].as_str().unwrap()));
    assert!(!browser.get("/").body.contains("/stop"));
    browser.get("/stop").expect(404);
    assert!(Browser::first(&served).get("/").body.contains("/stop"), "the user needs no appointment");
}

/// What a record holds is shown as text: no markup, no controls, no marks of direction, wherever it stands.
#[test]
fn hostile_text_is_shown_as_text_on_every_page() {
    let hostile =
        "<img src=x onerror=alert(1)>\\\"'><script>alert(2)</script>\\u202Eedoc\\u202C\\u200B\\u0007 {{7*7}} &lt;b&gt;";
    let text = asking()
        .replace("Does the file say done?", hostile)
        .replace("text = \"The file says done.\"", &format!("text = \"{hostile}\""));
    let place = Place::with(&text);
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let found = format!("/search?words={}", encoded("<img"));
    let pages = [
        path.as_str(),
        "/",
        "/work",
        "/obligations",
        "/obligations/obligation.count?trace=true",
        "/decisions",
        "/restrictions",
        "/devices",
        found.as_str(),
    ];
    let mut shown = 0;
    for path in pages {
        let reply = browser.get(path).expect(200);
        let page = &reply.body;
        assert!(!page.contains("<img") && !page.contains("<script>"), "{path}: {page}");
        for character in ['\u{202e}', '\u{202c}', '\u{200b}', '\u{7}'] {
            assert!(!page.contains(character), "{path} holds {character:?}");
        }
        assert!(!page.contains(" 49 "), "{path}");
        shown += usize::from(page.contains("\\u{202e}"));
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert!(shown >= 3, "it is shown, spelled out");
}

#[test]
fn an_answer_that_gives_authority_is_asked_for_again_after_a_while() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "ask_again_ms = 300");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let page = browser.get(&path).body;
    let (csrf, digest) = (value(&page, "csrf"), value(&page, "digest"));
    let fields = [("csrf", csrf.as_str()), ("digest", digest.as_str()), ("option", "allow")];
    std::thread::sleep(std::time::Duration::from_millis(600));
    let again = browser.post_with(&path, &[], &fields).expect(422).body;
    assert!(again.contains("asked for once more") && again.contains("name=\"again\""), "{again}");
    assert!(!main(&again).contains("checked"));
    std::thread::sleep(std::time::Duration::from_millis(600));
    let mut confirmed = fields.to_vec();
    confirmed.push(("again", "1"));
    browser.post_with(&path, &[], &confirmed).expect(303);
}

#[test]
fn a_packet_that_is_put_off_keeps_its_deadline() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    browser.post(&path, &format!("{path}/later"), &[("hours", "4")]).expect(303);
    let page = browser.get("/").body;
    assert!(page.contains("1 put off") && page.contains("answer by"), "{page}");
    let again = browser.get(&path).body;
    assert!(again.contains("Answer by") && again.contains("opened 2 times"), "{again}");
}

/// The four areas are views, and what the user has to judge is on The Bench.
#[test]
fn the_four_views_show_what_is_on_record() {
    shows!("CP-2-18", "CP-7.3-04");
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    browser.packet();
    let work = browser.get("/work").expect(200).body;
    for view in ["Leads", "Investigations", "Briefs", "The Bench"] {
        assert!(work.contains(&format!(">{view}</")), "{view}: {work}");
    }
    let bench = browser.get("/").body;
    assert_eq!(bench.matches("class=\"card\"").count(), 1, "asked once");
}

/// A grant for more than one begins at exactly what is shown, is held against what was asked, and only that is given.
#[test]
fn a_grant_for_more_than_one_is_tried_before_it_is_given() {
    let place = Place::with(&asking());
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let from = format!("{path}/grant");
    let shown = browser.get(&from).expect(200).body;
    assert!(shown.contains("name=\"calls\" type=\"number\" min=\"1\" max=\"1000000\" value=\"1\""), "{shown}");
    assert!(!shown.contains("Give this grant"));
    let fields = [("calls", "5"), ("until", "2999-01-01")];
    browser.post(&from, &from, &[("calls", "0"), ("until", "2999-01-01")]).expect(422);
    browser.post(&from, &from, &[("calls", "5"), ("until", "2001-01-01")]).expect(422);
    let tried = browser.post(&from, &from, &[fields[0], fields[1], ("step", "try")]).expect(200).body;
    assert!(tried.contains("it would have answered 1") && tried.contains("A person refused none"), "{tried}");
    let proof = value(&tried, "tried");
    let wider =
        browser.post(&from, &from, &[("calls", "500"), fields[1], ("step", "give"), ("tried", &proof)]).expect(200);
    assert!(wider.body.contains("Give this grant"), "what was not tried is tried first");
    let given = browser.post(&from, &from, &[fields[0], fields[1], ("step", "give"), ("tried", &proof)]).expect(303);
    assert_eq!(given.header("location"), Some(format!("{path}?granted=1").as_str()));
    assert!(!place.path().join("var/world/runs").exists(), "the question still waits for its own answer");
    let page = browser.get(&path).body;
    let digest = value(&page, "digest");
    browser.post(&path, &path, &[("digest", &digest), ("option", "investigate")]).expect(303);
    until("it is done under the grant", || place.path().join("var/world/runs").exists());
}

/// Where several people declare what is permitted, the first is not told that the grant is given.
#[test]
fn a_grant_that_waits_for_others_is_not_said_to_be_given() {
    let place = crate::edges::two_of_three(&asking(), "declaration");
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let from = format!("{}/grant", browser.packet());
    let fields = [("calls", "5"), ("until", "2999-01-01")];
    let tried = browser.post(&from, &from, &[fields[0], fields[1], ("step", "try")]).expect(200).body;
    let proof = value(&tried, "tried");
    let given = browser.post(&from, &from, &[fields[0], fields[1], ("step", "give"), ("tried", &proof)]).expect(200);
    assert!(given.body.contains("Not given") && given.body.contains("closer change join"), "{}", given.body);
}

/// Other values than the proposed ones are allowed once, with the answer that gives authority, and assessed anew.
#[test]
fn an_answer_may_allow_other_values_than_the_proposed_ones() {
    if !crate::support::has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    let served = Served::start(&place, "");
    let browser = Browser::first(&served);
    let path = browser.packet();
    let page = browser.get(&path).body;
    assert!(
        page.contains("name=\"amend-0\" value=\"90\"") && page.contains("name=\"amend-1\" value=\"mail.example\""),
        "{page}"
    );
    let digest = value(&page, "digest");
    let fields = [("digest", digest.as_str()), ("option", "allow"), ("amend-0", "60"), ("amend-1", "mail.example")];
    browser.post(&path, &path, &fields).expect(303);
    until("it is done", || browser.get("/decisions").body.contains("and was read back"));
    let ends_within = |days: u32| {
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["x509", "-noout", "-checkend", &(days * 86_400).to_string(), "-in", "var/certs/mail.pem"]);
        !openssl.current_dir(place.path()).output().unwrap().status.success()
    };
    assert!(ends_within(61) && !ends_within(59), "it was renewed for the amended 60 days");
}
