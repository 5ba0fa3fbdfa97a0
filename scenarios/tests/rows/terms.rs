//! Terms that carry behaviour: who governs, what persists, what is bounded, and by which rule something is decided.
//! Spec: abstract, §1, §2.

use crate::actions::{readback_now, ready};
use crate::readbacks::observed;
use crate::separations::claim_on;
use crate::support::{
    begun, changed, claimed, codes, commit, delta, dispatch, endorse, moved, propose, recorded, refused, space, status,
    submit, until,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, Delegability, Grant};
use closer_contracts::auth::{SigningScope, Subject};
use closer_contracts::canonical::{from_value, to_value};
use closer_contracts::delta::Change;
use closer_contracts::evidence::ReadbackOutcome;
use closer_contracts::id::{ActorId, ObligationId};
use closer_contracts::item::{Dependency, IdentityKind, Item, ItemKind};
use closer_contracts::obligation::{Obligation, ObligationStatus};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::reentry::{TimeReached, TypedPredicate};
use closer_contracts::refs::{ActorRef, Plain, ProducerRole, TypedValue, VersionedRef};
use closer_contracts::work::{Need, Relation};
use closer_contracts::{Check, Digest, Payload, shows};
use closer_protocol::entry::{Activation, ActivationEntry, Entry, EpisodeEnd};
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Submission};
use closer_protocol::{adjudicate, services};
use closer_scenarios::founding::{grant, identity, plan_target};
use closer_scenarios::{Deployment, Space, worker};
use std::sync::Arc;

fn the_worker() -> ActorRef {
    ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant }
}

/// The user declares these changes; they are proposed, endorsed and asked for.
fn instructed(space: &mut Space, changes: Vec<Change>) -> closer_protocol::Reply {
    let authority = space.instruct(&changes).unwrap();
    let proposed = delta(space, changes, Vec::new(), vec![authority]);
    recorded(&propose(space, proposed.clone()));
    recorded(&endorse(space, &proposed, Disposition::Endorsed));
    commit(space, &proposed)
}

#[test]
fn every_assessment_has_an_authenticated_author() {
    shows!("CP-0-05"; by "intake.producer_established");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Assess { payload_id } = until(&mut space, &episode_id, |next| matches!(next, Next::Assess { .. })) else {
        unreachable!("just matched")
    };
    let view = space.view().clone();
    let (episode, action) = (view.episodes.get(&episode_id).expect("it"), view.actions.get(&payload_id).expect("it"));
    let assessed = adjudicate::pre_action(&view, episode, action, &space.moment().now).unwrap();
    let by_the_worker =
        Subject { producer: "worker".into(), role: Some(ProducerRole::Participant), ..Subject::payload(&assessed) };
    let auth = space.authenticate(&by_the_worker).unwrap();
    let producer = assessed.envelope().producer.clone();
    let before = view.adjudications.len();
    let borrowed = Submission { content: Arc::new(assessed), producer, auth };
    refused(&space.submit(Input::Payload(borrowed)).unwrap(), Code::Unauthenticated);
    assert_eq!(space.view().adjudications.len(), before);
    space.finish(&episode_id).unwrap();
    let entries = space.entries().unwrap();
    let authenticated = |payload: &Payload| {
        entries.iter().any(|(_, entry)| {
            matches!(entry, Entry::Auth(auth) if auth.content_digest == payload.content_digest()
                && auth.identity == payload.envelope().producer.actor_id)
        })
    };
    let mut assessments = 0;
    for (_, entry) in &entries {
        if let Entry::Payload(payload) = entry
            && matches!(payload.envelope().r#type, PayloadType::Result | PayloadType::Adjudication)
        {
            let author = &payload.envelope().producer;
            let identity = space.view().state.identity(&author.actor_id).expect("it resolves");
            assert!(identity.roles.contains(&author.role) && authenticated(payload), "{author:?}");
            assessments += 1;
        }
    }
    assert_eq!(assessments, 1 + space.view().adjudications.len(), "an answer and every judgment");
    assert!(space.view().adjudications.len() >= before + 3, "of three moments");
}

#[test]
fn a_conclusion_or_closure_takes_the_semantic_adjudication_whoever_writes_it() {
    shows!("CP-0-08"; by "commit.not_endorsed");
    let closes = Change::SetStatus {
        obligation_id: "o-1".into(),
        status: ObligationStatus::Resolved,
        successor: None,
        reason: "The worker says that it is done.".into(),
    };
    let mut space = space(Box::new(|work, _| worker::nothing(work)));
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let newest = space.newest_evidence().expect("evidence");
    let relation = worker::relation(space.view(), "p-o-1", &newest, Relation::Supports);
    let before = space.view().state.reference();
    for change in [claim_on(vec![relation]), closes] {
        for role in [ProducerRole::Scheduler, ProducerRole::Monitor] {
            let written = delta(&mut space, vec![change.clone()], Vec::new(), Vec::new());
            refused(&submit(&mut space, role, written), Code::MissingAuthority);
        }
        let written = delta(&mut space, vec![change], Vec::new(), Vec::new());
        recorded(&propose(&mut space, written.clone()));
        refused(&commit(&mut space, &written), Code::MissingEndorsement);
        recorded(&endorse(&mut space, &written, Disposition::Rejected));
        refused(&commit(&mut space, &written), Code::MissingEndorsement);
    }
    assert_eq!(space.view().state.reference(), before);
    assert!(!claimed(&space) && status(&space, "o-1") == ObligationStatus::Active);
}

#[test]
fn a_judgment_of_the_users_reaches_the_bench_and_no_participant_makes_it() {
    shows!("CP-0-10"; by "episode.judgment_is_the_users", "bench.answer_not_the_users");
    let mut space = space(worker::leaves_open(Need::Tradeoff));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(space.view().packets.len(), 1);
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    let decision = space.decision(&decision_id, DecisionType::Preference).unwrap();
    refused(
        &space.submit_artifact(decision, the_worker(), SigningScope::UserDecision).unwrap(),
        Code::MissingAuthority,
    );
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    assert!(space.view().decisions.is_empty() && !claimed(&space));
    recorded(&space.answer(&decision_id, DecisionType::Preference).unwrap());
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn an_obligation_says_where_it_comes_from_how_far_it_goes_what_settles_it_and_what_it_may() {
    shows!("CP-1-03");
    let space = space(worker::proposes("basic"));
    let whole = to_value(space.view().state.obligation(&"o-1".into()).expect("the obligation")).unwrap();
    let read = |value| from_value::<Obligation>(value).and_then(|obligation| obligation.check());
    assert!(read(whole.clone()).is_ok());
    for dropped in ["origin", "scope", "resolution_conditions", "authority_boundary"] {
        let mut without = whole.clone();
        without.as_object_mut().expect("an object").remove(dropped).expect("it is there");
        assert_eq!(read(without).map_err(|fault| fault.code), Err(Code::SchemaInvalid), "{dropped}");
    }
}

/// A grant like the founding one, from this issuer.
fn granted_by(issuer: &str, id: &str) -> Grant {
    let mut made = grant(id, "plan.change", &["basic"]);
    made.authenticated_issuer.identity = issuer.into();
    made
}

#[test]
fn every_chain_of_authority_ends_in_the_user() {
    shows!("CP-2-01"; by "state.chain_reaches_user");
    let mut delegable = grant("grant-1", "plan.change", &["basic", "small"]);
    delegable.delegability = Delegability::Named { delegates: vec!["worker".into()], depth: 1 };
    let deployment = Deployment::default().with(Item::Grant(delegable));
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let add = |item| Change::Add { item: Box::new(item) };
    let self_made = add(Item::Grant(granted_by("worker", "grant-self-made")));
    refused(&instructed(&mut space, vec![self_made]), Code::MissingAuthority);
    let rests_on_it = |id: &str| Change::AddDependency {
        dependency: Dependency {
            dependency_id: format!("delegation-{id}").as_str().into(),
            premise: "grant-1".into(),
            dependent: id.into(),
        },
    };
    let passed_on =
        |issuer| vec![add(Item::Grant(granted_by(issuer, "grant-passed-on"))), rests_on_it("grant-passed-on")];
    refused(&instructed(&mut space, passed_on("observer-1")), Code::MissingAuthority);
    recorded(&instructed(&mut space, passed_on("worker")));
    let colleague = identity("colleague", IdentityKind::User, &[ProducerRole::User], &[]);
    let by_the_colleague = add(Item::Grant(granted_by("colleague", "grant-of-the-colleague")));
    recorded(&instructed(&mut space, vec![add(Item::Identity(colleague)), by_the_colleague]));
    let issuer = space.view().state.identity(&"issuer-1".into()).expect("the issuer").clone();
    let appoints_itself =
        closer_contracts::item::Identity { actor_id: "issuer-2".into(), appointed_by: "issuer-2".into(), ..issuer };
    refused(&instructed(&mut space, vec![add(Item::Identity(appoints_itself))]), Code::MissingAuthority);

    let state = &space.view().state;
    for accepted in state.items(ItemKind::Identity) {
        let identity = accepted.item.as_identity().expect("an identity");
        assert_eq!(identity.appointed_by, ActorId::from("user"), "{}", identity.actor_id);
    }
    for accepted in state.items(ItemKind::Grant) {
        let grant = accepted.item.as_grant().expect("a grant");
        let premise = state.premises_of(&(&grant.grant_id).into()).next();
        let root = premise.map_or(grant, |id| state.grant(&id.as_str().into()).expect("its premise"));
        let issuer = state.identity(&root.authenticated_issuer.identity).expect("its issuer");
        assert!(issuer.roles.contains(&ProducerRole::User), "{}: {}", grant.grant_id, issuer.actor_id);
    }
}

#[test]
fn no_space_is_founded_on_a_grant_that_the_user_did_not_give() {
    shows!("CP-2-01"; by "state.chain_reaches_user");
    let deployment = Deployment::default().with(Item::Grant(granted_by("worker", "grant-1")));
    let founded = Space::found(&deployment, worker::proposes("basic"));
    let told = founded.err().map(|broken| broken.to_string()).unwrap_or_default();
    assert!(told.contains("does not end in the user"), "{told}");
    assert!(Space::found(&Deployment::default(), worker::proposes("basic")).is_ok());
}

#[test]
fn six_kinds_of_things_are_found_by_their_id_after_a_restart() {
    shows!("CP-2-04");
    let mut space = space(worker::proposes("large"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let packet = space.view().packets.keys().next().expect("a packet").clone();
    recorded(&space.answer(&packet, DecisionType::ScopedAuthorization).unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
    let before = space.view().clone();
    space.crash().unwrap();
    let after = space.view();
    let kept = [
        before.events.keys().all(|id| after.events.contains_key(id)) && !before.events.is_empty(),
        before.commits.keys().all(|version| {
            let known = |view: &closer_protocol::View| view.commits.get(version).map(|made| made.commit.after);
            known(&before) == known(after)
        }) && before.commits.len() > 3,
        before.evidence.keys().all(|id| after.evidence.contains_key(id)) && !before.evidence.is_empty(),
        before.actions.keys().all(|id| after.actions.contains_key(id))
            && before.deltas.keys().all(|id| after.deltas.contains_key(id))
            && !before.actions.is_empty()
            && !before.deltas.is_empty(),
        before.decisions.get(&packet) == after.decisions.get(&packet)
            && before.decisions.contains_key(&packet)
            && before.adjudications.keys().all(|id| after.adjudications.contains_key(id)),
        before.commits.values().all(|committed| {
            let receipt = committed.receipt_ref.as_ref().expect("its receipt");
            after.commits.values().any(|kept| kept.receipt_ref.as_ref() == Some(receipt))
        }),
    ];
    assert_eq!(kept, [true; 6], "events, states, evidence, proposals, decisions, receipts");
}

#[test]
fn what_is_accepted_now_is_the_fold_of_the_transitions() {
    shows!("CP-3.1-04"; by "state.replay_root");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let rebuilt = space.replay().unwrap().state;
    assert_eq!(rebuilt.reference(), space.view().state.reference());
    assert_eq!(rebuilt.root(), space.view().state.root());
    let mut view = closer_protocol::View::default();
    let mut diverged = None;
    for record in space.records() {
        let mut entry = Entry::read(record).unwrap();
        if let Entry::Commit(commit) = &mut entry {
            let mut other = (**commit).clone();
            other.state_root = Digest::of(b"another state");
            *commit = Arc::new(other);
        }
        if let Err(divergence) = view.fold(&entry, &record.admitted_at) {
            diverged = Some(divergence);
            break;
        }
    }
    assert!(diverged.is_some(), "a transition that leads elsewhere is no part of it");
}

#[test]
fn an_episode_works_on_a_named_obligation_within_a_bound() {
    shows!("CP-2-06"; by "episode.obligation_not_open", "episode.bound_reached");
    let mut space = space(worker::proposes("basic"));
    let unnamed = Input::Open { obligation_id: "o-none".into(), episode_id: "episode-1".into() };
    refused(&space.submit(unnamed).unwrap(), Code::UnresolvedRef);
    let episode_id = begun(&mut space);
    let began = space.entries().unwrap().into_iter().find_map(|(_, entry)| {
        if let Entry::Activation(ActivationEntry::Began(activation)) = entry { Some(activation) } else { None }
    });
    let began = to_value(&began.expect("it began")).unwrap();
    assert!(from_value::<Activation>(began.clone()).is_ok());
    for dropped in ["obligation_id", "stops_at"] {
        let mut without = began.clone();
        without.as_object_mut().expect("an object").remove(dropped).expect("it is there");
        let fault = from_value::<Activation>(without).err().map(|fault| fault.code);
        assert_eq!(fault, Some(Code::SchemaInvalid), "{dropped}");
    }
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let bound = space.view().state.limits().episode_ms_max;
    space.pass(bound).unwrap();
    space.finish(&episode_id).unwrap();
    let ended = space.entries().unwrap().into_iter().any(|(_, entry)| {
        matches!(entry, Entry::Activation(ActivationEntry::Ended(ended))
            if ended.episode_id == episode_id && ended.end == EpisodeEnd::BoundReached)
    });
    assert!(ended, "that it stopped, and why, is on record");
}

#[test]
fn an_adjudication_says_by_which_registered_rule() {
    shows!("CP-2-13"; by "adjudicate.rule_current");
    let mut space = space(worker::proposes("basic"));
    let waits = moved("o-1", ObligationStatus::AwaitingEvent);
    let proposed = delta(&mut space, vec![waits], Vec::new(), Vec::new());
    recorded(&propose(&mut space, proposed.clone()));
    let own = space.endorsement(&proposed, Disposition::Endorsed).unwrap();
    let version = own.decision_rule_ref.version + 1;
    for unresolved in [
        VersionedRef { id: "rule.unheard-of".into(), version: 1 },
        VersionedRef { version, ..own.decision_rule_ref.clone() },
        VersionedRef { id: "rule.sufficiency".into(), version: 1 },
    ] {
        let mut other = own.clone();
        other.adjudication_id = space.fresh("adj").as_str().into();
        other.decision_rule_ref = unresolved;
        refused(&submit(&mut space, ProducerRole::Assessor, other), Code::UnresolvedRef);
    }
    refused(&commit(&mut space, &proposed), Code::MissingEndorsement);
    recorded(&submit(&mut space, ProducerRole::Assessor, own));
    recorded(&commit(&mut space, &proposed));
}

#[test]
fn what_the_attempt_itself_says_is_no_readback_of_it() {
    shows!("CP-2-15"; by "readback.before_the_attempt", "readback.method_unregistered");
    let (mut space, _, payload_id) = ready(&Deployment::default());
    let before = space.moment().now;
    space.pass(1_000).unwrap();
    recorded(&dispatch(&mut space, &payload_id));
    let read = readback_now(&mut space);
    let response = TypedValue { r#type: "fields".into(), value: Plain(serde_json::json!("done")) };
    let by_the_call = observed(&read, |evidence| {
        let readback = evidence.readback.as_mut().expect("a readback");
        readback.readback_method_ref = VersionedRef { id: "plan.change".into(), version: 1 };
    });
    let reply = space.submit_payload(by_the_call).unwrap();
    assert_eq!(codes(&reply), [Code::ContractIncompatible], "the operation is no method to read its own effect");
    let its_response = observed(&read, |evidence| {
        evidence.observation = response;
        assert_eq!(evidence.readback.as_ref().expect("a readback").outcome, ReadbackOutcome::Matched);
    });
    refused(&space.submit_payload(its_response).unwrap(), Code::SchemaInvalid);
    let by_who_acts = changed(&read, |envelope| envelope.producer = services::actor_ref(ProducerRole::Monitor));
    assert!(space.submit_payload(by_who_acts).unwrap().refusal().is_some());
    refused(
        &space.submit_payload(observed(&read, |evidence| evidence.observed_at = before)).unwrap(),
        Code::SchemaInvalid,
    );
    recorded(&space.submit_payload(read).unwrap());
}

#[test]
fn an_obligation_is_taken_up_again_only_while_it_is_kept_and_its_condition_holds() {
    shows!("CP-2-16"; by "matching.trigger_satisfied", "episode.obligation_not_open");
    let due = closer_contracts::Timestamp::parse("2026-12-31T00:00:00Z").unwrap();
    let until_due = |space: &Space| u64::try_from(due.unix_ms() - space.moment().now.unix_ms()).unwrap();
    let is_eligible = |space: &Space| space.view().eligible.contains_key(&ObligationId::from("o-1"));
    let mut kept = space(worker::proposes("basic"));
    let left = until_due(&kept);
    kept.pass(left - 1).unwrap();
    assert!(!is_eligible(&kept), "not before");
    kept.pass(1).unwrap();
    assert!(is_eligible(&kept));
    kept.open("o-1").unwrap();

    let mut closed = space(worker::proposes("basic"));
    recorded(&closed.event("service-a", "price").unwrap());
    closed.run().unwrap();
    assert_eq!(status(&closed, "o-1"), ObligationStatus::Resolved);
    let left = until_due(&closed);
    closed.pass(left).unwrap();
    assert!(!is_eligible(&closed));
    let open = |id: &str| Input::Open { obligation_id: "o-1".into(), episode_id: id.into() };
    refused(&closed.submit(open("episode-too-late")).unwrap(), Code::UnresolvedRef);
    let reopen = Change::SetStatus {
        obligation_id: "o-1".into(),
        status: ObligationStatus::Active,
        successor: None,
        reason: "The plan is in doubt again.".into(),
    };
    let (_, mut reentries) = closer_scenarios::founding::obligation("o-1", "service-a");
    for reentry in &mut reentries {
        reentry.reentry_id = "reentry-again".into();
        reentry.predicate = TypedPredicate::TimeReached(TimeReached { at: due.plus_ms(1_000) });
    }
    let armed = Change::SetTriggers { obligation_id: "o-1".into(), reentries, trigger_gap: None };
    let reopening = delta(&mut closed, vec![reopen, armed], Vec::new(), Vec::new());
    recorded(&propose(&mut closed, reopening.clone()));
    recorded(&endorse(&mut closed, &reopening, Disposition::Endorsed));
    recorded(&commit(&mut closed, &reopening));
    assert!(!is_eligible(&closed));
    closed.pass(1_000).unwrap();
    assert!(is_eligible(&closed), "after a commit that reopens it");
    closed.open("o-1").unwrap();
}
