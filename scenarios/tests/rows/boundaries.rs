//! What reaches accepted state and the dispatcher, and by whom: a judgment through the user, a rule through its authority,
//! and a result of the same shape from one worker or three. Spec: §4.

use crate::conferring::{Inquiry, by_role};
use crate::support::{
    changed, commit, delta, dispatch, endorse, grants, propose, recorded, refused, since, space, submit, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, RestrictiveAction};
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::item::{AffectedScope, EffectClass, Item, ItemKind, RepeatSafety, Rule, RuleBody, Standing};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::WorkResult;
use closer_protocol::entry::{ArtifactBody, Entry, payload_ref};
use closer_protocol::services;
use closer_scenarios::founding::{grant, operation};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};
use std::collections::{BTreeMap, BTreeSet};

fn add(item: Item) -> Change {
    Change::Add { item: Box::new(item) }
}

/// A change is proposed and endorsed on these authorities, and lacks authority.
#[track_caller]
fn unauthorized(space: &mut Space, changes: Vec<Change>, authorities: Vec<AuthorityRef>) {
    let proposed = delta(space, changes, Vec::new(), authorities);
    recorded(&propose(space, proposed.clone()));
    recorded(&endorse(space, &proposed, Disposition::Endorsed));
    refused(&commit(space, &proposed), Code::MissingAuthority);
}

#[test]
fn a_judgment_from_the_bench_returns_through_the_user() {
    shows!("CP-4-02"; by "bench.answer_not_the_users", "state.authority_verified");
    let mut space = space(worker::proposes("large"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let (decision_id, packet) = space.view().packets.get_min().expect("a packet").clone();
    let before = grants(&space);
    let answer = space.decision(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    let coordinator = services::actor_ref(ProducerRole::Coordinator);
    refused(&space.submit_artifact(answer, coordinator, SigningScope::UserDecision).unwrap(), Code::MissingAuthority);
    let written = add(Item::Grant(grant("grant-written", "plan.change", &["large"])));
    let packet = AuthorityRef { kind: AuthorityKind::UserDecision, reference: payload_ref(&packet.packet.payload) };
    unauthorized(&mut space, vec![written.clone()], vec![packet]);
    let by_the_coordinator = delta(&mut space, vec![written], Vec::new(), Vec::new());
    refused(&submit(&mut space, ProducerRole::Coordinator, by_the_coordinator), Code::MissingAuthority);
    assert_eq!(grants(&space), before);
    let position = space.records().len();
    recorded(&space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap());
    let entries = since(&space, position);
    let place = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().position(wanted).expect("it is on record");
    let decided = place(
        &|entry| matches!(entry, Entry::Artifact(artifact) if matches!(**artifact, ArtifactBody::UserDecision(_))),
    );
    let authenticated = place(&|entry| matches!(entry, Entry::Auth(auth) if auth.identity == "user".into()));
    let committed = place(&|entry| matches!(entry, Entry::Commit(_)));
    assert!(decided < committed && authenticated < committed, "{decided}, {authenticated}, {committed}");
    assert!(grants(&space).len() > before.len());
}

#[test]
fn nothing_that_a_participant_says_changes_what_the_dispatcher_permits() {
    shows!("CP-4-06"; by "state.authority_cited");
    let says_so: Answer = Box::new(|work, view| {
        let mut answer = worker::claims(work, view, "basic", closer_contracts::work::Relation::Supports);
        answer.claims[0].applicability = vec!["plan.buy is registered and granted from now on.".into()];
        WorkResult { action_proposals: vec![worker::proposal("p-o-1", "basic")], ..answer }
    });
    let mut space = space(says_so);
    let governs = |space: &Space| {
        [ItemKind::Operation, ItemKind::ReadbackMethod, ItemKind::Grant, ItemKind::Constraint, ItemKind::Rule]
            .map(|kind| space.view().state.items(kind).map(|accepted| accepted.digest).collect::<Vec<_>>())
    };
    let before = governs(&space);
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(space.view().results.len(), 1);
    assert_eq!(governs(&space), before, "what it says is a result and nothing else");
    let buy = operation("plan.buy", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    let body =
        RuleBody::Decision { required_roles: vec!["worker".into()], blocking_classes: Vec::new(), deterministic: true };
    let rule = Rule { rule_id: "rule.mine".into(), version: 1, body, standing: Standing::Current };
    let held = space.view().state.grant(&"grant-1".into()).expect("the grant").clone();
    let replaces = digest_of(&Item::Grant(held.clone())).unwrap();
    let mut wider = held;
    wider.parameter_bounds.clear();
    for change in [
        add(Item::Operation(buy)),
        add(Item::Rule(rule)),
        add(Item::Grant(grant("grant-2", "plan.change", &["large"]))),
        Change::Revise { item: Box::new(Item::Grant(wider)), replaces },
    ] {
        unauthorized(&mut space, vec![change], Vec::new());
    }
    assert_eq!(governs(&space), before);
}

/// What a space's payloads look like from the first result on: the types in order, and the members of each type.
fn shape(space: &Space) -> (Vec<String>, BTreeMap<String, BTreeSet<String>>) {
    let (mut order, mut members) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    let entries = space.entries().unwrap().into_iter();
    let payloads =
        entries.filter_map(|(_, entry)| if let Entry::Payload(payload) = entry { Some(payload) } else { None });
    for payload in payloads.skip_while(|payload| payload.envelope().r#type.as_str() != "RESULT") {
        let told = payload.envelope().r#type.as_str().to_owned();
        let envelope = serde_json::to_value(payload.envelope()).unwrap();
        let names =
            |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        let known = members.entry(told.clone()).or_default();
        known.extend(names(&envelope));
        known.extend(names(&envelope["body"]).into_iter().map(|name| format!("body.{name}")));
        if order.last() != Some(&told) {
            order.push(told);
        }
    }
    (order, members)
}

#[test]
fn one_worker_and_three_roles_have_the_same_contract_downstream() {
    shows!("CP-4-07");
    let mut alone = space(worker::proposes("basic"));
    recorded(&alone.event("service-a", "price").unwrap());
    alone.run().unwrap();
    let proposing = by_role(|_, work, _| WorkResult {
        action_proposals: vec![worker::proposal("p-o-1", "basic")],
        ..worker::nothing(work)
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "standard", proposing);
    inquiry.released();
    recorded(&inquiry.conclude());
    let episode_id = inquiry.episode_id.clone();
    inquiry.space.finish(&episode_id).unwrap();
    assert_eq!((alone.view().results.len(), inquiry.space.view().results.len()), (1, 3));
    let asked = |space: &Space| {
        let works = space.view().works.values();
        works.map(|work| work.body.output_contract_ref.clone()).collect::<Vec<_>>()
    };
    assert!(asked(&inquiry.space).iter().all(|contract| *contract == asked(&alone)[0]));
    assert_eq!(shape(&alone), shape(&inquiry.space));
}

#[test]
fn participants_and_routers_have_no_way_to_what_the_monitor_goes_by() {
    shows!("CP-2-14"; by "payload_type.producer_unmapped");
    let mut space = space(worker::proposes("basic"));
    let root = space.view().state.root();
    let rule = add(Item::Grant(grant("grant-2", "plan.change", &["large"])));
    let mine = delta(&mut space, vec![rule], Vec::new(), Vec::new());
    let drafted = space.write(ProducerRole::Distiller, &["o-1"], mine.clone()).unwrap();
    let participant = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    for producer in [participant, services::actor_ref(ProducerRole::Router)] {
        let own = changed(&drafted, |envelope| envelope.producer = producer.clone());
        refused(&space.submit_payload(own).unwrap(), Code::MissingAuthority);
        for written in [PayloadType::Action, PayloadType::Adjudication, PayloadType::Evidence, PayloadType::Obligation]
        {
            assert!(!written.producers().contains(&producer.role), "{written} by {}", producer.role);
        }
    }
    assert!(!space.view().deltas.contains_key(&mine.delta_id));
    assert_eq!(space.view().state.root(), root);
    recorded(&space.submit_payload(drafted).unwrap());
}

#[test]
fn every_effect_has_an_earlier_admission_of_its_own() {
    shows!("CP-0-06"; by "monitor.restricted_since");
    let mut everywhere = grant("grant-1", "plan.change", &["basic"]);
    for targets in &mut everywhere.targets {
        targets.address = "*".into();
    }
    let deployment = (2..=4).fold(Deployment::default().with(Item::Grant(everywhere)), |deployment, number| {
        deployment.with_obligation(&format!("o-{number}"), "service-a")
    });
    let each_its_own: Answer = Box::new(|work, _| {
        let proposition = work.question.subject_refs[0].as_str();
        let mut proposal = worker::proposal(proposition, "basic");
        proposal.target.address = proposition.into();
        WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
    });
    let mut space = Space::found(&deployment, each_its_own).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    for number in 1..=3 {
        let episode_id = space.open(&format!("o-{number}")).unwrap();
        space.finish(&episode_id).unwrap();
    }
    space.sends_at_once = false;
    let last = space.open("o-4").unwrap();
    let payload_id = until_dispatch(&mut space, &last);
    recorded(&dispatch(&mut space, &payload_id));
    let everything = AffectedScope::Operation { operation: "plan.change".into() };
    recorded(&space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(everything)).unwrap());
    space.send().unwrap();
    let entries: Vec<Entry> = space.entries().unwrap().into_iter().map(|(_, entry)| entry).collect();
    let performed: Vec<_> = space.world.effects().iter().map(|action| action.attempt_id.clone()).collect();
    assert_eq!(performed.iter().collect::<BTreeSet<_>>().len(), 3, "{performed:?}");
    assert_eq!(performed.len(), 3, "what was admitted and then restricted has not reached the world");
    for attempt_id in performed {
        let places = |wanted: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
            entries.iter().enumerate().filter(|(_, entry)| wanted(entry)).map(|(place, _)| place).collect()
        };
        let admitted = places(&|entry| matches!(entry, Entry::Intent(intent) if intent.attempt_id == attempt_id));
        let told = places(&|entry| matches!(entry, Entry::Outcome(outcome) if outcome.attempt_id == attempt_id));
        assert_eq!(admitted.len(), 1, "{attempt_id}");
        assert!(admitted[0] < told[0], "{attempt_id}");
    }
}
