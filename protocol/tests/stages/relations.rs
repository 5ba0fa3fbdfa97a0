//! Relations, pair by pair: what an observation itself shows outweighs everybody's reading of it.

use crate::fixture::{World, at, observation, rule};
use closer_contracts::evidence::Evidence;
use closer_contracts::item::{Rule, RuleBody, Shown};
use closer_contracts::obligation::AssessmentStatus::{Insufficient, Met, NotMet, Unassessed};
use closer_contracts::refs::{Plain, TargetPattern};
use closer_contracts::shows;
use closer_contracts::work::{Comparison, EvidenceRelation, Expectation, ReferenceStatus, Relation, ScopeMatch};
use closer_protocol::sufficiency::{assess, borne_out, valid_at};
use serde_json::json;

/// What must be shown: that the export of the shop's account is preserved.
fn export_is_preserved(like: &Evidence) -> Rule {
    let expectation =
        Expectation { field: "export".into(), comparison: Comparison::Equals, value: Plain(json!("preserved")) };
    let shown = Shown { targets: TargetPattern::exactly(&like.target_binding.target), expectations: vec![expectation] };
    let body = RuleBody::Sufficiency {
        distinct_sources_min: 1,
        age_ms_max: None,
        accepts_unknown_target_version: true,
        observation_types: Vec::new(),
        shown: Some(shown),
    };
    rule("sufficiency", 1, body)
}

/// Observation `number` of a stream, in which the export is `export`.
fn seen(world: &mut World, id: &str, stream: &str, number: u64, value: serde_json::Value) -> Evidence {
    let mut evidence = observation(id, "probe", stream, number);
    evidence.observation.value = Plain(value);
    world.observe(evidence.clone());
    evidence
}

fn said(evidence: &Evidence, relation: Relation) -> EvidenceRelation {
    EvidenceRelation {
        proposition_id: "p-export".into(),
        evidence_id: evidence.evidence_id.clone(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation,
        valid_at: valid_at(evidence),
        limitations: Vec::new(),
    }
}

#[test]
fn what_the_observation_shows_outweighs_what_is_said_of_it() {
    shows!("CP-6.3-11", "CP-4.1-32"; by "sufficiency.observation_decides");
    let mut world = World::new();
    let kept = seen(&mut world, "ev-1", "probes", 1, json!({ "export": "preserved" }));
    let lost = seen(&mut world, "ev-2", "others", 1, json!({ "export": "lost" }));
    let rule = export_is_preserved(&kept);
    let told = |evidence: &Evidence, as_what: &[Relation]| {
        let relations: Vec<EvidenceRelation> = as_what.iter().map(|relation| said(evidence, *relation)).collect();
        assess(&rule, &"p-export".into(), &relations, &world.view, &at(5))
    };
    for said_of_it in [
        &[Relation::Supports][..],
        &[Relation::Contradicts, Relation::Contradicts, Relation::Contradicts],
        &[Relation::Supports, Relation::Contradicts],
    ] {
        assert_eq!(told(&kept, said_of_it), Met, "{said_of_it:?}");
        assert_eq!(told(&lost, said_of_it), NotMet, "{said_of_it:?}");
    }
}

#[test]
fn what_resolves_may_still_be_stale_irrelevant_or_inconclusive() {
    shows!(
        "CP-C8-04"; by "sufficiency.newest_decides", "sufficiency.other_target", "sufficiency.observation_decides"
    );
    let mut world = World::new();
    let kept = seen(&mut world, "ev-1", "probes", 1, json!({ "export": "preserved" }));
    let rule = export_is_preserved(&kept);
    let mut elsewhere = observation("ev-2", "probe", "elsewhere", 1);
    elsewhere.observation.value = Plain(json!({ "export": "preserved" }));
    elsewhere.target_binding.target.account = "another-account".into();
    world.observe(elsewhere.clone());
    let silent = seen(&mut world, "ev-3", "silent", 1, json!({ "price": 7 }));
    let told = |world: &World, evidence: &Evidence| {
        assess(&rule, &"p-export".into(), &[said(evidence, Relation::Supports)], &world.view, &at(5))
    };
    assert_eq!(told(&world, &kept), Met);
    assert_eq!(told(&world, &elsewhere), Unassessed, "it is about another account");
    assert_eq!(told(&world, &silent), Insufficient, "it shows nothing of the export");
    seen(&mut world, "ev-4", "probes", 2, json!({ "export": "lost" }));
    assert_eq!(told(&world, &kept), NotMet, "a newer observation, which nobody cites, shows something else");
    for evidence in [&kept, &elsewhere, &silent] {
        let borne_out = borne_out(&said(evidence, Relation::Supports), &rule, &world.view);
        assert_eq!(borne_out.reference_status, ReferenceStatus::Resolved, "all three resolve");
    }
}

#[test]
fn an_observation_of_another_account_does_not_apply_whoever_says_so() {
    shows!("CP-C8-03"; by "sufficiency.other_target");
    let mut world = World::new();
    let own = seen(&mut world, "ev-1", "probes", 1, json!({ "export": "preserved" }));
    let rule = export_is_preserved(&own);
    let mut another = observation("ev-2", "probe", "elsewhere", 1);
    another.observation.value = Plain(json!({ "export": "lost" }));
    another.target_binding.target.account = "another-account".into();
    world.observe(another.clone());
    let resolved = borne_out(&said(&another, Relation::Contradicts), &rule, &world.view);
    assert_eq!(resolved.scope_match, ScopeMatch::NotApplicable);
    let relations = [said(&own, Relation::Supports), said(&another, Relation::Contradicts)];
    assert_eq!(assess(&rule, &"p-export".into(), &relations, &world.view, &at(5)), Met, "nor does it veto");
    let doubted = EvidenceRelation { scope_match: ScopeMatch::Unknown, ..said(&own, Relation::Supports) };
    assert_eq!(borne_out(&doubted, &rule, &world.view).scope_match, ScopeMatch::Applicable);
}
