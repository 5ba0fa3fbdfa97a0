//! Three moments, three subjects: what an adjudication can be about, who must have spoken, and what it can be used for.

use crate::support::{
    begun, changed, claimed, codes, commit, delta, dispatch, endorse, moved, propose, recorded, refused, space, status,
    submit, until, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Adjudication, Disposition, Dissent, Phase};
use closer_contracts::delta::Change;
use closer_contracts::digest::Digest;
use closer_contracts::envelope::Body;
use closer_contracts::evidence::ReadbackOutcome;
use closer_contracts::id::{EpisodeId, PayloadId, Text};
use closer_contracts::item::{Item, Rule, RuleBody, Standing};
use closer_contracts::obligation::{AssessmentStatus, Condition, ObligationStatus};
use closer_contracts::refs::ProducerRole;
use closer_contracts::work::{ReasonClass, Relation};
use closer_contracts::{Payload, shows};
use closer_protocol::adjudicate;
use closer_protocol::entry::AttemptStatus;
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_protocol::port::Performed;
use closer_scenarios::founding::plan_target;
use closer_scenarios::{Deployment, Mode, Space, worker};

/// The assessor's draft for an action that is about to be assessed.
fn pre_action(space: &Space, episode_id: &EpisodeId, payload_id: &PayloadId) -> Payload {
    let view = space.view();
    let episode = view.episodes.get(episode_id).expect("the episode");
    let action = view.actions.get(payload_id).expect("the action");
    adjudicate::pre_action(view, episode, action, &space.moment().now).unwrap()
}

fn with(payload: &Payload, change: impl FnOnce(&mut Adjudication)) -> Payload {
    let Body::Adjudication(body) = payload.body() else { unreachable!("an adjudication") };
    let mut body = (**body).clone();
    change(&mut body);
    changed(payload, |envelope| envelope.body = body.into())
}

/// An episode whose action waits for its assessment.
fn proposed(space: &mut Space) -> (EpisodeId, PayloadId) {
    let episode_id = begun(space);
    let Next::Assess { payload_id } = until(space, &episode_id, |next| matches!(next, Next::Assess { .. })) else {
        unreachable!("just matched")
    };
    (episode_id, payload_id)
}

/// A change that needs nothing but endorsement: the condition of `o-1` was looked at and not met.
fn looked_at(space: &Space) -> Change {
    let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
    let looked_at =
        |condition: &Condition| Condition { assessment_status: AssessmentStatus::NotMet, ..condition.clone() };
    Change::SetConditions {
        obligation_id: "o-1".into(),
        conditions: obligation.resolution_conditions.iter().map(looked_at).collect(),
    }
}

#[test]
fn an_action_is_assessed_only_after_it_was_proposed() {
    shows!("CP-C15-03"; by "adjudicate.subject_unknown");
    let mut space = space(worker::proposes("basic"));
    let (episode_id, payload_id) = proposed(&mut space);
    let draft = pre_action(&space, &episode_id, &payload_id);
    let early = with(&draft, |adjudication| adjudication.subject.id = "action-to-come".into());
    refused(&space.submit_payload(early).unwrap(), Code::UnresolvedRef);
    recorded(&space.submit_payload(draft).unwrap());
}

#[test]
fn an_adjudication_is_bound_to_the_digest_on_record() {
    shows!("CP-4.2-03", "CP-C10-05"; by "adjudicate.other_subject");
    let mut space = space(worker::proposes("basic"));
    let changes = vec![moved("o-1", ObligationStatus::AwaitingEvent)];
    let delta = delta(&mut space, changes, Vec::new(), Vec::new());
    recorded(&propose(&mut space, delta.clone()));
    let mut other = space.endorsement(&delta, Disposition::Endorsed).unwrap();
    other.subject.digest = Digest::of(b"another proposal");
    refused(&submit(&mut space, ProducerRole::Assessor, other), Code::SubjectMismatch);
    refused(&commit(&mut space, &delta), Code::MissingEndorsement);
    recorded(&endorse(&mut space, &delta, Disposition::Endorsed));
    recorded(&commit(&mut space, &delta));
}

#[test]
fn an_ordinary_delta_is_committed_only_with_its_endorsement() {
    shows!("CP-C10-05", "CP-7.2-06"; by "commit.not_endorsed");
    let mut space = space(worker::proposes("basic"));
    let changes = vec![moved("o-1", ObligationStatus::AwaitingEvent)];
    let delta = delta(&mut space, changes, Vec::new(), Vec::new());
    recorded(&propose(&mut space, delta.clone()));
    let before = space.view().state.reference();
    refused(&commit(&mut space, &delta), Code::MissingEndorsement);
    recorded(&endorse(&mut space, &delta, Disposition::Rejected));
    refused(&commit(&mut space, &delta), Code::MissingEndorsement);
    assert_eq!(space.view().state.reference(), before);
    recorded(&endorse(&mut space, &delta, Disposition::Endorsed));
    recorded(&commit(&mut space, &delta));
    assert_eq!(space.view().state.reference().version, before.version + 1);
}

#[test]
fn a_judgment_of_the_outcome_is_no_endorsement() {
    shows!("CP-C9-05", "CP-C10-07", "CP-4.2-12"; by "commit.other_phase_offered");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let next = until(&mut space, &episode_id, |next| matches!(next, Next::Endorse { .. }));
    let Next::Endorse { delta_id } = next else { unreachable!("just matched") };
    let reply = space.submit(Input::Commit { delta_id: delta_id.clone() }).unwrap();
    refused(&reply, Code::WrongPhase);
    assert_eq!(codes(&reply), [Code::WrongPhase, Code::MissingEndorsement]);
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
    space.advance(&episode_id).unwrap();
    recorded(&space.submit(Input::Commit { delta_id }).unwrap());
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved, "cited in support, it is welcome");
}

#[test]
fn a_judgment_before_the_action_supports_no_claim_about_what_came_of_it() {
    shows!("CP-4.2-11", "CP-C9-04"; by "delta.rests_on_pre_action");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Distil));
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let draft = closer_protocol::delta::distill(&view, episode, &space.moment()).unwrap().expect("a delta");
    let judged = view
        .adjudications
        .values()
        .find(|adjudication| adjudication.body.phase == Phase::PreAction)
        .expect("it was assessed");
    let before = judged.payload.id().clone();
    let early = changed(&draft, |envelope| {
        envelope.payload_id = "pl.early".into();
        envelope.parents = vec![before];
    });
    refused(&space.submit_payload(early).unwrap(), Code::WrongPhase);
    recorded(&space.submit_payload(draft).unwrap());
}

#[test]
fn the_rules_required_participants_must_have_spoken() {
    shows!("CP-C9-06"; by "adjudicate.required_role_absent");
    let mut space = space(worker::proposes("basic"));
    let (episode_id, payload_id) = proposed(&mut space);
    let draft = pre_action(&space, &episode_id, &payload_id);
    let alone = with(&draft, |adjudication| adjudication.role_positions.clear());
    refused(&space.submit_payload(alone).unwrap(), Code::MissingEndorsement);
    recorded(&space.submit_payload(draft).unwrap());
}

fn objecting(payload: &Payload, reason_class: ReasonClass) -> Payload {
    with(payload, |adjudication| {
        adjudication.dissent.push(Dissent {
            actor: "worker".into(),
            subject: adjudication.subject.digest,
            reason_class,
            text: Text::from("The export was not looked at."),
        });
    })
}

#[test]
fn an_open_objection_of_a_blocking_class_leaves_no_positive_disposition() {
    shows!("CP-C9-07"; by "adjudicate.blocking_objection_open");
    let mut space = space(worker::proposes("basic"));
    let (episode_id, payload_id) = proposed(&mut space);
    let draft = pre_action(&space, &episode_id, &payload_id);
    refused(
        &space.submit_payload(objecting(&draft, ReasonClass::OutsideConstraint)).unwrap(),
        Code::MissingEndorsement,
    );
    refused(&space.submit_payload(objecting(&draft, ReasonClass::NoGrant)).unwrap(), Code::MissingAuthority);
    let listed = objecting(&draft, ReasonClass::Omission);
    recorded(&space.submit_payload(listed).unwrap());
    let assessed = space
        .view()
        .adjudications
        .values()
        .find(|adjudication| adjudication.body.phase == Phase::PreAction)
        .expect("it is on record");
    assert_eq!((assessed.body.disposition, assessed.body.dissent.len()), (Disposition::Justified, 1));
}

#[test]
fn a_declared_rule_may_let_further_classes_block() {
    shows!("CP-C9-07"; by "adjudicate.blocking_objection_open");
    let rule = Item::Rule(Rule {
        rule_id: "rule.careful".into(),
        version: 1,
        body: RuleBody::Decision {
            required_roles: vec!["validator".into()],
            blocking_classes: vec![ReasonClass::Omission],
            deterministic: false,
        },
        standing: Standing::Current,
    });
    let mut space = Space::found(&Deployment::default().with(rule), worker::proposes("basic")).unwrap();
    let (episode_id, payload_id) = proposed(&mut space);
    let draft = pre_action(&space, &episode_id, &payload_id);
    refused(&space.submit_payload(objecting(&draft, ReasonClass::Omission)).unwrap(), Code::MissingEndorsement);
    recorded(&space.submit_payload(objecting(&draft, ReasonClass::Risk)).unwrap());
}

#[test]
fn dissent_outlives_commit_closure_and_receipt() {
    shows!("CP-C9-08", "CP-C15-12"; by "adjudicate.dissent_carried");
    let mut space = space(worker::proposes("basic"));
    let (episode_id, payload_id) = proposed(&mut space);
    let assessed = objecting(&pre_action(&space, &episode_id, &payload_id), ReasonClass::Omission);
    recorded(&space.submit_payload(assessed).unwrap());
    space.finish(&episode_id).unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
    let (_, committed) = space.view().commits.get_max().expect("a commit");
    let cited = committed.receipt.as_ref().expect("its receipt").adjudication_refs.clone();
    let endorsements =
        space.view().adjudications.values().filter(|adjudication| cited.contains(&adjudication.reference()));
    let dissent: Vec<Text> = endorsements
        .flat_map(|endorsement| endorsement.body.dissent.iter().map(|dissent| dissent.text.clone()))
        .collect();
    assert_eq!(dissent, [Text::from("The export was not looked at.")], "readable from the receipt");
}

#[test]
fn assessed_authorized_dispatched_and_read_back_are_one_logical_action() {
    shows!("CP-INV-03", "CP-C8-06"; by "adjudicate.other_subject", "readback.other_action");
    let mut space = space(worker::proposes("basic"));
    let (episode_id, payload_id) = proposed(&mut space);
    let digest = space.view().actions.get(&payload_id).expect("the action").body.logical_digest;
    let draft = pre_action(&space, &episode_id, &payload_id);
    refused(
        &space.submit_payload(with(&draft, |adjudication| adjudication.subject.digest = Digest::of(b"other"))).unwrap(),
        Code::SubjectMismatch,
    );
    recorded(&space.submit_payload(draft).unwrap());
    recorded(&dispatch(&mut space, &payload_id));
    let attempt = space.view().attempts.values().next().expect("the attempt").clone();
    let method = closer_protocol::readback::method_for(space.view(), &attempt).expect("the method").clone();
    let now = space.moment().now;
    let observed = space.world.observe(&plan_target(), &now);
    let readback =
        closer_protocol::readback::draft(space.view(), &method, &observed, &plan_target(), Some(&attempt), &[], &now)
            .unwrap();
    let Body::Evidence(body) = readback.body() else { unreachable!("a readback") };
    let mut other = (**body).clone();
    other.action_ref = Some("action-other".into());
    refused(
        &space.submit_payload(changed(&readback, |envelope| envelope.body = other.into())).unwrap(),
        Code::SubjectMismatch,
    );
    recorded(&space.submit_payload(readback).unwrap());
    let view = space.view();
    let assessed =
        view.adjudications.values().find(|adjudication| adjudication.body.phase == Phase::PreAction).expect("assessed");
    let attempt = view.attempts.values().next().expect("the attempt");
    let read = view.evidence.values().find_map(|evidence| evidence.body.readback.clone()).expect("read back");
    let dispatched = space.world.effects().first().expect("the effect").logical_digest;
    let read_back = view.attempts.get(&read.attempt_id).expect("its attempt").intent.logical_digest;
    assert_eq!([assessed.body.subject.digest, attempt.intent.logical_digest, dispatched, read_back], [digest; 4]);
}

#[test]
fn a_call_that_returned_has_not_established_its_effect() {
    shows!("CP-INV-04", "CP-8.1-08", "CP-8.1-07"; by "readback.all_expectations_hold");
    let mut space = space(worker::proposes("basic"));
    space.world.effect_mode = Mode::AnsweredNotApplied;
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    let attempt = space.view().attempts.values().next().expect("the attempt");
    assert!(attempt.outcome.as_ref().is_some_and(|outcome| outcome.status != AttemptStatus::EffectConfirmed));
    assert!(!claimed(&space), "nobody confessed, and nothing is believed");
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
    let outcomes: Vec<ReadbackOutcome> = space
        .view()
        .evidence
        .values()
        .filter_map(|evidence| evidence.body.readback.as_ref().map(|read| read.outcome))
        .collect();
    assert!(!outcomes.is_empty() && !outcomes.contains(&ReadbackOutcome::Matched), "{outcomes:?}");
}

#[test]
fn behind_every_closure_stands_an_adjudication_of_its_closure_authority() {
    shows!("CP-INV-06", "CP-5-10", "CP-C15-11"; by "commit.closure_authority_for", "receipt.ordinary_unendorsed");
    let deployment = Deployment::default();
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
    let closing = space.view().commits.values().find(|committed| {
        committed
            .commit
            .delta
            .changes
            .iter()
            .any(|change| matches!(change, Change::SetStatus { status, .. } if !status.is_open()))
    });
    let receipt = closing.and_then(|committed| committed.receipt.clone()).expect("the closing receipt");
    let cited = space
        .view()
        .adjudications
        .values()
        .find(|adjudication| receipt.adjudication_refs.contains(&adjudication.reference()))
        .expect("its adjudication");
    assert_eq!((cited.body.phase, cited.body.disposition), (Phase::SemanticCommit, Disposition::Endorsed));
    assert!(cited.body.role_positions.iter().any(|position| !position.reason.as_str().is_empty()));

    let mut elsewhere = deployment;
    for (obligation, _) in &mut elsewhere.founding.obligations {
        obligation.closure_authority = "user".into();
    }
    let mut space = Space::found(&elsewhere, worker::proposes("basic")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active, "the user has not taken a position");
    assert!(space.refusals().unwrap().contains(&Code::NotClosable));
}

#[test]
fn what_is_unknown_of_an_effect_stays_on_record() {
    shows!("CP-C15-13", "CP-8.2-02"; by "dispatch.outcome_on_record");
    let mut space = space(worker::proposes("basic"));
    space.world.effect_mode = Mode::AppliedUnanswered;
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    recorded(&dispatch(&mut space, &payload_id));
    let attempt_id = space.view().attempts.keys().next().expect("the attempt").clone();
    assert_eq!(
        space.view().attempts.get(&attempt_id).map(|attempt| attempt.status),
        Some(AttemptStatus::OutcomeUnknown)
    );
    let late = Performed::NotSent { reason: "it was never sent, a late report says".into() };
    refused(&space.submit(Input::Performed { attempt_id, performed: late }).unwrap(), Code::Duplicate);
    space.finish(&episode_id).unwrap();
    let statuses: Vec<AttemptStatus> = space
        .entries()
        .unwrap()
        .into_iter()
        .filter_map(
            |(_, entry)| {
                if let closer_protocol::Entry::Outcome(outcome) = entry { Some(outcome.status) } else { None }
            },
        )
        .collect();
    assert_eq!(statuses, [AttemptStatus::OutcomeUnknown, AttemptStatus::EffectConfirmed]);
}

#[test]
fn evidence_that_is_irrelevant_neither_supports_nor_vetoes() {
    shows!("CP-B-20", "CP-10.2-02"; by "sufficiency.irrelevant");
    let says = |relation: Relation| -> closer_scenarios::space::Answer {
        Box::new(move |work, view| {
            let assessments = view.evidence.keys().map(|id| worker::relation(view, "p-o-1", id, relation)).collect();
            closer_contracts::work::WorkResult { assessments, ..worker::nothing(work) }
        })
    };
    let with_evidence = |relation| {
        let mut space = space(says(relation));
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        recorded(&space.event("service-a", "price").unwrap());
        space.run().unwrap();
        space
    };
    let irrelevant = with_evidence(Relation::Irrelevant);
    assert!(!claimed(&irrelevant), "the gap stays and nothing is invented");
    assert_eq!(status(&irrelevant, "o-1"), ObligationStatus::Active);
    assert!(claimed(&with_evidence(Relation::Supports)), "the same item, found to support, does");
}

#[test]
fn changed_conditions_need_work_behind_them() {
    shows!("CP-C15-02"; by "trace.delta_unfounded");
    let mut space = space(worker::proposes("basic"));
    let changes = vec![looked_at(&space)];
    let unfounded = delta(&mut space, changes, Vec::new(), Vec::new());
    recorded(&propose(&mut space, unfounded.clone()));
    recorded(&endorse(&mut space, &unfounded, Disposition::Endorsed));
    refused(&commit(&mut space, &unfounded), Code::UnresolvedRef);
}

/// What the sequence endorses by a registered rule claims no id of its own; its name is kept all the same.
#[test]
fn what_the_sequence_endorsed_keeps_its_name() {
    let mut space = space(worker::proposes("basic"));
    let endorsed = space.view().adjudications.values().next().expect("the founding's endorsement").payload.clone();
    let other = with(&endorsed, |body| {
        for position in &mut body.role_positions {
            position.reason = Text::from("For another reason.");
        }
    });
    let other = changed(&other, |envelope| envelope.payload_id = PayloadId::from("pl.another"));
    let reply = space.submit_payload(other).unwrap();
    assert_eq!(reply.refusal().map(|denial| denial.code), Some(Code::KeyConflict));
}
