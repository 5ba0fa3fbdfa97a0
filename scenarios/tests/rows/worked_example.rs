//! A cheaper plan with the export kept, from the lead to what may be said of it in the end. Spec: §9.

use crate::actions::{again, readback_now};
use crate::separations::hoped_for;
use crate::support::{begun, dispatch, recorded, refused, status, until, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::id::{EvidenceId, GrantId, PropositionId};
use closer_contracts::item::{EffectClass, IdentityKind, Item, RepeatSafety};
use closer_contracts::obligation::{AssessmentStatus, ObligationStatus};
use closer_contracts::refs::{Plain, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::{
    ActionProposal, Comparison, EvidenceRelation, Expectation, Need, Postcondition, ProposedClaim, Proposition,
    Relation, Unresolved, Work, WorkResult,
};
use closer_protocol::View;
use closer_protocol::entry::{AttemptStatus, EpisodeEnd};
use closer_protocol::episode::Next;
use closer_protocol::sufficiency;
use closer_scenarios::founding::{grant, identity, operation, plan_target, proposition, releases, scope};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Mode, Space, worker};
use serde_json::json;

/// Research is granted, a change of the account is not. A probe asks the service what its page leaves open.
fn cost() -> Deployment {
    let mut probe = operation("capability.probe", EffectClass::ReadOnly, RepeatSafety::RepeatSafe);
    probe.parameters.clear();
    probe.identifying_parameters.clear();
    let mut research = grant("grant-1", "capability.probe", &[]);
    research.parameter_bounds.clear();
    let can = ["plan.change", "capability.probe"];
    let analyst = identity("worker", IdentityKind::Producer, &[ProducerRole::Participant], &can);
    let deployment = Deployment::default().with(Item::Operation(probe)).with(Item::Grant(research));
    deployment.with(Item::Identity(analyst)).with_profile(|profile| {
        profile.disclosure_rules.push(releases("capability.probe", "provider", &["input"]));
    })
}

/// As [`cost`], where the obligation asks about these propositions too.
fn about(propositions: &[&str]) -> Deployment {
    let mut deployment = cost();
    let (obligation, _) = &mut deployment.founding.obligations[0];
    obligation.gap.propositions.extend(propositions.iter().map(|&id| PropositionId::from(id)));
    deployment
}

fn claim(id: &str) -> ProposedClaim {
    let said = Proposition {
        proposition_id: id.into(),
        subject: "service-a".into(),
        predicate: "holds".into(),
        object: Plain(json!(true)),
        scope: scope(),
    };
    let proposition = if id == "p-o-1" { proposition("o-1", "basic") } else { said };
    ProposedClaim { proposition, applicability: vec!["as observed".into()] }
}

/// Reads everything on record like this about a proposition.
fn read(view: &View, id: &str, how: Relation) -> Vec<EvidenceRelation> {
    view.evidence.keys().map(|evidence: &EvidenceId| worker::relation(view, id, evidence, how)).collect()
}

fn concludes(work: &Work, view: &View, ids: &[&str]) -> WorkResult {
    WorkResult {
        claims: ids.iter().map(|id| claim(id)).collect(),
        assessments: ids.iter().flat_map(|id| read(view, id, Relation::Supports)).collect(),
        ..worker::nothing(work)
    }
}

fn probe() -> ActionProposal {
    let expectation = Expectation { field: "export".into(), comparison: Comparison::Equals, value: Plain(json!(true)) };
    ActionProposal {
        operation: "capability.probe".into(),
        target: plan_target(),
        parameters: Default::default(),
        expected_postcondition: Postcondition { id: "p-export".into(), expectations: vec![expectation] },
    }
}

/// The advertised price is observed, and a change of it announced.
fn advertised(space: &mut Space) {
    space.world.set(&plan_target(), "price", 8);
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
}

fn claimed(space: &Space, id: &str) -> bool {
    space.view().state.claims_on(&id.into()).next().is_some()
}

#[test]
fn research_is_permitted_and_a_change_of_the_account_is_not() {
    shows!("CP-9-01"; by "monitor.operation_not_granted");
    let mut space = Space::found(&cost(), worker::proposes("basic")).unwrap();
    let now = space.moment().now;
    let granted = |proposal: &ActionProposal| closer_protocol::action::covering_grant(space.view(), proposal, &now);
    assert_eq!(granted(&probe()), Some(GrantId::from("grant-1")));
    assert_eq!(granted(&worker::proposal("p-o-1", "basic")), None);
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::AskUser { .. }));
    let change = worker::proposal("p-o-1", "basic");
    let hoped = hoped_for(&mut space, &episode_id, &change, &"grant-1".into());
    refused(&dispatch(&mut space, &hoped), Code::MissingAuthority);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn from_a_lower_price_alone_no_saving_is_claimed() {
    shows!("CP-9-02"; by "delta.claim_supported");
    let says: Answer = Box::new(|work, view| {
        let price = concludes(work, view, &["p-price"]);
        let mut assessments = price.assessments;
        assessments.extend(read(view, "p-saving", Relation::Irrelevant));
        WorkResult { claims: vec![claim("p-price"), claim("p-saving")], assessments, ..worker::nothing(work) }
    });
    let mut space = Space::found(&cost(), says).unwrap();
    advertised(&mut space);
    space.run().unwrap();
    assert_eq!(space.view().works.len(), 1, "it is investigated");
    assert!(claimed(&space, "p-price") && !claimed(&space, "p-saving"));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn what_the_page_leaves_open_is_probed_and_not_concluded() {
    shows!("CP-9-03"; by "delta.claim_supported");
    let says: Answer = Box::new(|work, view| WorkResult {
        claims: vec![claim("p-export")],
        assessments: read(view, "p-export", Relation::Irrelevant),
        action_proposals: vec![probe()],
        ..worker::nothing(work)
    });
    let mut space = Space::found(&cost(), says).unwrap();
    advertised(&mut space);
    space.world.set(&plan_target(), "export", true);
    let page = space.newest_evidence().expect("the page");
    space.run().unwrap();
    let result = space.view().results.values().next().expect("the result").body.clone();
    let cited = result.assessments.iter().find(|relation| relation.evidence_id == page).expect("it cites the page");
    assert_ne!(sufficiency::resolve(cited, space.view()).relation, Relation::Supports);
    let done: Vec<_> = space.world.effects().iter().map(|action| action.operation.as_str()).collect();
    assert_eq!(done, ["capability.probe"], "within what is granted, the service is asked");
    let accepted = space.view().state.claims_on(&"p-export".into()).next().expect("what the probe showed");
    let relations = &accepted.item.as_claim().expect("a claim").relations;
    let supports: Vec<_> = relations.iter().filter(|relation| relation.relation == Relation::Supports).collect();
    assert!(!supports.is_empty() && supports.iter().all(|relation| relation.evidence_id != page), "{relations:?}");
}

#[test]
fn a_fresh_process_inherits_what_was_established_and_asks_what_is_open() {
    shows!("CP-9-04"; by "disclose.category_released");
    let says = || -> Answer {
        Box::new(|work, view| {
            let inherits = work.context_items.iter().any(|item| {
                item.content.0.to_string().contains("\"p-export\"") && item.content.0.get("claim_id").is_some()
            });
            let subject = work.question.subject_refs.first().cloned().unwrap_or_else(|| "p".into());
            let terms = Unresolved { subject, need: Need::Evidence, text: "What are the terms of switching?".into() };
            match inherits {
                true => WorkResult { unresolved: vec![terms], ..worker::nothing(work) },
                false if view.works.len() == 1 => concludes(work, view, &["p-export"]),
                false => WorkResult { action_proposals: vec![probe()], ..worker::nothing(work) },
            }
        })
    };
    let mut space = Space::found(&about(&["p-export"]), says()).unwrap();
    space.world.set(&plan_target(), "export", true);
    advertised(&mut space);
    space.run().unwrap();
    assert!(claimed(&space, "p-export"));
    let (records, world, now) = (space.records().to_vec(), space.world.clone(), space.moment().now);
    let mut fresh = Space::resume(records, world, now, says()).unwrap();
    recorded(&fresh.event("service-a", "price").unwrap());
    fresh.run().unwrap();
    let newest = fresh.view().results.values().find(|result| !result.body.unresolved.is_empty());
    let open = &newest.expect("a question").body.unresolved[0];
    assert_eq!(open.text.as_str(), "What are the terms of switching?");
    assert_eq!(fresh.world.effects().len(), 0, "export is not probed again");
}

#[test]
fn a_tradeoff_waits_for_the_user_while_other_work_goes_on() {
    shows!("CP-9-05", "CP-A-14"; by "episode.judgment_is_the_users");
    let says: Answer = Box::new(|work, view| match work.question.subject_refs[0].as_str() {
        "p-o-1" => worker::leaves_open(Need::Tradeoff)(work, view),
        _ => worker::proposes("basic")(work, view),
    });
    let deployment = Deployment::default().with_obligation("o-2", "service-b");
    let mut space = Space::found(&deployment, says).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let packet = space.view().packets.values().next().expect("a packet").packet.body.clone();
    assert_eq!(packet.question.as_str(), "Is a slower service acceptable?");
    assert!(!packet.while_waiting.permitted.is_empty() && !packet.while_waiting.blocked.is_empty());
    recorded(&space.event("service-b", "price").unwrap());
    space.run().unwrap();
    assert_eq!(status(&space, "o-1"), ObligationStatus::AwaitingUserJudgment);
    assert_eq!(status(&space, "o-2"), ObligationStatus::Resolved, "what is permitted meanwhile runs");
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn it_is_closed_only_once_service_and_bill_are_both_shown() {
    shows!("CP-9-07"; by "delta.every_condition_met");
    let says: Answer = Box::new(|work, view| match view.evidence.len() {
        1 => concludes(work, view, &["p-o-1"]),
        _ => concludes(work, view, &["p-o-1", "p-billing"]),
    });
    let mut deployment = cost();
    let (obligation, _) = &mut deployment.founding.obligations[0];
    let mut billing = obligation.resolution_conditions[0].clone();
    (billing.id, billing.proposition) = ("condition-billing".into(), "p-billing".into());
    obligation.resolution_conditions.push(billing);
    let mut space = Space::found(&deployment, says).unwrap();
    advertised(&mut space);
    space.run().unwrap();
    let conditions = |space: &Space| {
        let obligation = space.view().state.obligation(&"o-1".into()).expect("the obligation");
        obligation.resolution_conditions.iter().map(|condition| condition.assessment_status).collect::<Vec<_>>()
    };
    assert_eq!(conditions(&space), [AssessmentStatus::Met, AssessmentStatus::Unassessed]);
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active, "the service alone closes nothing");
    space.world.set(&plan_target(), "bill", 8);
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(conditions(&space), [AssessmentStatus::Met, AssessmentStatus::Met]);
    assert_eq!(status(&space, "o-1"), ObligationStatus::Resolved);
}

#[test]
fn while_the_effect_is_unknown_the_work_that_remains_is_reconciliation() {
    shows!("CP-9-08"; by "monitor.attempt_refused");
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
    (space.world.effect_mode, space.world.observe_mode) = (Mode::AppliedUnanswered, Mode::Unavailable);
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    recorded(&dispatch(&mut space, &payload_id));
    assert!(matches!(space.next(&episode_id).unwrap(), Next::Readback { .. }), "it is looked at");
    let second = again(&mut space, &episode_id, &payload_id, |_| {});
    refused(&dispatch(&mut space, &second), Code::OutcomeUnknown);
    space.finish(&episode_id).unwrap();
    assert_ne!(space.view().episodes.get(&episode_id).and_then(|it| it.end), Some(EpisodeEnd::Committed));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active, "nor is anything closed");
    space.world.observe_mode = Mode::Normal;
    let read = readback_now(&mut space);
    recorded(&space.submit_payload(read).unwrap());
    assert_eq!(
        space.view().attempts.values().map(|attempt| attempt.status).collect::<Vec<_>>(),
        [AttemptStatus::EffectConfirmed]
    );
    assert_eq!(space.world.effects().len(), 1);
}
