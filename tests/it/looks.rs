//! Looking at targets: what nobody can see is told, and one target has one looker.

use crate::support::{Place, body, counting, entries, notice, refusal};
use closer::space::{Resting, Space};
use closer_adapters::clock::{ClockBounds, SystemClock};
use closer_adapters::{MemoryLedger, World, WorldConfig};
use closer_contracts::envelope::Body;
use closer_contracts::refs::Target;
use closer_protocol::entry::NoticeKind;
use closer_protocol::port::ReadbackOrder;
use closer_protocol::{Entry, Input, readback};
use std::sync::Arc;
use std::time::Duration;

fn waiting(place: &Place) -> Vec<serde_json::Value> {
    let why = place.call(&["--json", "obligation", "why", "obligation.count"]).expect(0).json();
    let waiting = why["waiting"].as_array().unwrap().iter();
    waiting.filter(|told| told["for"] == "observation").cloned().collect()
}

/// Nobody waits in silence for what nobody can look at: it is on record once, and `why` says so until it is seen.
#[test]
fn a_target_that_nobody_can_look_at_is_told() {
    let place = Place::with(&counting("conditional").replace("program = \"touch\"", "program = \"mkdir\""));
    place.run(&[]).expect(8);
    place.run(&[]).expect(8);
    let told = waiting(&place);
    let reason = told.first().and_then(|told| told["reason"].as_str()).unwrap_or_default();
    assert!(told.len() == 1 && reason.contains("cannot be looked at") && reason.contains("regular file"), "{told:?}");
    let text = place.call(&["obligation", "why", "obligation.count"]).expect(0).stdout;
    assert!(text.contains("Nobody can see what it waits for: `target` of `local`"), "{text}");
    let limits = |place: &Place| {
        let entries = entries(place);
        let notices = entries.iter().filter_map(|(_, entry)| notice(entry));
        notices.filter(|notice| notice.kind == NoticeKind::ResidualInterval).count()
    };
    assert_eq!(limits(&place), 1, "once, however often it is tried");

    let target = place.path().join("var/world/target");
    std::fs::remove_dir(&target).unwrap();
    std::fs::write(&target, "").unwrap();
    place.run(&[]).expect(0);
    assert_eq!((waiting(&place).len(), limits(&place)), (0, 1));
}

/// Two observations of one target do not race for its next number: both changes are announced, about the same evidence.
#[test]
fn two_observations_of_one_target_are_one_look() {
    let one = counting("conditional");
    let from = one.find("[[observation]]").unwrap();
    let (observation, rest) = one[from..].split_once("[[participant]]").unwrap();
    let other = observation.replace("file.target", "file.other");
    let place = Place::with(&format!("{}{observation}{other}[[participant]]{rest}", &one[..from]));
    place.run(&[]).expect(0);
    let entries = entries(&place);
    let refusals: Vec<_> = entries.iter().filter_map(|(_, entry)| refusal(entry)).collect();
    assert!(refusals.is_empty(), "{refusals:?}");
    let cited = |entity: &str| {
        let event = |entry: &Entry| {
            let event = if let Some(Body::Event(event)) = body(entry) { event } else { return None };
            (event.entity_ref.as_str() == entity).then(|| event.evidence_refs.clone())
        };
        entries.iter().filter_map(|(_, entry)| event(entry)).collect::<Vec<_>>()
    };
    assert!(!cited("file.target").is_empty());
    assert_eq!(cited("file.target"), cited("file.other"));
}

/// A crash between an observation and its event: what was seen is announced by the next run, though it has not changed.
#[test]
fn an_observation_that_was_not_announced_is_announced_later() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    {
        let space = Resting::open(&place.store()).unwrap();
        let (view, now) = (space.view(), space.moment().now);
        let method = view.state.readback_method(&"file.read".into()).unwrap().clone();
        let target = Target { r#type: "file".into(), account: "local".into(), address: "target".into() };
        let order = ReadbackOrder {
            method: Arc::new(method.clone()),
            target: target.clone(),
            action_id: None,
            attempt_id: None,
        };
        let world = World::new(WorldConfig {
            clock: Arc::new(SystemClock::start(ClockBounds::default(), None)),
            processes: Arc::new(MemoryLedger::default()),
            participants: std::collections::BTreeMap::new(),
            servers: closer_adapters::McpServers::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let observed = runtime.block_on(world.observer.observe(&order));
        let waits = ["obligation.count".into()];
        let evidence = readback::draft(&view, &method, &observed, &target, None, &waits, &now).unwrap();
        let submission = space.payload(evidence, None).unwrap();
        let reply = runtime.block_on(space.submit(Input::Payload(submission))).unwrap();
        assert!(reply.refusal().is_none(), "{reply:?}");
    }
    place.run(&[]).expect(0);
}

/// What may not be recorded is offered once, and not with every look.
#[test]
fn a_refused_observation_is_not_offered_again() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init"]).expect(0);
    // A space that is founded meets a file that names what its record does not have.
    let named = "obligation_id = \"obligation.count\"\nevery_ms";
    let unknown = counting("conditional").replace(named, "obligation_id = \"obligation.none\"\nevery_ms");
    std::fs::write(place.path().join("closer.toml"), unknown).unwrap();
    let running = place.running(&["--until-stopped"]);
    std::thread::sleep(Duration::from_millis(1_500));
    running.stop();
    let entries = entries(&place);
    assert_eq!(entries.iter().filter_map(|(_, entry)| refusal(entry)).count(), 1);
}
