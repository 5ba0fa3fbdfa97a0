//! Conferences of real actors: asked side by side, sealed, released, moved on, concluded; slow, absent and restarted ones too.

use crate::support::*;
use closer_actors::{Handle, Options};
use closer_contracts::conference::MoveKind;
use closer_contracts::id::ActorId;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::shows;
use closer_contracts::work::ReasonClass;
use closer_protocol::View;
use closer_protocol::conference::{Claim, Ending, Label, Report, Round};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const THREE: [&str; 3] = ["remainder", "investigator", "regulator"];

fn round(view: &View) -> Arc<Round> {
    view.conferences.rounds().last().expect("a conference").clone()
}

fn report(view: &View) -> Report {
    (*round(view).report.as_ref().expect("its report").body).clone()
}

fn label(report: &Report, actor: &str) -> Label {
    report.attendance.iter().find(|attended| attended.seat.actor.as_str() == actor).expect("its seat").label
}

/// A space in which the three confer on `o-1`.
async fn place(change: impl FnOnce(&mut closer_contracts::item::Inquiry)) -> Place {
    let founding = with_coalition(founding(&[("o-1", "service-a", "p-1")]), &THREE, change);
    Place::found(&founding, proposes("basic")).await
}

async fn woken(place: &Place) -> (closer_actors::Runtime, Handle) {
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    (runtime, handle)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_confer_and_what_one_proposes_is_done() {
    shows!("CP-4.1-09"; by "episode.coalition_confers");
    let mut place = place(|_| {}).await;
    let voices = [
        place.seat("remainder", Voice::quiet()),
        place.seat("investigator", Voice::proposing("basic")),
        place.seat("regulator", Voice::quiet()),
    ];
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let view = handle.view();
    let (round, report) = (round(&view), report(&view));
    assert_eq!(round.contract.seats.iter().map(|seat| seat.role.as_str()).collect::<Vec<_>>(), THREE);
    assert_eq!(report.ending, Ending::RuleApplied);
    assert_eq!((report.independence.claim, report.independence.count), (Claim::Held, 3));
    assert_eq!(place.world.effects().len(), 1, "the episode goes on with what was proposed");
    assert!(is_resolved(&view, "o-1"));
    for voice in voices {
        assert_eq!(voice.positions_asked.load(Ordering::SeqCst), 1);
        let turns = voice.turns.lock().unwrap();
        assert_eq!(turns.len(), 1, "asked for a move once: nobody had more to say");
        let shared = |item: &&closer_contracts::work::ContextItem| item.content.0.get("content").is_some();
        assert_eq!(turns[0].context_items.iter().filter(shared).count(), 3, "with every released position");
    }
    assert!(round.moves.iter().all(|made| made.body.r#move == MoveKind::Defer));
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_on_authority_that_is_made_in_turn_keeps_the_proposal_from_being_done() {
    shows!("CP-4.1-31"; by "conference.proposed_in_position");
    let mut place = place(|_| {}).await;
    place.seat("remainder", Voice::quiet());
    place.seat("investigator", Voice::proposing("basic"));
    let regulator = Voice::quiet().moving(|work| Ok(challenge(work, ReasonClass::NoGrant)));
    let regulator = place.seat("regulator", regulator);
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let view = handle.view();
    assert!(place.world.effects().is_empty(), "two that have nothing against it do not outvote one");
    assert!(!is_resolved(&view, "o-1"));
    assert_eq!(regulator.turns.lock().unwrap().len(), 2, "somebody said more than to defer, so all were asked again");
    assert_eq!(round(&view).pass, 2);
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_silent_is_absent_and_the_others_were_asked_beside_it() {
    shows!("CP-4.1-13"; by "conference.seal_due");
    let mut place = place(|inquiry| inquiry.seal_within_ms = 700).await;
    place.seat("remainder", Voice::quiet().takes(60_000, 0));
    place.seat("investigator", Voice::proposing("basic").takes(300, 0));
    place.seat("regulator", Voice::quiet().takes(300, 0));
    let (runtime, handle) = woken(&place).await;
    let view = until(&handle, |view| view.conferences.rounds().any(|round| round.report.is_some())).await;
    let report = report(&view);
    assert_eq!(label(&report, "remainder"), Label::Absent);
    assert_eq!(label(&report, "investigator"), Label::Independent);
    assert_eq!(label(&report, "regulator"), Label::Independent, "nobody waited for the silent one before being asked");
    settle(&handle).await;
    assert_eq!(place.world.effects().len(), 1);
    runtime.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_answers_after_the_release_is_informed() {
    shows!("CP-4.1-14"; by "conference.informed");
    let mut place = place(|inquiry| inquiry.seal_within_ms = 1_000).await;
    place.seat("remainder", Voice::quiet().takes(1_600, 0));
    place.seat("investigator", Voice::quiet());
    place.seat("regulator", Voice::quiet().takes(0, 900).moving(|work| Ok(challenge(work, ReasonClass::Omission))));
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let report = report(&handle.view());
    assert_eq!(label(&report, "remainder"), Label::Informed);
    assert_eq!(report.independence.count, 2, "and is not counted");
    runtime.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_cannot_be_reached_is_a_counted_failure_and_nobody_waits_for_it() {
    shows!("CP-C6-06"; by "conference.answer_failed");
    let mut place = place(|_| {}).await;
    let silent = place.seat("remainder", Voice::new(|_| Err(unreachable())));
    place.seat("investigator", Voice::proposing("basic"));
    place.seat("regulator", Voice::quiet().moving(|_| Err(unreachable())));
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(view.failures.get(&ActorId::from("remainder")), Some(&1));
    assert_eq!(view.failures.get(&ActorId::from("regulator")), Some(&1), "a move that failed is one as well");
    assert_eq!(view.failures.get(&ActorId::from("investigator")), None);
    assert_eq!(silent.positions_asked.load(Ordering::SeqCst), 1, "nobody asks again");
    assert_eq!(label(&report(&view), "remainder"), Label::Absent);
    assert!(
        view.ledger
            .balance(&closer_protocol::ledger::deployment_budget())
            .iter()
            .all(|(_, _, reserved, _)| *reserved == 0)
    );
    drop(handle);
    runtime.stop().await.unwrap();
    assert_eq!(place.refusals().await, [RefusalCode::NoAnswer, RefusalCode::NoAnswer]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_refused_is_a_failure_and_the_conference_goes_on() {
    let mut place = place(|inquiry| inquiry.allowed_moves.retain(|allowed| *allowed != MoveKind::Challenge)).await;
    place.seat("remainder", Voice::quiet());
    place.seat("investigator", Voice::proposing("basic"));
    let regulator = Voice::quiet().moving(|work| Ok(challenge(work, ReasonClass::NoGrant)));
    let regulator = place.seat("regulator", regulator);
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(view.failures.get(&ActorId::from("regulator")), Some(&1));
    assert_eq!(regulator.turns.lock().unwrap().len(), 1, "and it is not asked again");
    assert_eq!(report(&view).ending, Ending::RuleApplied);
    assert_eq!(place.world.effects().len(), 1);
    drop(handle);
    runtime.stop().await.unwrap();
    assert!(place.refusals().await.contains(&RefusalCode::MoveNotAllowed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_worker_and_the_validator_need_no_conference() {
    shows!("CP-3.3-06"; by "episode.coalition_confers");
    let mut founding = with_coalition(founding(&[("o-1", "service-a", "p-1")]), &["clerk"], |_| {});
    for item in &mut founding.items {
        if let closer_contracts::item::Item::Coalition(coalition) = item {
            coalition.inquiry = None;
        }
    }
    let mut place = Place::found(&founding, proposes("basic")).await;
    let clerk = place.seat("clerk", Voice::proposing("basic"));
    let (runtime, handle) = woken(&place).await;
    settle(&handle).await;
    let view = handle.view();
    assert_eq!(clerk.positions_asked.load(Ordering::SeqCst), 1, "the coalition's member does the work");
    assert_eq!(view.conferences.rounds().count(), 0);
    assert!(is_resolved(&view, "o-1"));
    runtime.stop().await.unwrap();
}

/// What a conference came to, without what differs from run to run.
fn came_to(view: &View) -> (Vec<(String, Label)>, usize, usize, bool) {
    let report = report(view);
    let attended = report.attendance.iter().map(|attended| (attended.seat.actor.to_string(), attended.label));
    let moves = round(view).moves.iter().filter(|made| made.body.r#move != MoveKind::Defer).count();
    (attended.collect(), moves, round(view).positions.len(), is_resolved(view, "o-1"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conference_that_dies_after_any_append_comes_to_the_same_end() {
    let mut stages = Vec::new();
    for halt_after in (1..=30).step_by(2) {
        let mut place = place(|_| {}).await;
        place.seat("remainder", Voice::quiet());
        place.seat("investigator", Voice::proposing("basic"));
        let challenging = |work: &closer_contracts::work::Work| Ok(challenge(work, ReasonClass::Omission));
        place.seat("regulator", Voice::quiet().moving(challenging));
        let log = open(place.directory.path()).await;
        let options = Options { halt_after: Some(halt_after), ..Options::default() };
        let starting = closer_actors::Runtime::start(log, place.ports(), options);
        if let Ok(Ok(runtime)) = tokio::time::timeout(Duration::from_secs(5), starting).await {
            let handle = runtime.handle();
            let event = handle.submit(price(&handle, "service-a", "e-1"));
            drop(tokio::time::timeout(Duration::from_millis(400), event).await);
            tokio::time::sleep(Duration::from_millis(400)).await;
            drop(handle);
            runtime.kill().await;
        }
        let left = place.replay().await;
        let stage = left.conferences.rounds().last().map(|round| {
            (round.asked.len(), round.positions.len(), round.seal.is_some(), round.release.is_some(), round.moves.len())
        });
        place.seat(
            "regulator",
            match stage {
                // The move that landed is not made again.
                Some((_, _, _, _, moves))
                    if moves > 0
                        && left.conferences.rounds().last().is_some_and(|round| {
                            round.moves.iter().any(|made| made.body.actor.as_str() == "regulator")
                        }) =>
                {
                    Voice::quiet()
                }
                _ => Voice::quiet().moving(challenging),
            },
        );
        let runtime = place.start(Options::default()).await;
        let handle = runtime.handle();
        drop(handle.submit(price(&handle, "service-a", "e-1")).await.unwrap());
        settle(&handle).await;
        let three = THREE.map(|actor| (actor.to_owned(), Label::Independent)).to_vec();
        assert_eq!(came_to(&handle.view()), (three, 1, 3, true), "after {halt_after} appends, at {stage:?}");
        assert_eq!(place.world.effects().len(), 1);
        stages.extend(stage);
        drop(handle);
        runtime.stop().await.unwrap();
    }
    assert!(stages.iter().any(|(_, positions, ..)| *positions < 3), "some died before every position was there");
    assert!(
        stages.iter().any(|(.., released, moves)| *released && *moves < 6),
        "some after the release and before the last move: {stages:?}"
    );
}
