//! Work that lies with an agent outside: whose it is, until when, what a second answer comes to, what is told to whom.

use crate::support::{begun, recorded, refused, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::auth::SigningScope;
use closer_contracts::envelope::Payload;
use closer_contracts::id::{ActorId, EpisodeId, EvidenceId, WorkId};
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::refs::{ActorRef, Amounts, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::Relation;
use closer_protocol::episode::Next;
use closer_protocol::input::{Answer as Answered, Input};
use closer_protocol::work::outside::{self, WorkStanding};
use closer_protocol::work::{HandedIn, WorkTaken, hand_in};
use closer_protocol::{Reply, advice, work};
use closer_scenarios::founding::identity;
use closer_scenarios::{Deployment, Space, worker};

fn agent(id: &str) -> Item {
    Item::Identity(identity(id, IdentityKind::Agent, &[ProducerRole::Participant], &["plan.change"]))
}

/// A space whose worker is an agent outside, and a second agent that nobody asks; the work that waits for the first.
fn waiting(answer: &str) -> (Space, EpisodeId, WorkId) {
    let deployment = Deployment::default().with(agent("worker")).with(agent("worker-2"));
    let mut space = Space::found(&deployment, worker::proposes(answer)).unwrap();
    let episode_id = begun(&mut space);
    let Next::Ask { work_id, .. } = until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. })) else {
        unreachable!("just matched")
    };
    (space, episode_id, work_id)
}

fn participant(id: &str) -> ActorRef {
    ActorRef { actor_id: id.into(), role: ProducerRole::Participant }
}

fn take(space: &mut Space, by: &str, work_id: &WorkId) -> Reply {
    space.submit_artifact(WorkTaken::of(&by.into(), work_id), participant(by), SigningScope::Result).unwrap()
}

fn nothing(space: &Space, work_id: &WorkId) -> Vec<u8> {
    let answer = worker::nothing(&space.view().works.get(work_id).expect("the work").body);
    serde_json::to_vec_pretty(&answer).unwrap()
}

fn returned(space: &mut Space, by: &str, work_id: &WorkId, text: &[u8]) -> Reply {
    let used = Amounts::default();
    let input = match hand_in(space.view(), &by.into(), work_id, text, &space.moment().now) {
        HandedIn::Result(payload) => {
            let payload: Payload = *payload;
            Input::Answer { answer: Answered::Result(space.submission(payload).unwrap()), used }
        }
        HandedIn::Nothing(denial) => {
            Input::Unanswered { work_id: work_id.clone(), denial, used, handed_in_by: Some(by.into()) }
        }
        HandedIn::Move(_) => panic!("no move was asked for"),
    };
    space.submit(input).unwrap()
}

#[test]
fn work_of_an_agent_waits_outside_until_its_answer_is_on_record() {
    let (mut space, episode_id, work_id) = waiting("basic");
    assert!(outside::is_outside(space.view(), &"worker".into()));
    assert!(!outside::is_outside(space.view(), &"user".into()));
    assert!(outside::is_awaited(space.view(), &work_id));
    let answer = nothing(&space, &work_id);
    recorded(&returned(&mut space, "worker", &work_id, &answer));
    assert!(!outside::is_awaited(space.view(), &work_id));
    space.finish(&episode_id).unwrap();
    assert_eq!(space.view().results.len(), 1);
}

#[test]
fn an_answer_to_work_of_another_is_refused_and_takes_nothing_from_it() {
    shows!("CP-C6-08"; by "work.not_issued_to_producer");
    let (mut space, _, work_id) = waiting("basic");
    let answer = nothing(&space, &work_id);
    refused(&returned(&mut space, "worker-2", &work_id, &answer), Code::UnresolvedRef);
    refused(&returned(&mut space, "worker-2", &work_id, b"not an answer"), Code::UnresolvedRef);
    refused(&returned(&mut space, "worker", &"work-unknown".into(), &answer), Code::UnresolvedRef);
    assert!(space.view().failures.is_empty(), "nobody fails for another");
    assert!(outside::told(space.view(), &"worker-2".into(), &work_id, &space.moment()).is_none());
    recorded(&returned(&mut space, "worker", &work_id, &answer));
}

#[test]
fn a_malformed_answer_from_outside_counts_once_and_is_never_mended() {
    shows!("CP-C6-06"; by "work.second_answer");
    for text in [
        &b"{"[..],
        b"[]",
        b"{\"work_id\":\"x\"}",
        b"{\"work_id\":\"a\",\"work_id\":\"a\"}",
        b"\xff",
        br#"{"work_id":"w","claims":[],"action_proposals":[],"assessments":[],"objections":[],"unresolved":[]}"#,
    ] {
        let (mut space, episode_id, work_id) = waiting("basic");
        refused(&returned(&mut space, "worker", &work_id, text), Code::SchemaInvalid);
        assert_eq!(space.view().failures.get(&ActorId::from("worker")), Some(&1), "{text:?}");
        let answer = nothing(&space, &work_id);
        refused(&returned(&mut space, "worker", &work_id, &answer), Code::Duplicate);
        let told = outside::told(space.view(), &"worker".into(), &work_id, &space.moment()).expect("its own");
        assert_eq!(told.failed.map(|(code, _)| code), Some(Code::SchemaInvalid));
        space.finish(&episode_id).unwrap();
        assert!(space.view().results.is_empty());
    }
}

#[test]
fn work_is_answered_once_whatever_a_second_answer_says() {
    let (mut space, _, work_id) = waiting("basic");
    let answer = nothing(&space, &work_id);
    recorded(&returned(&mut space, "worker", &work_id, &answer));
    space.pass(1).unwrap();
    refused(&returned(&mut space, "worker", &work_id, &answer), Code::Duplicate);
    refused(&returned(&mut space, "worker", &work_id, b"{}"), Code::Duplicate);
    assert_eq!(space.view().results.len(), 1);
    assert!(space.view().failures.is_empty());
}

#[test]
fn work_is_taken_up_once_and_by_nobody_else() {
    let (mut space, _, work_id) = waiting("basic");
    refused(&take(&mut space, "worker-2", &work_id), Code::UnresolvedRef);
    recorded(&take(&mut space, "worker", &work_id));
    refused(&take(&mut space, "worker", &work_id), Code::Duplicate);
    refused(&take(&mut space, "worker-2", &work_id), Code::UnresolvedRef);
    let told = outside::told(space.view(), &"worker".into(), &work_id, &space.moment()).expect("its own");
    assert_eq!(told.standing, WorkStanding::Taken.as_str());
    assert!(outside::packet(space.view(), &"worker".into(), &work_id, &space.moment()).is_ok(), "and read again");
    let other = outside::packet(space.view(), &"worker-2".into(), &work_id, &space.moment());
    assert_eq!(other.map(drop).map_err(|denial| denial.code), Err(Code::UnresolvedRef));
}

#[test]
fn a_statement_under_another_id_takes_nothing_up() {
    let (mut space, _, work_id) = waiting("basic");
    let forged = WorkTaken { taken_id: "taken-other".into(), ..WorkTaken::of(&"worker".into(), &work_id) };
    refused(&space.submit_artifact(forged, participant("worker"), SigningScope::Result).unwrap(), Code::SchemaInvalid);
    recorded(&take(&mut space, "worker", &work_id));
}

#[test]
fn work_whose_time_is_over_is_handed_out_no_more() {
    let (mut space, _, work_id) = waiting("basic");
    let packet = |space: &Space| {
        let packet = outside::packet(space.view(), &"worker".into(), &work_id, &space.moment());
        packet.map(drop).map_err(|denial| denial.code)
    };
    space.pass(599_999).unwrap();
    assert_eq!(packet(&space), Ok(()));
    space.pass(1).unwrap();
    assert_eq!(packet(&space), Err(Code::NoAnswer));
    refused(&take(&mut space, "worker", &work_id), Code::NoAnswer);
    assert!(outside::list(space.view(), &"worker".into(), false, &space.moment()).is_empty());
    let all = outside::list(space.view(), &"worker".into(), true, &space.moment());
    assert_eq!(all.iter().map(|told| told.standing).collect::<Vec<_>>(), [WorkStanding::Over.as_str()]);
}

#[test]
fn answered_work_is_handed_out_no_more() {
    let (mut space, _, work_id) = waiting("basic");
    let answer = nothing(&space, &work_id);
    recorded(&returned(&mut space, "worker", &work_id, &answer));
    refused(&take(&mut space, "worker", &work_id), Code::Duplicate);
}

#[test]
fn an_agent_is_told_what_became_of_its_proposals_and_nobody_else_is() {
    let (mut space, episode_id, work_id) = waiting("basic");
    let work = space.view().works.get(&work_id).expect("the work").body.clone();
    let answer = worker::proposes("basic")(&work, space.view());
    let text = serde_json::to_vec(&answer).unwrap();
    recorded(&returned(&mut space, "worker", &work_id, &text));
    space.finish(&episode_id).unwrap();
    let told = outside::told(space.view(), &"worker".into(), &work_id, &space.moment()).expect("its own");
    assert_eq!(told.proposals.len(), answer.action_proposals.len());
    assert!(told.proposals.iter().all(|told| told.attempt == Some("effect_confirmed")), "{told:?}");
    assert!(told.end_reason.is_some(), "it worked alone");
    assert!(outside::told(space.view(), &"worker-2".into(), &work_id, &space.moment()).is_none());
}

#[test]
fn a_packet_is_followed_by_whose_answer_led_to_it_alone() {
    let (mut space, episode_id, work_id) = waiting("basic");
    let work = space.view().works.get(&work_id).expect("the work").body.clone();
    let mut answer = worker::nothing(&work);
    answer.unresolved.push(closer_contracts::work::Unresolved {
        subject: "p-o-1".into(),
        need: closer_contracts::work::Need::Preference,
        text: "which of the two is wanted?".into(),
    });
    let text = serde_json::to_vec(&answer).unwrap();
    recorded(&returned(&mut space, "worker", &work_id, &text));
    space.finish(&episode_id).unwrap();
    let told = outside::told(space.view(), &"worker".into(), &work_id, &space.moment()).expect("its own");
    let [packet] = &told.packets[..] else { panic!("one packet: {told:?}") };
    let followed = outside::followed(space.view(), &"worker".into(), packet, &space.moment()).expect("its own");
    assert_eq!((followed.answer, followed.fate), (None, None));
    assert!(outside::followed(space.view(), &"worker-2".into(), packet, &space.moment()).is_none());
}

#[test]
fn an_answer_from_outside_is_held_to_what_is_on_record() {
    let (mut space, _, work_id) = waiting("basic");
    let work = space.view().works.get(&work_id).expect("the work").body.clone();
    let mut answer = worker::nothing(&work);
    let invented = EvidenceId::from("ev-invented");
    answer.assessments = vec![worker::relation(space.view(), "p-o-1", &invented, Relation::Supports)];
    let text = serde_json::to_vec(&answer).unwrap();
    refused(&returned(&mut space, "worker", &work_id, &text), Code::UnresolvedRef);
    assert_eq!(space.view().failures.get(&ActorId::from("worker")), Some(&1));
    assert!(work::failed_work(&"answer-x".into()).is_some());
}

fn asked(plan: &str) -> advice::Asked {
    let proposal = &worker::proposal("p-o-1", plan);
    advice::Asked {
        actor: "worker".into(),
        tool: "Shell".into(),
        operation: proposal.operation.clone(),
        target: proposal.target.clone(),
        parameters: proposal.parameters.clone(),
        obligation_id: None,
    }
}

#[test]
fn advice_is_what_the_monitor_says_at_that_moment_and_admits_nothing() {
    let (mut space, _, _) = waiting("basic");
    let objections = advice::objections(space.view(), &asked("basic"), &space.moment());
    assert!(objections.is_empty(), "{objections:?}");
    let go_on = advice::draft("advice-1".into(), asked("basic"), &objections);
    recorded(&space.submit_artifact(go_on.clone(), participant("worker"), SigningScope::Action).unwrap());
    // What is not said any more is not put on record as said.
    let stale = advice::Advice { advice_id: "advice-2".into(), parameters: asked("other").parameters, ..go_on };
    refused(&space.submit_artifact(stale, participant("worker"), SigningScope::Action).unwrap(), Code::StaleVersion);
    let against = advice::objections(space.view(), &asked("other"), &space.moment());
    assert_eq!(against.first().map(|denial| denial.code), Some(Code::OutOfBounds));
    let against = advice::draft("advice-3".into(), asked("other"), &against);
    assert_eq!((against.verdict.as_str(), against.code), ("advised_against", Some(Code::OutOfBounds)));
    recorded(&space.submit_artifact(against, participant("worker"), SigningScope::Action).unwrap());
    assert!(space.view().attempts.is_empty() && space.view().calls_under.is_empty(), "nothing is admitted or counted");
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn advice_says_no_to_whoever_lacks_the_capability_or_a_grant() {
    let (space, _, _) = waiting("basic");
    let codes = |asked: &advice::Asked| -> Vec<Code> {
        advice::objections(space.view(), asked, &space.moment()).iter().map(|denial| denial.code).collect()
    };
    let unable = advice::Asked { actor: "user".into(), ..asked("basic") };
    assert_eq!(codes(&unable), [Code::CapabilityUndeclared]);
    let unknown = advice::Asked { operation: "plan.destroy".into(), ..asked("basic") };
    assert!(codes(&unknown).contains(&Code::UnregisteredOperation));
    assert!(codes(&unknown).contains(&Code::MissingAuthority));
}
