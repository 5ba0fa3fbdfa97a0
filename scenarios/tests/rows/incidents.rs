//! After an over-disclosure: stop and revoke, withdraw and tell, reconcile, in this order.

use crate::disclosure::{ids, send, with_rules, work_rule};
use crate::requests::{participant, user};
use crate::support::{begun, codes, dispatch, recorded, refused, since, until, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::DisclosureIncident;
use closer_contracts::auth::SigningScope;
use closer_contracts::id::{ActorId, EpisodeId, IncidentId, Key};
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, VersionedRef};
use closer_contracts::shows;
use closer_protocol::entry::{ArtifactBody, Entry, NoticeKind};
use closer_protocol::episode::Next;
use closer_protocol::incident::{self, Answer, Case, ERASE, Erasure, IncidentState, IncidentStep, Step};
use closer_protocol::input::Reply;
use closer_protocol::work::{self, Packet};
use closer_scenarios::founding::{identity, releases};
use closer_scenarios::{Deployment, Space, worker};
use std::sync::Arc;

const WORKERS: [&str; 3] = ["worker", "worker-2", "worker-3"];

/// Three participants; the second can delete what it was given.
fn deployment() -> Deployment {
    let mut rules: Vec<DisclosureRule> =
        WORKERS.iter().map(|&recipient| DisclosureRule { recipient: recipient.into(), ..work_rule() }).collect();
    rules.push(releases("plan.change", "provider", &["input"]));
    let another = |id: &str, capabilities: &[&str]| {
        Item::Identity(identity(id, IdentityKind::Producer, &[ProducerRole::Participant], capabilities))
    };
    with_rules(rules).with(another("worker-2", &["plan.change", ERASE])).with(another("worker-3", &["plan.change"]))
}

fn packet(space: &Space, episode_id: &EpisodeId, recipient: &str) -> Packet {
    let view = space.view();
    let episode = view.episodes.get(episode_id).expect("the episode");
    work::draft(view, episode, &recipient.into(), &"worker".into(), &space.moment().now).unwrap()
}

/// A space in which a packet with `grant-1` went to each of these.
fn spilled(recipients: &[&str]) -> (Space, EpisodeId) {
    let mut space = Space::found(&deployment(), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    for recipient in recipients {
        let packet = packet(&space, &episode_id, recipient);
        assert!(ids(&packet).contains(&"grant-1".to_owned()));
        recorded(&send(&mut space, packet));
    }
    (space, episode_id)
}

fn item(space: &Space, id: &str) -> ArtifactRef {
    let receipts = space.view().released.values();
    let mut items = receipts.flat_map(|receipt| receipt.materialized_item_refs.iter());
    items.find(|item| item.id.as_str() == id).expect("a released item").clone()
}

fn incident(space: &Space, items: &[&str], recipients: &[&str]) -> DisclosureIncident {
    DisclosureIncident {
        incident_id: "incident-1".into(),
        released_item_refs: items.iter().map(|id| item(space, id)).collect(),
        recipient_refs: recipients.iter().map(|&id| id.into()).collect(),
        containment_attempts: Vec::new(),
        notification_attempts: Vec::new(),
        dependent_artifacts: Vec::new(),
        acknowledgments: Vec::new(),
        unknown_copies: Vec::new(),
        incident_owner: "user".into(),
        policy_version: VersionedRef { id: "profile-1".into(), version: 1 },
    }
}

fn submit(space: &mut Space, who: ActorRef, incident: DisclosureIncident) -> Reply {
    space.submit_artifact(incident, who, SigningScope::DisclosureIncident).unwrap()
}

#[track_caller]
fn reported(space: &mut Space, items: &[&str], recipients: &[&str]) {
    let incident = incident(space, items, recipients);
    recorded(&submit(space, user(), incident));
}

fn case(space: &Space) -> Arc<Case> {
    space.view().incidents.get(&IncidentId::from("incident-1")).expect("the case").clone()
}

fn step(space: &mut Space, content: Step) -> IncidentStep {
    IncidentStep { step_id: space.fresh("step").into(), incident_id: "incident-1".into(), content }
}

fn notices(space: &Space) -> IncidentStep {
    incident::notify(space.view(), &case(space), &space.moment().now).unwrap()
}

#[track_caller]
fn told(space: &mut Space) {
    let notices = notices(space);
    recorded(&space.step(user(), notices).unwrap());
}

fn answer(space: &mut Space, who: ActorRef, recipient: &str, answer: Answer) -> Reply {
    let content = Step::Answered { recipient: recipient.into(), answer, reason: "As asked.".into() };
    let step = step(space, content);
    space.step(who, step).unwrap()
}

fn reconcile(space: &mut Space, unknown: &[&str]) -> Reply {
    let content = Step::Reconciled {
        unknown_copies: unknown.iter().map(|&id| ActorId::from(id)).collect(),
        justification: "Everybody was asked.".into(),
    };
    let step = step(space, content);
    space.step(user(), step).unwrap()
}

#[test]
fn release_stops_at_once_and_before_anybody_is_told() {
    shows!("CP-4.3-13", "CP-4.3-14"; by "disclose.release_stopped");
    let (mut space, episode_id) = spilled(&["worker"]);
    let drafted = packet(&space, &episode_id, "worker-2");
    let before = space.records().len();
    reported(&mut space, &["grant-1"], &["worker"]);
    let kinds: Vec<_> = since(&space, before).iter().map(Entry::kind).map(|kind| kind.to_string()).collect();
    assert_eq!(kinds, ["artifact", "auth", "artifact", "notice"], "report and stop are one append");
    assert_eq!(case(&space).state, IncidentState::Contained);
    let report = incident::report(space.view(), &case(&space)).incident;
    assert_eq!((report.released_item_refs.len(), report.recipient_refs.len()), (1, 1));
    assert_eq!((report.policy_version.version, report.containment_attempts.len()), (1, 1));
    refused(&send(&mut space, drafted), Code::ReleaseStopped);
    let anew = packet(&space, &episode_id, "worker-2");
    assert!(!ids(&anew).contains(&"grant-1".to_owned()));
    assert!(anew.disclosure.withheld_categories.contains(&"grant".into()));
    recorded(&send(&mut space, anew));
    let kind = |kind| space.view().notices.values().filter(|notice| notice.kind == kind).count();
    assert_eq!([kind(NoticeKind::DisclosureIncident), kind(NoticeKind::DisclosureWithdrawn)], [1, 0]);
}

#[test]
fn a_stopped_item_is_asked_for_in_vain() {
    shows!("CP-4.3-14"; by "disclose.stopped_item_asked_for");
    let mut audited = deployment();
    audited.founding.profile.disclosure_rules.push(releases("audit", "auditor", &["grant", "obligation"]));
    let mut space = Space::found(&audited, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = packet(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet));
    let ask = |space: &mut Space, recipient, item| space.ask(user(), recipient, Some("audit"), &[item]).unwrap();
    recorded(&ask(&mut space, "auditor", "grant-1"));
    reported(&mut space, &["grant-1"], &["worker"]);
    refused(&ask(&mut space, "auditor", "grant-1"), Code::ReleaseStopped);
    recorded(&ask(&mut space, "auditor", "o-1"));
    recorded(&ask(&mut space, "user", "grant-1"));
}

#[test]
fn a_report_names_what_went_to_whom_under_an_owner_of_its_own() {
    shows!("CP-4.3-13"; by "incident.item_never_released", "incident.recipient_got_nothing", "incident.owner_not_independent", "incident.steps_foretold", "incident.policy_unknown");
    let (mut space, _) = spilled(&["worker"]);
    let report = incident(&space, &["grant-1"], &["worker"]);
    let with = |change: fn(&mut DisclosureIncident)| {
        let mut report = report.clone();
        change(&mut report);
        report
    };
    for (changed, code) in [
        (
            with(|report| {
                let other = ArtifactRef { id: "grant-none".into(), ..report.released_item_refs[0].clone() };
                report.released_item_refs.push(other);
            }),
            Code::UnresolvedRef,
        ),
        (with(|report| report.recipient_refs.push("worker-3".into())), Code::UnresolvedRef),
        (with(|report| report.incident_owner = "worker".into()), Code::MissingAuthority),
        (with(|report| report.policy_version.version = 9), Code::UnresolvedRef),
        (with(|report| report.unknown_copies.push("none, for certain".into())), Code::SchemaInvalid),
    ] {
        refused(&submit(&mut space, participant("worker-2"), changed), code);
    }
    assert!(space.view().incidents.is_empty());
    recorded(&submit(&mut space, participant("worker-2"), report));
}

#[test]
fn what_can_be_revoked_is_and_the_rest_is_listed() {
    shows!("CP-4.3-15"; by "disclose.access_revoked", "episode.packet_withdrawn");
    let (mut space, episode_id) = spilled(&["worker"]);
    until(&mut space, &episode_id, |next| matches!(next, Next::Act { .. }));
    let second = packet(&space, &episode_id, "worker-2");
    let packet_id = second.work.id().to_string();
    recorded(&send(&mut space, second));
    let read = |space: &mut Space| space.ask(participant("worker-2"), "worker-2", Some("work"), &[&packet_id]).unwrap();
    recorded(&read(&mut space));
    assert!(matches!(space.next(&episode_id).unwrap(), Next::Ask { .. }));
    reported(&mut space, &["grant-1"], &["worker", "worker-2"]);
    refused(&read(&mut space), Code::ReleaseStopped);
    assert!(matches!(space.next(&episode_id).unwrap(), Next::End { .. }), "it is not handed out any more");
    let report = incident::report(space.view(), &case(&space)).incident;
    let attempts = report.containment_attempts.iter();
    let attempts: Vec<_> = attempts.map(|attempt| (attempt.recipient.as_str(), attempt.outcome.as_str())).collect();
    let expected = [("worker", "access_revoked"), ("worker", "copy_irrevocable"), ("worker-2", "access_revoked")];
    assert_eq!(attempts, expected);
}

#[test]
fn the_withdrawal_is_appended_and_changes_and_hides_nothing() {
    shows!("CP-4.3-16"; by "incident.tombstone_partial");
    let (mut space, _) = spilled(&WORKERS);
    let before = space.view().released.clone();
    reported(&mut space, &["grant-1"], &WORKERS);
    let drafted = notices(&space);
    let mut partial = drafted.clone();
    let Step::Notified { withdrawn, .. } = &mut partial.content else { unreachable!("notices") };
    withdrawn.clear();
    refused(&space.step(user(), partial).unwrap(), Code::CoverageMissing);
    recorded(&space.step(user(), drafted.clone()).unwrap());
    let Step::Notified { withdrawn, receipts, .. } = drafted.content else { unreachable!("notices") };
    assert_eq!(withdrawn, [item(&space, "grant-1")]);
    for (id, receipt) in &before {
        assert_eq!(space.view().released.get(id), Some(receipt), "as it was");
    }
    assert!(receipts.iter().all(|receipt| before.contains_key(&Key::from(receipt.id.as_str()))) && receipts.len() == 3);
}

#[test]
fn nothing_that_is_done_about_it_hides_it_or_says_that_a_copy_is_gone() {
    shows!("CP-4.3-23", "CP-4.3-24", "CP-4.3-27");
    let (mut space, _) = spilled(&["worker"]);
    let before = space.view().released.clone();
    reported(&mut space, &["grant-1"], &["worker"]);
    told(&mut space);
    recorded(&answer(&mut space, participant("worker"), "worker", Answer::Acknowledged));
    recorded(&reconcile(&mut space, &[]));
    let report = incident::report(space.view(), &case(&space));
    assert_eq!(report.state, IncidentState::Reconciled);
    assert!(report.limits.as_str().contains("never shown"));
    assert_eq!(report.unresolved_exposure.len(), 1, "said, and not proved");
    assert!(report.unresolved_exposure[0].text.as_str().contains("cannot be proved"));
    recorded(&space.ask(user(), "user", Some("incident"), &["incident-1"]).unwrap());
    let replayed = space.replay().unwrap();
    assert_eq!(replayed.incidents, space.view().incidents);
    assert!(before.iter().all(|(id, receipt)| replayed.released.get(id) == Some(receipt)), "what went out stays told");
}

#[test]
fn everybody_is_told_by_whom_it_may_be_told_and_of_nothing_new() {
    shows!("CP-4.3-17", "CP-4.3-25"; by "incident.recipient_untold", "incident.notice_tells_more", "incident.step_of_another", "incident.notice_partial");
    let (mut space, episode_id) = spilled(&["worker"]);
    let narrow = |work: &mut closer_contracts::work::Work, receipt: &mut closer_contracts::audit::DisclosureReceipt| {
        work.context_items.retain(|item| item.reference.id.as_str() != "grant-1");
        receipt.materialized_item_refs.retain(|reference| reference.id.as_str() != "grant-1");
    };
    let second = crate::disclosure::forged(&packet(&space, &episode_id, "worker-2"), narrow);
    recorded(&send(&mut space, second));
    reported(&mut space, &["grant-1", "o-1"], &["worker", "worker-2"]);
    let drafted = notices(&space);
    let with = |change: fn(&mut Vec<incident::ScopedNotice>)| {
        let mut step = drafted.clone();
        let Step::Notified { notices, .. } = &mut step.content else { unreachable!("notices") };
        change(notices);
        step
    };
    let more = with(|notices| {
        let all = notices[0].receipt.materialized_item_refs.clone();
        notices[1].receipt.materialized_item_refs = all;
    });
    refused(&space.step(user(), more).unwrap(), Code::DisclosureDenied);
    refused(&space.step(user(), with(|notices| notices.truncate(1))).unwrap(), Code::CoverageMissing);
    let less = with(|notices| notices[0].receipt.materialized_item_refs.truncate(1));
    refused(&space.step(user(), less).unwrap(), Code::CoverageMissing);
    refused(&space.step(participant("worker"), drafted.clone()).unwrap(), Code::MissingAuthority);
    let before = space.records().len();
    recorded(&space.step(user(), drafted).unwrap());
    let entries = since(&space, before);
    assert!(matches!(&entries[..2], [Entry::Artifact(_), Entry::Auth(auth)] if auth.identity.as_str() == "user"));
    let told = entries.iter().filter_map(|entry| if let Entry::Notice(notice) = entry { Some(notice) } else { None });
    let told: Vec<_> =
        told.map(|notice| (notice.owner.clone().expect("a recipient").to_string(), notice.subjects.len())).collect();
    assert_eq!(told, [("worker".to_owned(), 2), ("worker-2".to_owned(), 1)]);
    let own = |entry: &&Entry| matches!(entry, Entry::Artifact(artifact) if matches!(**artifact, ArtifactBody::DisclosureReceipt(_)));
    assert_eq!(entries.iter().filter(own).count(), 2, "each notice under a receipt of its own");
}

#[test]
fn what_derives_from_an_item_is_listed_and_its_use_suspended() {
    shows!("CP-4.3-18", "CP-4.3-19"; by "monitor.inputs_suspended", "incident.dependents_untold");
    let mut space = Space::found(&deployment().with_obligation("o-2", "service-b"), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let proposal = space.view().actions.get(&payload_id).expect("the action").reference();
    recorded(&space.event("service-b", "price").unwrap());
    let unrelated = space.view().events.values().map(closer_protocol::view::OnRecord::reference).collect::<Vec<_>>();
    reported(&mut space, &["grant-1"], &["worker"]);
    let reply = dispatch(&mut space, &payload_id);
    assert_eq!(codes(&reply), [Code::Restricted]);
    assert_eq!(reply.refusal().and_then(|denial| denial.offending.as_deref()), Some("incident-1"));
    let drafted = notices(&space);
    let Step::Notified { dependent_artifacts, .. } = &drafted.content else { unreachable!("notices") };
    assert!(dependent_artifacts.contains(&proposal));
    assert!(unrelated.iter().all(|event| !dependent_artifacts.contains(event)));
    let mut silent = drafted.clone();
    let Step::Notified { dependent_artifacts, .. } = &mut silent.content else { unreachable!("notices") };
    dependent_artifacts.retain(|artifact| *artifact != proposal);
    refused(&space.step(user(), silent).unwrap(), Code::CoverageMissing);
    recorded(&space.step(user(), drafted).unwrap());
    refused(&dispatch(&mut space, &payload_id), Code::Restricted);
    recorded(&reconcile(&mut space, &["worker"]));
    recorded(&dispatch(&mut space, &payload_id));
}

#[test]
fn an_answer_from_what_was_withdrawn_is_not_taken() {
    shows!("CP-4.3-19"; by "work.use_suspended");
    let (mut space, episode_id) = spilled(&["worker"]);
    let view = space.view().clone();
    let (work_id, issued) = view.works.iter().next().expect("the work");
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let answer = worker::nothing(&issued.body);
    let answer = work::draft_result(&view, episode, &"worker".into(), work_id, answer, &now).unwrap();
    reported(&mut space, &["grant-1"], &["worker"]);
    refused(&space.submit_payload(answer.clone()).unwrap(), Code::Restricted);
    told(&mut space);
    recorded(&reconcile(&mut space, &["worker"]));
    recorded(&space.submit_payload(answer).unwrap());
}

#[test]
fn deletion_is_asked_of_those_who_can() {
    shows!("CP-4.3-20"; by "incident.erasure_supported");
    let (mut space, _) = spilled(&["worker", "worker-2"]);
    reported(&mut space, &["grant-1"], &["worker", "worker-2"]);
    told(&mut space);
    let case = case(&space);
    let Some((_, Step::Notified { notices, .. })) = case.steps.last() else { panic!("{case:?}") };
    let asked: Vec<_> = notices.iter().map(|notice| (notice.receipt.recipient.as_str(), notice.erasure)).collect();
    assert_eq!(asked, [("worker", Erasure::Unsupported), ("worker-2", Erasure::Requested)]);
}

#[test]
fn one_acknowledges_one_fails_one_is_silent_and_all_three_are_kept_apart() {
    shows!("CP-4.3-21"; by "incident.silence_untold", "incident.answer_of_no_recipient");
    let (mut space, _) = spilled(&WORKERS);
    reported(&mut space, &["grant-1"], &WORKERS);
    told(&mut space);
    refused(&answer(&mut space, user(), "worker", Answer::Acknowledged), Code::MissingAuthority);
    let stranger = ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer };
    refused(&answer(&mut space, stranger, "observer-1", Answer::Acknowledged), Code::CoverageMissing);
    recorded(&answer(&mut space, participant("worker"), "worker", Answer::Acknowledged));
    recorded(&answer(&mut space, user(), "worker-2", Answer::Failed));
    refused(&reconcile(&mut space, &[]), Code::CoverageMissing);
    recorded(&reconcile(&mut space, &["worker-3"]));
    let report = incident::report(space.view(), &case(&space));
    assert_eq!(report.state, IncidentState::ReconciledWithUnknowns);
    assert_eq!(report.incident.acknowledgments.iter().map(|a| a.recipient.as_str()).collect::<Vec<_>>(), ["worker"]);
    let failed = report.incident.notification_attempts.iter().filter(|attempt| attempt.outcome.as_str() == "failed");
    assert_eq!(failed.map(|attempt| attempt.recipient.as_str()).collect::<Vec<_>>(), ["worker-2"]);
    assert_eq!(report.incident.unknown_copies, ["worker-3 gave no answer".into()]);
    let standings: Vec<_> = report.unresolved_exposure.iter().map(|exposure| exposure.standing.as_str()).collect();
    assert_eq!(standings, ["acknowledged", "failed", "unknown"], "nobody's copy is shown to be gone");
}

#[test]
fn the_steps_come_in_their_order_and_the_case_ends_by_a_reconciliation_alone() {
    shows!("CP-4.3-28", "CP-4.3-26", "CP-12-19"; by "incident.step_out_of_order");
    let (mut space, _) = spilled(&["worker"]);
    reported(&mut space, &["grant-1"], &["worker"]);
    let contained = incident::contain(space.view(), &case(&space), &space.moment().now);
    let again = IncidentStep { step_id: "step-again".into(), ..contained };
    assert!(codes(&space.step(user(), again).unwrap()).contains(&Code::WrongPhase));
    refused(&reconcile(&mut space, &["worker"]), Code::WrongPhase);
    refused(&answer(&mut space, participant("worker"), "worker", Answer::Acknowledged), Code::WrongPhase);
    told(&mut space);
    let twice = IncidentStep { step_id: "step-twice".into(), ..notices(&space) };
    refused(&space.step(user(), twice).unwrap(), Code::WrongPhase);
    recorded(&answer(&mut space, participant("worker"), "worker", Answer::Acknowledged));
    assert_eq!(case(&space).state, IncidentState::Reconciling, "all have answered, and it is not over");
    recorded(&reconcile(&mut space, &[]));
    refused(&reconcile(&mut space, &[]), Code::WrongPhase);
    assert_eq!(case(&space).state, IncidentState::Reconciled);
}

#[test]
fn whoever_answers_for_it_reads_the_report_and_nobody_else() {
    shows!("CP-4.3-22", "CP-C14-13"; by "disclose.incident_owner_reads", "disclose.item_not_released");
    let deployment = deployment()
        .with_profile(|profile| profile.restrictive_authority = "guardian".into())
        .with(Item::Identity(identity("guardian", IdentityKind::User, &[ProducerRole::User], &[])));
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = packet(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet));
    let mut report = incident(&space, &["grant-1"], &["worker"]);
    report.incident_owner = "guardian".into();
    recorded(&submit(&mut space, user(), report));
    let owner = || ActorRef { actor_id: "guardian".into(), role: ProducerRole::User };
    recorded(&space.ask(owner(), "guardian", Some("incident"), &["incident-1"]).unwrap());
    refused(&space.ask(owner(), "guardian", Some("incident"), &["grant-1"]).unwrap(), Code::ReleaseStopped);
    refused(&space.ask(owner(), "guardian", Some("incident"), &["o-1"]).unwrap(), Code::DisclosureDenied);
    let curious = space.ask(participant("worker"), "worker", Some("work"), &["incident-1"]).unwrap();
    refused(&curious, Code::DisclosureDenied);
    let drafted = notices(&space);
    recorded(&space.step(owner(), drafted).unwrap());
}
