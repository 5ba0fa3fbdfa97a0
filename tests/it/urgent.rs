//! Restricting while everything else has its hands full: a run that is saturated, a socket that is crowded, a disk that is
//! full.

use crate::support::{Mount, Place, changes, counting, entries, many, notice, refusal, segments, taking};
use closer::request::{Answer, Asked, Outcome, Request};
use closer::space::{Resting, Space};
use closer_contracts::delta::Change;
use closer_contracts::envelope::Extensions;
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::Key;
use closer_contracts::item::AffectedScope;
use closer_contracts::refs::{ActorRef, PLAIN_BYTES_MAX, Plain, ProducerRole, SourceRef};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::shows;
use closer_protocol::Entry;
use closer_protocol::services::{self, Lineage};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RESTRICT: [&str; 8] =
    ["--json", "restrict", "--issuer", "issuer.security", "--operation", "file.finish", "--reason", "enough"];

fn runs(place: &Place) -> usize {
    std::fs::read_to_string(place.path().join("var/world/runs")).unwrap_or_default().lines().count()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Connections with a queue of events each, sent off at once; what is answered is counted.
struct Flood {
    streams: Vec<UnixStream>,
    answered: Arc<AtomicUsize>,
}

impl Flood {
    fn open(store: &Path, connections: usize, events: usize) -> Self {
        let event = "{\"identity\":\"issuer.security\",\"request\":{\"verb\":\"event_send\",\"source_id\":\"source.people\",\
                     \"entity_ref\":\"elsewhere\",\"change_kind\":\"word_given\",\"evidence\":[],\"deduplication_key\":null}}\n";
        let answered = Arc::<AtomicUsize>::default();
        let open = |_| {
            let stream = UnixStream::connect(store.join("closer.sock")).unwrap();
            (&stream).write_all(event.repeat(events).as_bytes()).unwrap();
            let (reader, answered) = (BufReader::new(stream.try_clone().unwrap()), Arc::clone(&answered));
            std::thread::spawn(move || {
                let _counted =
                    reader.lines().map_while(Result::ok).map(|_| answered.fetch_add(1, Ordering::Relaxed)).last();
            });
            stream
        };
        Self { streams: (0..connections).map(open).collect(), answered }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.streams.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    }
}

/// Many obligations are being worked on and thousands of events wait; a restriction is decided ahead of all of them, and
/// from that record on nothing that it covers is dispatched.
#[test]
fn a_restriction_stops_a_saturated_run() {
    shows!("CP-7.2-17"; by "monitor.restriction_covers");
    const OBLIGATIONS: usize = 40;
    const QUEUED: usize = 64 * 200;
    let place = Place::with(&many(OBLIGATIONS, "0.3"));
    let running = place.running(&["--until-stopped"]);
    let flood = Flood::open(&place.store(), 64, 200);
    let world = place.path().join("var/world");
    // One obligation after the other gets something to do, before and after the restriction.
    let work = std::thread::spawn(move || {
        for index in 0..OBLIGATIONS {
            std::fs::write(world.join(format!("target-{index}")), "go\n").unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    until("no effect is under way", || runs(&place) > 0);
    let asked = Instant::now();
    let restricted = place.call(&RESTRICT).expect(0).json();
    let (took, answered) = (asked.elapsed(), flood.answered());
    assert_eq!(restricted["recorded"].as_array().map(Vec::len), Some(1));
    assert!(
        took < Duration::from_secs(10) && answered < QUEUED / 2,
        "{took:?}, {answered} of {QUEUED} events before it"
    );
    work.join().unwrap();
    drop(flood);
    let refused = |place: &Place| {
        let why = |index: usize| {
            let why = place.call(&["--json", "obligation", "why", &format!("obligation.count-{index}")]);
            why.code == Some(0) && why.json()["refused"].as_array().is_some_and(|refused| !refused.is_empty())
        };
        (0..OBLIGATIONS).any(why)
    };
    until("nothing was refused", || refused(&place));
    assert!(matches!(running.stop(), Some(0 | 8)));

    let entries = entries(&place);
    let restricted = entries.iter().find_map(|(at, entry)| {
        changes(entry).iter().find_map(|change| {
            let restriction =
                if let Change::SuspendEligibility { restriction } = change { restriction } else { return None };
            Some((*at, restriction.clone()))
        })
    });
    let (restricted_at, restriction) = restricted.expect("the restriction is on record");
    assert_eq!(restriction.affected_scope, AffectedScope::Operation { operation: "file.finish".into() });
    let intents: Vec<u64> =
        entries.iter().filter(|(_, entry)| matches!(entry, Entry::Intent(_))).map(|(at, _)| *at).collect();
    assert!(
        !intents.is_empty() && intents.iter().all(|intent| *intent < restricted_at),
        "{intents:?}, {restricted_at}"
    );
    assert!(runs(&place) <= intents.len(), "what was not admitted never ran");
    let named = entries.iter().filter(|(at, entry)| {
        refusal(entry).is_some_and(|refusal| {
            let offending = refusal.offending.as_ref().map(|offending| offending.as_str());
            refusal.code == RefusalCode::Restricted
                && offending == Some(restriction.restriction_id.as_str())
                && *at > restricted_at
        })
    });
    assert!(named.count() > 0, "the refusal names the restriction");
}

/// Connections that say nothing keep nobody from restricting, nor from anything else for long.
#[test]
fn a_crowded_socket_still_hears_a_restriction() {
    let place = Place::with(&counting("conditional"));
    let running = place.running(&["--until-stopped"]);
    let socket = place.store().join("closer.sock");
    let idle: Vec<UnixStream> = (0..96).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    place.call(&RESTRICT).expect(0);
    // Whoever asks nothing gives way, and the crowd stays.
    until("a verb is answered", || place.call(&["obligation", "list"]).code == Some(0));
    place.call(&["obligation", "list"]).expect(0);
    drop(idle);
    assert!(matches!(running.stop(), Some(0 | 8)));
}

/// Events with so many notes of 64 KiB each; the most that a payload has room for is 15.
fn events(place: &Place, count: usize, notes: usize) -> Vec<String> {
    let space = Resting::open(&place.store()).unwrap();
    let (view, now) = (space.view(), space.moment().now);
    let disclosure = view.disclosure(&services::intake_disclosure("source.people")).unwrap().clone();
    let note = |number| (Key::from(format!("org.example.note-{number}")), Plain("x".repeat(PLAIN_BYTES_MAX).into()));
    let event = |index: usize| {
        let id = format!("event.{notes}.{index}");
        let event = Event {
            event_id: id.as_str().into(),
            source: SourceRef { source_id: "source.people".into() },
            observed_at: now.clone(),
            received_at: now.clone(),
            entity_ref: "elsewhere".into(),
            change_kind: "word_given".into(),
            evidence_refs: Vec::new(),
            deduplication_key: id.as_str().into(),
            certainty: Certainty::Observed,
            extensions: Some(Extensions((0..notes).map(note).collect())),
        };
        let lineage = Lineage {
            parents: Vec::new(),
            obligation_ids: Vec::new(),
            episode_id: None,
            causation_event_id: None,
            budget_ref: None,
        };
        let producer = ActorRef { actor_id: "issuer.security".into(), role: ProducerRole::Observer };
        let id = format!("pl.{id}");
        let payload = services::write(&view, id.into(), producer, lineage, disclosure.clone(), event, &now).unwrap();
        String::from_utf8(payload.bytes().to_vec()).unwrap()
    };
    (0..count).map(event).collect()
}

/// Sends events until one is refused.
fn until_full(place: &Place, payloads: Vec<String>) -> Answer {
    let send = |payload| {
        let request = Request::PayloadSend { payload, key_id: None, signature: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(closer::socket::ask(&place.store(), &Asked { identity: None, request })).unwrap()
    };
    payloads.into_iter().map(send).find(|answer| answer.outcome != Outcome::Done).expect("the disk fills up")
}

/// On a full disk ordinary work is refused and restrictions go on, in a running space and in one at rest; space heals it.
#[test]
fn on_a_full_disk_only_a_restriction_is_recorded() {
    let place = Place::with(&counting("conditional"));
    std::fs::create_dir_all(place.store()).unwrap();
    // One segment, the reserve, and a little for everything else.
    let Some(mount) = Mount::tmpfs(&place.store(), "136M") else {
        eprintln!("SKIPPED: a full disk is only tried where a file system can be mounted, which needs root");
        return;
    };
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    // Large ones first, then what fits where they do not.
    let waves = [(80, 15), (20, 1), (80, 0)].map(|(count, notes)| events(&place, count, notes));
    let event = ["--json", "--as", "issuer.security", "event", "send", "--source", "source.people"];
    let event = [&event[..], &["--entity", "elsewhere", "--change", "word_given"]].concat();
    let running = place.running(&["--until-stopped"]);
    for wave in waves {
        let full = until_full(&place, wave);
        assert_eq!((full.outcome, full.code), (Outcome::Refused, Some(RefusalCode::StorageFull)), "{full:?}");
    }
    assert_eq!(segments(&place.store()).len(), 1);
    place.call(&RESTRICT).expect(0);
    assert_eq!(segments(&place.store()).len(), 2, "the restriction is in what was reserved");
    assert_eq!(place.call(&event).expect(3).json()["code"], "storage_full");
    assert_eq!(running.stop(), Some(3), "a run that found no room says so");

    let grant = ["--json", "restrict", "--issuer", "issuer.security", "--grant", "grant.finish", "--reason", "enough"];
    assert_eq!(place.call(&event).expect(3).json()["code"], "storage_full");
    assert_eq!(place.call(&grant).expect(0).json()["recorded"].as_array().map(Vec::len), Some(1));
    // The user, who needs no appointment, finds the same room; at rest and while it runs.
    let own = ["--json", "restrict", "--obligation", "obligation.count", "--reason", "enough"];
    place.call(&own).expect(0);
    assert_eq!(place.call(&event).expect(3).json()["code"], "storage_full");
    let entries = entries(&place);
    let restricts = |change: &&Change| matches!(change, Change::SuspendEligibility { .. } | Change::RevokeGrant { .. });
    let urgent = entries.iter().flat_map(|(_, entry)| changes(entry)).filter(restricts);
    assert_eq!(urgent.count(), 3);
    mount.resize("260M");
    place.call(&event).expect(0);
    place.call(&["verify"]).expect(0);
}

/// What can be called back is, when it is restricted: the program is ended, and what it did is left to its readback.
#[test]
fn a_restriction_ends_a_program_that_can_be_called_back() {
    let deployment = taking("25", "not_repeat_safe").replace("repeat_safety =", "cancellable = true\nrepeat_safety =");
    let place = Place::with(&deployment);
    let running = place.running(&["--until-stopped"]);
    until("no effect is under way", || runs(&place) > 0);
    let asked = Instant::now();
    place.call(&RESTRICT).expect(0);
    until("the program was not ended", || {
        let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
        why["waiting"].as_array().unwrap().iter().any(|told| told["status"] == "outcome_unknown")
    });
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    assert!(matches!(running.stop(), Some(0 | 8)));
    let entries = entries(&place);
    let mut told = entries.iter().filter_map(|(_, entry)| notice(entry)).map(|notice| notice.text.as_str());
    assert!(told.any(|text| text.contains("cancellation") && text.contains("a restriction covers it")));
}
