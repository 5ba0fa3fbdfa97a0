//! What belongs to the user: packets, answers, and what silence does not do.

use crate::support::{
    codes, commit, delta, dispatch, endorse, grants, propose, recorded, refused, space, status, until,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::DecisionType;
use closer_contracts::auth::{SigningScope, Subject};
use closer_contracts::briefcase::{Briefcase, DecisionClass, PacketStatus};
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::id::DecisionId;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{ActorRef, Plain, ProducerRole, TargetPattern};
use closer_contracts::work::Need;
use closer_contracts::{Digest, Payload, shows};
use closer_protocol::bench::PACKET_MS;
use closer_protocol::entry::NoticeKind;
use closer_protocol::episode::Next;
use closer_scenarios::founding::plan_target;
use closer_scenarios::{Space, worker};
use serde_json::json;

/// A space with one open packet that asks to allow the large plan, which no grant covers.
fn asked() -> (Space, DecisionId) {
    let mut space = space(worker::proposes("large"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    (space, decision_id)
}

fn packet(space: &Space, decision_id: &DecisionId) -> Briefcase {
    (*space.view().packets.get(decision_id).expect("the packet").packet.body).clone()
}

#[test]
fn the_users_silence_permits_nothing() {
    shows!("CP-INV-08"; by "monitor.no_such_grant", "timers.deadline_passed");
    let (mut space, decision_id) = asked();
    let before = grants(&space);
    for _ in 0..5 {
        space.pass(PACKET_MS).unwrap();
    }
    assert_eq!(
        space.view().packets.get(&decision_id).map(|packet| packet.status),
        Some(PacketStatus::Overdue),
        "it is told"
    );
    assert_eq!(grants(&space), before);
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    recorded(&space.event("service-a", "price").unwrap());
    let episode_id = space.open("o-1").unwrap();
    until(&mut space, &episode_id, |next| matches!(next, Next::AskUser { .. }));
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let result = episode.results.first().expect("the result").clone();
    let now = space.moment().now;
    let hoped = closer_protocol::action::draft(
        &view,
        episode,
        &result,
        &worker::proposal("p-o-1", "large"),
        &"grant-hoped-for".into(),
        1,
        &now,
    )
    .unwrap();
    recorded(&space.submit_payload(hoped.clone()).unwrap());
    let view = space.view().clone();
    let action = view.actions.get(hoped.id()).expect("the action");
    let assessed = closer_protocol::adjudicate::pre_action(
        &view,
        view.episodes.get(&episode_id).expect("the episode"),
        action,
        &now,
    )
    .unwrap();
    recorded(&space.submit_payload(assessed).unwrap());
    refused(&dispatch(&mut space, hoped.id()), Code::MissingAuthority);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn an_acknowledgment_grants_nothing() {
    shows!("CP-C13-06"; by "bench.only_acknowledged");
    let (mut space, decision_id) = asked();
    let before = grants(&space);
    refused(&space.answer(&decision_id, DecisionType::Acknowledgment).unwrap(), Code::NotAGrant);
    assert_eq!(grants(&space), before);
    assert_eq!(space.view().packets.get(&decision_id).map(|packet| packet.status), Some(PacketStatus::Open));
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn four_kinds_of_answer_are_told_apart_and_one_leads_to_a_grant() {
    shows!("CP-C13-05", "CP-7.3-19"; by "bench.answer_authorizes");
    for (answer, granted) in [
        (DecisionType::Preference, false),
        (DecisionType::InvestigationRequest, false),
        (DecisionType::Rejection, false),
        (DecisionType::ScopedAuthorization, true),
    ] {
        let (mut space, decision_id) = asked();
        let before = grants(&space).len();
        recorded(&space.answer(&decision_id, answer).unwrap());
        assert_eq!(grants(&space).len() > before, granted, "{answer}");
        assert_eq!(status(&space, "o-1"), ObligationStatus::Active, "the obligation is worked on again");
        let (_, decision) = space
            .view()
            .decisions
            .get(&decision_id)
            .and_then(|decisions| decisions.first())
            .expect("the answer")
            .clone();
        assert_eq!(decision.decision_type, answer, "the answer is on record as what it is");
    }
}

#[test]
fn an_answer_to_an_older_version_of_the_packet_counts_for_nothing_but_a_rejection() {
    shows!("CP-C14-16"; by "bench.packet_stale");
    let (mut space, decision_id) = asked();
    let before = grants(&space);
    let mut outdated = space.decision(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    outdated.evidence_version = Digest::of(b"what was shown before");
    refused(&space.submit_decision(outdated).unwrap(), Code::StalePacket);
    let mut other = space.decision(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    other.briefcase_ref.digest = Digest::of(b"another version");
    refused(&space.submit_decision(other).unwrap(), Code::StalePacket);
    assert_eq!(grants(&space), before);
    let mut rejection = space.decision(&decision_id, DecisionType::Rejection).unwrap();
    rejection.evidence_version = Digest::of(b"what was shown before");
    recorded(&space.submit_decision(rejection).unwrap());
}

#[test]
fn a_packet_is_answered_by_the_user_and_nobody_else() {
    shows!("CP-C14-17"; by "bench.answer_not_the_users");
    let (mut space, decision_id) = asked();
    let before = grants(&space);
    let decision = space.decision(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    refused(&space.submit_artifact(decision, worker, SigningScope::UserDecision).unwrap(), Code::MissingAuthority);
    let mut for_another = space.decision(&decision_id, DecisionType::ScopedAuthorization).unwrap();
    for_another.authenticated_issuer.identity = "worker".into();
    refused(&space.submit_decision(for_another).unwrap(), Code::MissingAuthority);
    assert_eq!(grants(&space), before);
}

#[test]
fn whoever_declares_decides_or_grants_is_authenticated() {
    shows!("CP-C14-17", "CP-C1-05"; by "auth.role_unassigned");
    let (mut space, _) = asked();
    for scope in [SigningScope::Declaration, SigningScope::UserDecision, SigningScope::Grant] {
        let claimed = |producer: &str| Subject {
            id: "something".into(),
            content_digest: Digest::of(b"something"),
            scope,
            producer: producer.into(),
            role: Some(ProducerRole::User),
        };
        for nobody in ["worker", "somebody"] {
            let fault = space.authenticate(&claimed(nobody)).err().map(|fault| fault.code);
            assert_eq!(fault, Some(Code::Unauthenticated), "{nobody} as the user, for {scope}");
        }
        assert!(space.authenticate(&claimed("user")).is_ok());
    }
}

#[test]
fn a_packet_invents_neither_preference_nor_proposal() {
    shows!("CP-C13-03", "CP-C13-02"; by "briefcase.null_recommendation_has_reason");
    let mut space = space(worker::leaves_open(Need::Tradeoff));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let (_, shown) = space.view().packets.get_min().expect("a packet").clone();
    assert_eq!(shown.packet.body.decision_class, DecisionClass::MaterialTradeoff);
    assert_eq!((&shown.packet.body.recommendation, &shown.packet.body.requested_authorization), (&None, &None));
    assert!(shown.packet.body.recommendation_reason.is_some());
    let mut silent = shown.packet.payload.envelope().clone();
    silent.body = Briefcase { recommendation_reason: None, ..(*shown.packet.body).clone() }.into();
    assert_eq!(Payload::seal(silent).map_err(|fault| fault.code).err(), Some(Code::SchemaInvalid));
}

#[test]
fn a_tradeoff_of_the_users_is_asked_and_never_guessed() {
    shows!("CP-10.2-06", "CP-7.3-10"; by "episode.judgment_is_the_users");
    let mut space = space(worker::leaves_open(Need::Tradeoff));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    let shown = packet(&space, &decision_id);
    assert_eq!(shown.question.as_str(), "Is a slower service acceptable?");
    assert_eq!(shown.remaining_uncertainty.len(), 1, "what is uncertain is kept");
    assert!(shown.alternatives.len() >= 2 && shown.recommendation.is_none());
    let before = grants(&space);
    recorded(&space.answer(&decision_id, DecisionType::Preference).unwrap());
    assert_eq!(grants(&space), before, "a preference gives no authority");
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn a_missed_deadline_is_told_once_to_the_owner_that_its_policy_names() {
    shows!("CP-C13-04", "CP-7.3-15", "CP-C15-14"; by "timers.told_before");
    let (mut space, decision_id) = asked();
    for _ in 0..4 {
        space.pass(PACKET_MS).unwrap();
    }
    space.crash().unwrap();
    space.pass(PACKET_MS).unwrap();
    let overdue: Vec<_> = space
        .entries()
        .unwrap()
        .into_iter()
        .filter_map(|(_, entry)| if let closer_protocol::Entry::Notice(notice) = entry { Some(notice) } else { None })
        .filter(|notice| notice.kind == NoticeKind::Overdue)
        .collect();
    assert_eq!(overdue.len(), 1, "{overdue:?}");
    assert_eq!(overdue[0].owner, Some("user".into()));
    assert!(overdue[0].subjects.iter().any(|subject| subject.as_str() == decision_id.as_str()));
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
    assert!(obligation.status.is_open() && (!obligation.reentry_refs.is_empty() || obligation.trigger_gap.is_some()));
    refused(&space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap(), Code::StalePacket);
    assert_eq!(
        space.view().notices.values().filter(|notice| notice.kind == NoticeKind::Overdue).count(),
        1,
        "a late answer erases nothing"
    );
}

/// A delta that makes a grant from the user's decision, changed by `widen`.
fn granting(
    space: &mut Space,
    decision_id: &DecisionId,
    widen: impl FnOnce(&mut closer_contracts::audit::Grant),
) -> closer_contracts::delta::Delta {
    let (reference, _) =
        space.view().decisions.get(decision_id).and_then(|decisions| decisions.first()).expect("the answer").clone();
    let held = space.view().state.items(ItemKind::Grant).filter_map(|accepted| accepted.item.as_grant());
    let made = held.into_iter().find(|grant| grant.grant_id != "grant-1".into()).cloned();
    let mut grant = made.expect("the grant that the decision led to");
    grant.grant_id = space.fresh("grant").as_str().into();
    widen(&mut grant);
    let authority = AuthorityRef { kind: AuthorityKind::UserDecision, reference };
    delta(space, vec![Change::Add { item: Box::new(Item::Grant(grant)) }], Vec::new(), vec![authority])
}

#[test]
fn a_grant_is_never_wider_than_what_the_user_was_asked() {
    shows!("CP-C10-08", "CP-INV-02"; by "commit.grant_within_request");
    let (mut space, decision_id) = asked();
    recorded(&space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap());
    let widened: [fn(&mut closer_contracts::audit::Grant); 4] = [
        |grant| grant.allowed_operations.push("plan.cancel".into()),
        |grant| grant.targets = vec![TargetPattern { address: "*".into(), ..TargetPattern::exactly(&plan_target()) }],
        |grant| grant.parameter_bounds[0].one_of = Some(vec![Plain(json!("huge"))]),
        |grant| grant.expiry = grant.expiry.plus_ms(1),
    ];
    for widen in widened {
        let wider = granting(&mut space, &decision_id, widen);
        recorded(&propose(&mut space, wider.clone()));
        recorded(&endorse(&mut space, &wider, Disposition::Endorsed));
        let reply = commit(&mut space, &wider);
        assert!(codes(&reply).contains(&Code::MissingAuthority), "{reply:?}");
    }
    let same = granting(&mut space, &decision_id, |_| {});
    recorded(&propose(&mut space, same.clone()));
    recorded(&endorse(&mut space, &same, Disposition::Endorsed));
    recorded(&commit(&mut space, &same));
}

#[test]
fn a_preference_is_no_authority_for_a_grant() {
    shows!("CP-INV-02", "CP-C13-05"; by "commit.decision_authorizes");
    let (mut space, decision_id) = asked();
    recorded(&space.answer(&decision_id, DecisionType::Preference).unwrap());
    let (reference, _) =
        space.view().decisions.get(&decision_id).and_then(|decisions| decisions.first()).expect("the answer").clone();
    let asked = packet(&space, &decision_id).requested_authorization.expect("it asks").grant().clone();
    let mut grant = closer_scenarios::founding::grant("grant-2", "plan.change", &["large"]);
    grant.parameter_bounds = asked.parameter_bounds.clone();
    grant.expiry = asked.expiry.clone();
    let authority = AuthorityRef { kind: AuthorityKind::UserDecision, reference };
    let delta =
        delta(&mut space, vec![Change::Add { item: Box::new(Item::Grant(grant)) }], Vec::new(), vec![authority]);
    recorded(&propose(&mut space, delta.clone()));
    recorded(&endorse(&mut space, &delta, Disposition::Endorsed));
    refused(&commit(&mut space, &delta), Code::MissingAuthority);
}

#[test]
fn an_artifacts_id_stands_for_one_content() {
    shows!("CP-B-01"; by "intake.artifact_repeated");
    let (mut space, decision_id) = asked();
    let first = space.decision(&decision_id, DecisionType::Preference).unwrap();
    recorded(&space.submit_decision(first.clone()).unwrap());
    refused(&space.submit_decision(first.clone()).unwrap(), Code::Duplicate);
    let rebound = closer_contracts::audit::UserDecision { decision_type: DecisionType::ScopedAuthorization, ..first };
    refused(&space.submit_decision(rebound).unwrap(), Code::KeyConflict);
}
