//! Whether evidence suffices for a proposition, by the declared rule over the relations that are relevant.
//!
//! The system resolves every reference itself; a participant's word counts for nothing. Only relations whose evidence is
//! on record and whose scope applies have any influence, and one item is related to one proposition at a time. Voices,
//! confidence and how long something has been held are not inputs. Spec: §6.3, DEC-32, DEC-33, DEC-34.

use crate::input::Moment;
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::evidence::Evidence;
use closer_contracts::id::{Key, ObservationStreamId, PropositionId, SourceId};
use closer_contracts::item::{Rule, RuleBody, Shown, Standing};
use closer_contracts::obligation::AssessmentStatus;
use closer_contracts::work::{EvidenceRelation, ReferenceStatus, Relation, ScopeMatch, TargetVersion, ValidAt};
use closer_monitor::ClockStanding;
use std::collections::{BTreeMap, BTreeSet};

/// The relation as the record bears it out: its reference status is the system's own, whatever was claimed, and the
/// limitations of the evidence travel with it.
#[must_use]
pub fn resolve(relation: &EvidenceRelation, view: &View) -> EvidenceRelation {
    let mut resolved = relation.clone();
    let on_record = view.evidence.get(&relation.evidence_id);
    let Some(evidence) = on_record.filter(|_| branch!("sufficiency.evidence_on_record", true)) else {
        resolved.reference_status = ReferenceStatus::Unresolved;
        return resolved;
    };
    let agrees = relation.valid_at == valid_at(&evidence.body);
    resolved.reference_status = match branch!("sufficiency.reference_agrees", agrees) {
        true => ReferenceStatus::Resolved,
        false => ReferenceStatus::DigestMismatch,
    };
    for limitation in &evidence.body.limitations {
        if branch!("sufficiency.limitation_not_stated", !resolved.limitations.contains(limitation)) {
            resolved.limitations.push(limitation.clone());
        }
    }
    resolved
}

/// The relation as the record and the rule bear it out. Where the rule says what an observation must show, the newest
/// observation of the stream is compared, and no participant's reading of it counts (§6.3, DEC-33). An observation of a
/// target that the rule is not about says nothing, whatever was claimed of it (C8).
#[must_use]
pub fn borne_out(relation: &EvidenceRelation, rule: &Rule, view: &View) -> EvidenceRelation {
    let mut borne_out = resolve(relation, view);
    let shown = match &rule.body {
        RuleBody::Sufficiency { shown, .. } => shown.as_ref(),
        RuleBody::Matching { .. } | RuleBody::Decision { .. } => None,
    };
    let (Some(shown), Some(cited)) = (shown, view.evidence.get(&relation.evidence_id)) else {
        return borne_out;
    };
    let binding = &cited.body.target_binding;
    if branch!("sufficiency.other_target", !shown.targets.covers(&binding.target)) {
        borne_out.scope_match = ScopeMatch::NotApplicable;
        return borne_out;
    }
    borne_out.scope_match = ScopeMatch::Applicable;
    let newest = view.observed.get(&binding.observation_sequence_ref).and_then(|(_, id)| view.evidence.get(id));
    let witness = newest.filter(|_| branch!("sufficiency.newest_decides", true)).unwrap_or(cited);
    let says = says(shown, &witness.body);
    if branch!("sufficiency.observation_decides", relation.relation != Relation::Irrelevant) {
        borne_out.relation = says;
    }
    borne_out
}

/// What an observation says by itself about what must be shown.
fn says(shown: &Shown, evidence: &Evidence) -> Relation {
    let results = shown.expectations.iter().map(|expected| crate::readback::meets(expected, &evidence.observation));
    let results: Vec<Option<bool>> = results.collect();
    match (results.contains(&Some(false)), results.contains(&None)) {
        (true, _) => Relation::Contradicts,
        (false, true) => Relation::Unresolved,
        (false, false) => Relation::Supports,
    }
}

/// When and where in its stream an observation stands.
#[must_use]
pub fn valid_at(evidence: &Evidence) -> ValidAt {
    let binding = &evidence.target_binding;
    ValidAt {
        observed_at: evidence.observed_at.clone(),
        observation_sequence_ref: binding.observation_sequence_ref.clone(),
        observation_version: binding.observation_version,
        target_version: binding.target_version.clone(),
    }
}

/// Computes the status of a proposition under a rule.
///
/// An open contradiction makes it `not_met`; enough supports from distinct sources make it `met`; anything else that was
/// assessed is `insufficient`. Within one stream of observations a later one takes the place of the earlier ones; streams
/// are never compared with each other.
#[must_use]
pub fn assess(
    rule: &Rule,
    proposition: &PropositionId,
    relations: &[EvidenceRelation],
    view: &View,
    at: &Moment,
) -> AssessmentStatus {
    let about: Vec<EvidenceRelation> = relations
        .iter()
        .filter(|relation| branch!("sufficiency.about_proposition", relation.proposition_id == *proposition))
        .filter(|relation| !branch!("sufficiency.irrelevant", relation.relation == Relation::Irrelevant))
        .map(|relation| borne_out(relation, rule, view))
        .filter(|relation| relation.scope_match != ScopeMatch::NotApplicable)
        .collect();
    if branch!("sufficiency.nothing_assessed", about.is_empty()) {
        return AssessmentStatus::Unassessed;
    }
    let relevant: Vec<&EvidenceRelation> = about.iter().filter(|relation| is_relevant(relation)).collect();
    let newest = newest_of(&relevant);
    let standing: Vec<&EvidenceRelation> =
        relevant.iter().copied().filter(|relation| !is_superseded(relation, &newest)).collect();
    let contradicted = standing.iter().any(|relation| relation.relation == Relation::Contradicts);
    if branch!("sufficiency.contradicted", contradicted) {
        return AssessmentStatus::NotMet;
    }
    let RuleBody::Sufficiency {
        distinct_sources_min,
        age_ms_max,
        accepts_unknown_target_version,
        observation_types,
        ..
    } = &rule.body
    else {
        return AssessmentStatus::Insufficient;
    };
    let demands =
        Demands { age_ms_max: *age_ms_max, unknown_version: *accepts_unknown_target_version, observation_types };
    let sources: BTreeSet<&SourceId> = standing
        .iter()
        .filter(|relation| relation.relation == Relation::Supports)
        .filter_map(|relation| view.evidence.get(&relation.evidence_id))
        .filter(|evidence| demands.are_met(&evidence.body, view, at))
        .map(|evidence| &evidence.body.source.source_id)
        .collect();
    let enough = sources.len() >= usize::try_from(*distinct_sources_min).unwrap_or(usize::MAX);
    let current = rule.standing == Standing::Current && *distinct_sources_min > 0;
    match current && branch!("sufficiency.sources_suffice", enough) {
        true => AssessmentStatus::Met,
        false => AssessmentStatus::Insufficient,
    }
}

/// Whether a relation enters a rule at all: resolved by the system and applicable in scope (DEC-32).
fn is_relevant(relation: &EvidenceRelation) -> bool {
    let resolved = relation.reference_status == ReferenceStatus::Resolved;
    let applicable = relation.scope_match == ScopeMatch::Applicable;
    let speaks = matches!(relation.relation, Relation::Supports | Relation::Contradicts);
    branch!("sufficiency.resolved", resolved) && branch!("sufficiency.applicable", applicable) && speaks
}

/// The newest observation of each stream among these relations.
fn newest_of<'a>(relevant: &[&'a EvidenceRelation]) -> BTreeMap<&'a ObservationStreamId, u64> {
    let mut newest = BTreeMap::new();
    for relation in relevant {
        let at = &relation.valid_at;
        let known: &mut u64 = newest.entry(&at.observation_sequence_ref).or_default();
        *known = at.observation_version.max(*known);
    }
    newest
}

/// Whether a later observation of the same stream speaks to the same proposition.
fn is_superseded(relation: &EvidenceRelation, newest: &BTreeMap<&ObservationStreamId, u64>) -> bool {
    let own = &relation.valid_at;
    let later = newest.get(&own.observation_sequence_ref).is_some_and(|newest| *newest > own.observation_version);
    branch!("sufficiency.same_stream", later)
}

/// A relation's digest, by which one that is said several times is known again.
pub(crate) fn digest_of(relation: &EvidenceRelation) -> Digest {
    canonical::digest_of(relation).unwrap_or_else(|_| Digest::of(relation.evidence_id.as_str().as_bytes()))
}

struct Demands<'a> {
    age_ms_max: Option<u64>,
    unknown_version: bool,
    observation_types: &'a [Key],
}

impl Demands<'_> {
    fn are_met(&self, evidence: &Evidence, view: &View, at: &Moment) -> bool {
        let counted =
            self.observation_types.is_empty() || self.observation_types.contains(&evidence.observation.r#type);
        branch!("sufficiency.type_counts", counted)
            && self.is_young(evidence, at)
            && self.is_of_current_target(evidence, view)
    }

    /// An observation's age by the runtime's clock; an unreliable clock cannot tell it, and neither can a time that its
    /// producer gives and that has not come yet (DEC-59).
    fn is_young(&self, evidence: &Evidence, at: &Moment) -> bool {
        let Some(age_ms_max) = self.age_ms_max else { return true };
        let young = evidence.observed_at.plus_ms(age_ms_max) >= at.now;
        at.clock == ClockStanding::Reliable
            && branch!("sufficiency.observed_by_now", evidence.observed_at <= at.now)
            && branch!("sufficiency.young_enough", young)
    }

    /// The target's version as observed is the newest that its stream shows; one that is not known is fresh only where the
    /// rule says so.
    fn is_of_current_target(&self, evidence: &Evidence, view: &View) -> bool {
        let binding = &evidence.target_binding;
        let newest = view.observed.get(&binding.observation_sequence_ref).and_then(|(_, id)| view.evidence.get(id));
        let newest = newest.map_or(&TargetVersion::Unknown, |newest| &newest.body.target_binding.target_version);
        match (&binding.target_version, newest) {
            (TargetVersion::Unknown, _) | (_, TargetVersion::Unknown) => {
                branch!("sufficiency.unknown_version_accepted", self.unknown_version)
            }
            (TargetVersion::Known(own), TargetVersion::Known(newest)) => {
                branch!("sufficiency.version_current", own == newest)
            }
        }
    }
}
