//! What a delta says of its evidence is what the record shows, whoever proposes and endorses it.

use crate::separations::claim_on;
use crate::support::{claimed, commit, delta, endorse, propose, recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Disposition, Phase};
use closer_contracts::id::EvidenceId;
use closer_contracts::refs::Target;
use closer_contracts::shows;
use closer_contracts::work::{Relation, ScopeMatch, WorkResult};
use closer_protocol::episode::Next;
use closer_scenarios::founding::plan_target;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

fn account_2() -> Target {
    Target { account: "account-2".into(), ..plan_target() }
}

/// A space where the rule asks for the basic plan of `account-1`, which shows another; `account-2` shows it.
fn with_another_account(answer: Answer) -> Space {
    let mut space = Space::found(&Deployment::default().shown("basic"), answer).unwrap();
    space.world.set(&plan_target(), "plan", "standard");
    space.world.set(&account_2(), "plan", "basic");
    recorded(&space.observe(&account_2(), Some("o-1")).unwrap());
    space
}

/// The evidence about the other account.
fn about_another(space: &Space) -> EvidenceId {
    let evidence = space.view().evidence.values();
    let other = evidence.map(|evidence| &evidence.body).find(|body| body.target_binding.target == account_2());
    other.expect("the other account was observed").evidence_id.clone()
}

#[test]
fn evidence_about_another_account_promotes_nothing() {
    shows!("CP-C8-03", "CP-6.3-11"; by "sufficiency.other_target");
    let supports: Answer = Box::new(|work, view| WorkResult {
        claims: worker::claims(work, view, "basic", Relation::Supports).claims,
        assessments: view.evidence.keys().map(|id| worker::relation(view, "p-o-1", id, Relation::Supports)).collect(),
        ..worker::nothing(work)
    });
    let mut space = with_another_account(supports);
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    assert_eq!(space.view().results.len(), 1, "what was answered stays on record");
    assert!(!claimed(&space));
}

#[test]
fn an_endorsed_delta_whose_support_the_record_does_not_bear_out_is_not_committed() {
    shows!("CP-6.3-11", "CP-INV-01"; by "commit.support_not_borne_out");
    let mut space = with_another_account(Box::new(|work, _| worker::nothing(work)));
    let evidence = about_another(&space);
    let said = worker::relation(space.view(), "p-o-1", &evidence, Relation::Supports);
    let mut misquoted = said.clone();
    misquoted.valid_at.observation_version += 1;
    for relation in [said, misquoted] {
        let proposed = delta(&mut space, vec![claim_on(vec![relation.clone()])], vec![relation], Vec::new());
        recorded(&propose(&mut space, proposed.clone()));
        recorded(&endorse(&mut space, &proposed, Disposition::Endorsed));
        refused(&commit(&mut space, &proposed), Code::UnsupportedPromotion);
    }
    assert!(!claimed(&space));
}

#[test]
fn the_assessor_finds_such_support_insufficient() {
    shows!("CP-6.3-11"; by "sufficiency.other_target");
    let mut space = with_another_account(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    let episode_id = space.open("o-1").unwrap();
    crate::support::until(&mut space, &episode_id, |next| matches!(next, Next::Distil));
    let evidence = about_another(&space);
    let relation = worker::relation(space.view(), "p-o-1", &evidence, Relation::Supports);
    assert_eq!(relation.scope_match, ScopeMatch::Applicable, "so somebody says");
    let proposed = delta(&mut space, vec![claim_on(vec![relation.clone()])], vec![relation], Vec::new());
    recorded(&propose(&mut space, proposed.clone()));
    let view = space.view();
    let (episode, on_record) =
        (view.episodes.get(&episode_id).expect("it"), view.deltas.get(&proposed.delta_id).expect("it"));
    let judged = closer_protocol::adjudicate::semantic_commit(view, episode, on_record, &space.moment().now).unwrap();
    let closer_contracts::envelope::Body::Adjudication(body) = judged.body() else { unreachable!("an adjudication") };
    assert_eq!((body.phase, body.disposition), (Phase::SemanticCommit, Disposition::Insufficient));
}
