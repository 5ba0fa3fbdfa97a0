//! What changes between the pre-action adjudication and the intent: each is refused, naming the changed fact.

use crate::support::{begun, commit, endorse, propose, recorded, until_dispatch};
use crate::work::staying_open;
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::delta::Change;
use closer_contracts::id::{EpisodeId, PayloadId};
use closer_contracts::item::AffectedScope;
use closer_contracts::item::{Dependency, ItemKind};
use closer_contracts::refs::Plain;
use closer_contracts::refs::TargetPattern;
use closer_contracts::refusal::Denial;
use closer_contracts::shows;
use closer_contracts::work::{ProposedClaim, Proposition, Relation};
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply};
use closer_protocol::readback;
use closer_scenarios::founding::plan_target;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

/// A space whose episode is about to ask for admission of an assessed action.
fn assessed(deployment: &Deployment, answer: closer_scenarios::space::Answer) -> (Space, EpisodeId, PayloadId) {
    let mut space = Space::found(deployment, answer).unwrap();
    observe(&mut space);
    space.event("service-a", "price").unwrap();
    let episode_id = space.open("o-1").unwrap();
    loop {
        if let Next::Dispatch { payload_id } = space.next(&episode_id).unwrap() {
            return (space, episode_id, payload_id);
        }
        space.advance(&episode_id).unwrap();
    }
}

/// The plan is observed and the observation recorded as evidence for the obligation.
fn observe(space: &mut Space) {
    let now = space.moment().now;
    let observed = space.world.observe(&plan_target(), &now);
    let view = space.view().clone();
    let method = view.state.readback_method(&"plan.read".into()).expect("the method").clone();
    let payload = readback::draft(&view, &method, &observed, &plan_target(), None, &["o-1".into()], &now).unwrap();
    let reply = space.submit_payload(payload).unwrap();
    assert!(reply.refusal().is_none(), "{reply:?}");
}

fn dispatch(space: &mut Space, payload_id: PayloadId) -> Vec<Denial> {
    match space.submit(Input::Dispatch { payload_id, adjudication_id: None }).unwrap() {
        Reply::Recorded(_) => panic!("admitted"),
        Reply::Refused(denials) => denials,
    }
}

fn names(denials: &[Denial], code: Code, offending: &str) -> bool {
    denials.iter().any(|d| d.code == code && d.offending.as_deref().is_some_and(|o| o.contains(offending)))
}

fn default() -> (Space, EpisodeId, PayloadId) {
    assessed(&Deployment::default(), worker::proposes_on_evidence("basic"))
}

#[test]
fn nothing_changed_and_the_action_is_admitted() {
    let (mut space, _, payload_id) = default();
    let reply = space.submit(Input::Dispatch { payload_id, adjudication_id: None }).unwrap();
    assert!(matches!(reply, Reply::Recorded(_)), "{reply:?}");
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_pattern_restriction_refuses_and_names_itself() {
    shows!("CP-1.1-19", "CP-7.2-09"; by "monitor.restriction_covers");
    let (mut space, _, payload_id) = default();
    let mut targets = TargetPattern::exactly(&plan_target());
    targets.account = "account-*".into();
    let scope = AffectedScope::Target { operation: None, targets };
    space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(scope)).unwrap();
    let denials = dispatch(&mut space, payload_id);
    assert_eq!(closer_contracts::refusal::foremost(&denials).map(|d| d.code), Some(Code::Restricted), "{denials:?}");
    assert!(names(&denials, Code::Restricted, "restrict-statement"), "{denials:?}");
    assert!(names(&denials, Code::StaleVersion, "scope:"), "{denials:?}");
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn a_revoked_grant_permits_nothing_from_then_on() {
    shows!("CP-4.2-04", "CP-0-03", "CP-10.2-05"; by "monitor.grant_revoked");
    let (mut space, _, payload_id) = default();
    space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap();
    let denials = dispatch(&mut space, payload_id);
    assert_eq!(closer_contracts::refusal::foremost(&denials).map(|d| d.code), Some(Code::GrantRevoked), "{denials:?}");
    assert!(names(&denials, Code::GrantRevoked, "grant-1"), "{denials:?}");
}

#[test]
fn new_evidence_on_what_was_relied_on_asks_for_a_new_assessment() {
    shows!("CP-10.2-04"; by "monitor.read_set_moved");
    let (mut space, episode_id, payload_id) = default();
    space.world.set(&plan_target(), "plan", "gone");
    observe(&mut space);
    let denials = dispatch(&mut space, payload_id);
    assert!(names(&denials, Code::StaleVersion, "target:"), "{denials:?}");
    assert_eq!(space.world.effects().len(), 0);
    assert!(matches!(space.next(&episode_id).unwrap(), Next::Assess { .. }));
}

#[test]
fn a_premise_that_falls_by_cascade_asks_for_a_new_assessment_and_is_named() {
    shows!("CP-10.2-04", "CP-4.2-08"; by "monitor.read_set_moved");
    let mut proposes = worker::proposes_on_evidence("basic");
    let answer: Answer = Box::new(move |work, view| {
        let mut answer = proposes(work, view);
        let export = Proposition {
            proposition_id: "p-export".into(),
            subject: "service-a".into(),
            predicate: "keeps".into(),
            object: Plain(serde_json::Value::String("the export".into())),
            scope: closer_scenarios::founding::scope(),
        };
        answer.claims.push(ProposedClaim { proposition: export, applicability: vec!["as observed".into()] });
        let supports = |id| worker::relation(view, "p-export", id, Relation::Supports);
        answer.assessments.extend(view.evidence.keys().map(supports));
        answer
    });
    let mut space = Space::found(&staying_open(), answer).unwrap();
    observe(&mut space);
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    let claim_on =
        |space: &Space, id: &str| space.view().state.claims_on(&id.into()).next().expect("the claim").item.id();
    let (premise, dependent) = (claim_on(&space, "p-export"), claim_on(&space, "p-o-1"));
    let rests = Dependency { dependency_id: "rests".into(), premise: premise.clone(), dependent: dependent.clone() };
    endorsed(&mut space, Change::AddDependency { dependency: rests });
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    endorsed(&mut space, Change::Suspend { kind: ItemKind::Claim, id: premise, reason: "It was found wrong.".into() });
    let denials = dispatch(&mut space, payload_id);
    assert!(names(&denials, Code::StaleVersion, &format!("claim:{dependent}")), "{denials:?}");
    assert_eq!(space.world.effects().len(), 1, "only the earlier one");
}

/// A change proposed, endorsed and committed.
fn endorsed(space: &mut Space, change: Change) {
    let delta = crate::support::delta(space, vec![change], Vec::new(), Vec::new());
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    recorded(&commit(space, &delta));
}
