//! A conclusion is as well supported as its rule computes from the relevant relations, and by nothing else.

use crate::fixture::{World, at, doubtful, lenient, minute, observation, rule};
use closer_contracts::evidence::Evidence;
use closer_contracts::item::RuleBody;
use closer_contracts::obligation::AssessmentStatus;
use closer_contracts::obligation::AssessmentStatus::{Insufficient, Met, NotMet, Unassessed};
use closer_contracts::shows;
use closer_contracts::work::{EvidenceRelation, ReferenceStatus, Relation, ScopeMatch, TargetVersion};
use closer_protocol::sufficiency::{assess, resolve, valid_at};
use proptest::prelude::*;

/// What somebody says an observation says about a proposition.
fn says(evidence: &Evidence, proposition: &str, relation: Relation) -> EvidenceRelation {
    EvidenceRelation {
        proposition_id: proposition.into(),
        evidence_id: evidence.evidence_id.clone(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation,
        valid_at: valid_at(evidence),
        limitations: Vec::new(),
    }
}

fn under(body: RuleBody, world: &World, relations: &[EvidenceRelation]) -> AssessmentStatus {
    assess(&rule("sufficiency", 1, body), &"p-export".into(), relations, &world.view, &at(5))
}

fn two_sources() -> RuleBody {
    with(|demands| demands.0 = 2)
}

/// The lenient rule with one demand changed: sources, age, unknown versions, observation types.
fn with(change: impl FnOnce(&mut (u32, Option<u64>, bool, Vec<&'static str>))) -> RuleBody {
    let mut demands = (1, None, true, Vec::new());
    change(&mut demands);
    RuleBody::Sufficiency {
        distinct_sources_min: demands.0,
        age_ms_max: demands.1,
        accepts_unknown_target_version: demands.2,
        observation_types: demands.3.into_iter().map(Into::into).collect(),
        shown: None,
    }
}

fn observed(world: &mut World, id: &str, from: &str, stream: &str, number: u64) -> Evidence {
    let evidence = observation(id, from, stream, number);
    world.observe(evidence.clone());
    evidence
}

#[test]
fn one_item_speaks_for_one_proposition_and_against_another() {
    shows!("CP-6.3-02"; by "sufficiency.about_proposition");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    let relations = [says(&evidence, "p-export", Relation::Supports), says(&evidence, "p-cost", Relation::Contradicts)];
    let rule = rule("sufficiency", 1, lenient());
    assert_eq!(assess(&rule, &"p-export".into(), &relations, &world.view, &at(5)), Met);
    assert_eq!(assess(&rule, &"p-cost".into(), &relations, &world.view, &at(5)), NotMet);
}

#[test]
fn irrelevant_evidence_moves_nothing_in_either_direction() {
    shows!("CP-6.3-03"; by "sufficiency.irrelevant");
    let mut world = World::new();
    let first = observed(&mut world, "ev-1", "probe", "probes", 1);
    let irrelevant = says(&observed(&mut world, "ev-2", "second", "probes-2", 1), "p-export", Relation::Irrelevant);
    for relation in [Relation::Supports, Relation::Contradicts, Relation::Unresolved] {
        let alone = [says(&first, "p-export", relation)];
        let beside = [alone[0].clone(), irrelevant.clone()];
        for body in [lenient(), two_sources()] {
            assert_eq!(under(body.clone(), &world, &beside), under(body, &world, &alone), "{relation}");
        }
    }
    assert_eq!(under(lenient(), &world, &[irrelevant]), under(lenient(), &world, &[]));
}

#[test]
fn numbers_of_different_streams_are_not_compared() {
    shows!("CP-6.3-06"; by "sufficiency.same_stream");
    let mut world = World::new();
    let against = observed(&mut world, "ev-1", "probe", "probes", 1);
    let elsewhere = observed(&mut world, "ev-2", "probe", "other-probes", 9);
    let relations =
        [says(&against, "p-export", Relation::Contradicts), says(&elsewhere, "p-export", Relation::Supports)];
    assert_eq!(under(lenient(), &world, &relations), NotMet, "a higher number elsewhere is not later");
    let later = observed(&mut world, "ev-3", "probe", "probes", 2);
    let relations = [says(&against, "p-export", Relation::Contradicts), says(&later, "p-export", Relation::Supports)];
    assert_eq!(under(lenient(), &world, &relations), Met, "in its own stream it is");
}

#[test]
fn what_nobody_assessed_is_no_contradiction_and_no_support() {
    shows!("CP-6.3-09"; by "sufficiency.nothing_assessed");
    let mut world = World::new();
    observed(&mut world, "ev-1", "probe", "probes", 1);
    assert_eq!(under(lenient(), &world, &[]), Unassessed);
    let evidence = observed(&mut world, "ev-2", "probe", "probes", 2);
    assert_eq!(under(lenient(), &world, &[says(&evidence, "p-export", Relation::Unresolved)]), Insufficient);
}

#[test]
fn the_declared_rule_decides_what_suffices() {
    shows!("CP-6.3-10"; by "sufficiency.sources_suffice");
    let mut world = World::new();
    let first = observed(&mut world, "ev-1", "probe", "probes", 1);
    let again = observed(&mut world, "ev-2", "probe", "probes-again", 1);
    let same_source = [says(&first, "p-export", Relation::Supports), says(&again, "p-export", Relation::Supports)];
    assert_eq!(under(lenient(), &world, &same_source), Met);
    assert_eq!(under(two_sources(), &world, &same_source), Insufficient, "one source twice is one source");
    let other = observed(&mut world, "ev-3", "second", "probes-2", 1);
    let two = [same_source[0].clone(), says(&other, "p-export", Relation::Supports)];
    assert_eq!(under(two_sources(), &world, &two), Met);
}

#[test]
fn an_open_contradiction_is_not_outvoted() {
    shows!("CP-6.3-10"; by "sufficiency.contradicted");
    let mut world = World::new();
    let mut relations: Vec<EvidenceRelation> = (0..9)
        .map(|n| {
            says(
                &observed(&mut world, &format!("ev-{n}"), "probe", &format!("stream-{n}"), 1),
                "p-export",
                Relation::Supports,
            )
        })
        .collect();
    assert_eq!(under(lenient(), &world, &relations), Met);
    let against = observed(&mut world, "ev-against", "second", "probes-2", 1);
    relations.push(says(&against, "p-export", Relation::Contradicts));
    assert_eq!(under(lenient(), &world, &relations), NotMet);
}

#[test]
fn the_system_resolves_references_itself() {
    shows!("CP-6.3-11"; by "sufficiency.evidence_on_record", "sufficiency.resolved");
    let mut world = World::new();
    let known = observed(&mut world, "ev-1", "probe", "probes", 1);
    let dangling = says(&observation("ev-9", "probe", "probes", 9), "p-export", Relation::Supports);
    assert_eq!(dangling.reference_status, ReferenceStatus::Resolved, "a participant's word");
    assert_eq!(resolve(&dangling, &world.view).reference_status, ReferenceStatus::Unresolved);
    assert_eq!(under(lenient(), &world, &[dangling]), Insufficient);
    let doubted = EvidenceRelation {
        reference_status: ReferenceStatus::Unavailable,
        ..says(&known, "p-export", Relation::Supports)
    };
    assert_eq!(resolve(&doubted, &world.view).reference_status, ReferenceStatus::Resolved);
    assert_eq!(under(lenient(), &world, &[doubted]), Met);
}

#[test]
fn a_relation_to_another_observation_than_the_record_holds_does_not_count() {
    shows!("CP-6.3-11"; by "sufficiency.reference_agrees");
    let mut world = World::new();
    let known = observed(&mut world, "ev-1", "probe", "probes", 1);
    let mut misstated = says(&known, "p-export", Relation::Supports);
    misstated.valid_at.observation_version = 2;
    assert_eq!(resolve(&misstated, &world.view).reference_status, ReferenceStatus::DigestMismatch);
    assert_eq!(under(lenient(), &world, &[misstated]), Insufficient);
    assert_eq!(under(lenient(), &world, &[says(&known, "p-export", Relation::Supports)]), Met);
}

#[test]
fn limitations_travel_with_the_evidence() {
    shows!("CP-6.3-12"; by "sufficiency.limitation_not_stated");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    let mut relation = says(&evidence, "p-export", Relation::Supports);
    relation.limitations = vec!["the assessor's own".into()];
    let resolved = resolve(&relation, &world.view);
    let limitations: Vec<&str> = resolved.limitations.iter().map(|text| text.as_str()).collect();
    assert_eq!(limitations, ["the assessor's own", "as observed once"]);
    assert_eq!(resolve(&resolved, &world.view), resolved, "once");
}

#[test]
fn evidence_whose_scope_is_not_told_to_apply_does_not_count() {
    shows!("CP-6.3-10"; by "sufficiency.applicable");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    let scoped = |scope_match| EvidenceRelation { scope_match, ..says(&evidence, "p-export", Relation::Supports) };
    assert_eq!(under(lenient(), &world, &[scoped(ScopeMatch::Unknown)]), Insufficient);
    assert_eq!(under(lenient(), &world, &[scoped(ScopeMatch::NotApplicable)]), Unassessed);
    assert_eq!(under(lenient(), &world, &[scoped(ScopeMatch::Applicable)]), Met);
}

#[test]
fn old_evidence_does_not_count_where_the_rule_limits_its_age() {
    shows!("CP-6.3-10"; by "sufficiency.young_enough");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    assert_eq!(evidence.observed_at, minute(1));
    let relations = [says(&evidence, "p-export", Relation::Supports)];
    let young = rule("sufficiency", 1, with(|demands| demands.1 = Some(240_000)));
    let told = |moment| assess(&young, &"p-export".into(), &relations, &world.view, &moment);
    assert_eq!(told(at(5)), Met, "four minutes old");
    assert_eq!(told(at(6)), Insufficient, "five minutes old");
    assert_eq!(told(doubtful(5)), Insufficient, "the clock cannot tell");
}

/// A producer's clock that runs ahead keeps nothing young: how old such an observation is cannot be told until its time comes.
#[test]
fn evidence_from_a_time_to_come_is_not_young() {
    shows!("CP-6.3-10"; by "sufficiency.observed_by_now");
    let mut world = World::new();
    let mut evidence = observation("ev-1", "probe", "probes", 1);
    evidence.observed_at = minute(8);
    world.observe(evidence.clone());
    let relations = [says(&evidence, "p-export", Relation::Supports)];
    let young = rule("sufficiency", 1, with(|demands| demands.1 = Some(240_000)));
    let told = |moment| assess(&young, &"p-export".into(), &relations, &world.view, &moment);
    assert_eq!(told(at(5)), Insufficient, "three minutes ahead");
    assert_eq!(told(at(8)), Met, "its time has come");
    assert_eq!(under(lenient(), &world, &relations), Met, "a rule without an age asks for none");
}

#[test]
fn evidence_of_an_older_version_of_the_target_does_not_count() {
    shows!("CP-6.3-10"; by "sufficiency.version_current");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    let relations = [says(&evidence, "p-export", Relation::Supports)];
    assert_eq!(under(lenient(), &world, &relations), Met);
    let mut newer = observation("ev-2", "probe", "probes", 2);
    newer.target_binding.target_version = TargetVersion::Known("release-8".into());
    world.observe(newer);
    assert_eq!(under(lenient(), &world, &relations), Insufficient);
}

#[test]
fn an_unknown_target_version_counts_only_where_the_rule_says_so() {
    shows!("CP-6.3-10"; by "sufficiency.unknown_version_accepted");
    let mut world = World::new();
    let mut evidence = observation("ev-1", "probe", "probes", 1);
    evidence.target_binding.target_version = TargetVersion::Unknown;
    world.observe(evidence.clone());
    let relations = [says(&evidence, "p-export", Relation::Supports)];
    assert_eq!(under(lenient(), &world, &relations), Met);
    assert_eq!(under(with(|demands| demands.2 = false), &world, &relations), Insufficient);
}

#[test]
fn only_the_required_kinds_of_observation_count() {
    shows!("CP-6.3-10"; by "sufficiency.type_counts");
    let mut world = World::new();
    let evidence = observed(&mut world, "ev-1", "probe", "probes", 1);
    let relations = [says(&evidence, "p-export", Relation::Supports)];
    assert_eq!(under(with(|demands| demands.3 = vec!["probe"]), &world, &relations), Met);
    assert_eq!(under(with(|demands| demands.3 = vec!["audit"]), &world, &relations), Insufficient);
}

proptest! {
    /// Repeating what was said, or saying it in another order, changes nothing: voices are not counted.
    #[test]
    fn neither_repetition_nor_order_counts(
        said in prop::collection::vec((0usize..4, prop::sample::select(Relation::ALL.to_vec())), 0..8),
        copies in 1usize..4,
        sources in 1u32..3,
    ) {
        let mut world = World::new();
        let evidence: Vec<Evidence> = (0..4)
            .map(|n| {
                let from = if n % 2 == 0 { "probe" } else { "second" };
                observed(&mut world, &format!("ev-{n}"), from, &format!("stream-{}", n / 2), 1 + n % 2)
            })
            .collect();
        let relations: Vec<EvidenceRelation> =
            said.iter().map(|(n, relation)| says(&evidence[*n], "p-export", *relation)).collect();
        let body = with(|demands| demands.0 = sources);
        let once = under(body.clone(), &world, &relations);
        let mut repeated: Vec<EvidenceRelation> = std::iter::repeat_n(relations.clone(), copies).flatten().collect();
        prop_assert_eq!(under(body.clone(), &world, &repeated), once);
        repeated.reverse();
        prop_assert_eq!(under(body, &world, &repeated), once);
    }
}
