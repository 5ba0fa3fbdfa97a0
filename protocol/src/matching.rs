//! Binds events to obligations, and finds the triggers that fire on what is recorded. Spec: §1.1, C2, C11, DEC-20, DEC-21.
//!
//! Candidates come from the indexes of accepted state: obligations that watch the event's entity or the evidence it cites,
//! and triggers that wait for its source. Each considered candidate gets a reason. Only accepted, open obligations are
//! candidates; a match makes work eligible and permits nothing.

use crate::entry::{ArtifactBody, Cause, Entry, Fired};
use crate::input::Moment;
use crate::predicate::{self, Subject};
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::envelope::Body;
use closer_contracts::event::{Event, Facet, MatchOutcome, MatchReceipt, Rationale};
use closer_contracts::id::{ArtifactId, EvidenceId, Id, ObligationId, ReceiptId, ReentryId, Text};
use closer_contracts::item::{Item, ItemKind, Rule, RuleBody, Standing};
use closer_contracts::obligation::{Obligation, ObligationDependency, Watch};
use closer_contracts::reentry::{Evaluation, EvaluationRecord, Reentry};
use closer_contracts::refs::{ArtifactRef, VersionedRef};
use closer_state::Awaited;
use std::collections::{BTreeMap, BTreeSet};

/// Compares an event with everything that watches what it touches, and says what that came to and why.
///
/// `event_ref` gives the digest of the EVENT payload; the receipt cites it under the event's own id. `auth_ref` is how its
/// source was authenticated. With the same view, event and moment the receipt is the same.
#[must_use]
pub fn match_event(
    event: &Event,
    event_ref: ArtifactRef,
    auth_ref: Option<ArtifactRef>,
    view: &View,
    at: &Moment,
) -> MatchReceipt {
    let rule = rule_in_force(view);
    let mut considered = watchers(event, view, rule);
    let (by_trigger, predicate_results) = triggers(event, auth_ref.as_ref(), view, at);
    considered.extend(by_trigger);
    let mut matched: Vec<ObligationId> = considered
        .iter()
        .filter(|rationale| branch!("matching.candidate_satisfied", rationale.result == Evaluation::Satisfied))
        .map(|rationale| rationale.obligation_id.clone())
        .collect();
    matched.sort();
    matched.dedup();
    let ambiguous = considered.iter().any(|rationale| rationale.result == Evaluation::Unknown);
    let outcome = match (branch!("matching.candidate_unknown", ambiguous), matched.is_empty()) {
        (true, _) => MatchOutcome::Ambiguous,
        (false, false) => MatchOutcome::Matched,
        (false, true) => MatchOutcome::Unmatched,
    };
    MatchReceipt {
        receipt_id: ReceiptId::new(crate::derived_id("match", event.event_id.as_str())),
        event_ref: ArtifactRef { id: ArtifactId::new(event.event_id.as_str()), digest: event_ref.digest },
        state_basis: view.state.reference(),
        rule_ref: rule.map_or_else(no_rule, |rule| VersionedRef { id: (&rule.rule_id).into(), version: rule.version }),
        matched_obligation_ids: matched,
        predicate_results,
        outcome,
        rationale: considered,
    }
}

/// The matching rule at its accepted version; the first in id order where there are several.
fn rule_in_force(view: &View) -> Option<&Rule> {
    view.state
        .items(ItemKind::Rule)
        .filter(|accepted| branch!("matching.rule_current", accepted.is_current()))
        .find_map(|accepted| {
            if let Item::Rule(rule) = &accepted.item
                && let RuleBody::Matching { .. } = &rule.body
            {
                return Some(rule);
            }
            None
        })
}

fn no_rule() -> VersionedRef {
    VersionedRef { id: Id::from("rule.none"), version: 0 }
}

fn facets(rule: &Rule) -> &[Facet] {
    match &rule.body {
        RuleBody::Matching { facets } => facets,
        RuleBody::Sufficiency { .. } | RuleBody::Decision { .. } => &[],
    }
}

/// One reason for every dependency that watches the event's entity or the evidence it cites.
fn watchers(event: &Event, view: &View, rule: Option<&Rule>) -> Vec<Rationale> {
    let cited = event.evidence_refs.iter().map(|cited| Id::from(cited.id.as_str()));
    let by_evidence: Vec<Id> = cited.collect();
    let mut obligations: BTreeMap<&ObligationId, &Obligation> = BTreeMap::new();
    let found = view
        .state
        .obligations_watching_entity(&event.entity_ref)
        .chain(by_evidence.iter().flat_map(|id| view.state.obligations_watching_evidence(id)));
    for obligation in found {
        if branch!("matching.obligation_open", obligation.status.is_open()) {
            obligations.insert(&obligation.obligation_id, obligation);
        }
    }
    let mut considered = Vec::new();
    for obligation in obligations.into_values() {
        for dependency in &obligation.dependencies {
            considered.extend(compare(event, obligation, dependency, view, rule));
        }
    }
    considered
}

/// Compares the four facets of an event with one dependency; `None` where it watches neither the entity nor the evidence.
fn compare(
    event: &Event,
    obligation: &Obligation,
    dependency: &ObligationDependency,
    view: &View,
    rule: Option<&Rule>,
) -> Option<Rationale> {
    let Watch::Entity { entity_ref, scope, change_kinds, evidence_ids } = &dependency.watch else {
        return None;
    };
    let about_entity = *entity_ref == event.entity_ref;
    let cites = evidence_ids.iter().any(|id| event.evidence_refs.iter().any(|cited| cited.id.as_str() == id.as_str()));
    if !about_entity && !cites {
        return None;
    }
    let reason = |result, facet, reason: String| Rationale {
        candidate: (&dependency.dependency_id).into(),
        obligation_id: obligation.obligation_id.clone(),
        result,
        facet,
        reason: Text::new(reason),
    };
    let Some(rule) = rule else {
        return Some(reason(Evaluation::Unknown, None, "no matching rule is in force".into()));
    };
    let told = |holds| {
        if holds { Evaluation::Satisfied } else { Evaluation::NotSatisfied }
    };
    let source = view.state.source(&event.source.source_id).filter(|source| source.standing == Standing::Current);
    let in_scope = source.map_or(Evaluation::Unknown, |source| told(scope.contains(&source.scope)));
    let all = [
        (Facet::Entity, told(branch!("matching.entity_fits", about_entity))),
        (Facet::Scope, in_scope),
        (Facet::ChangeKind, told(change_kinds.is_empty() || change_kinds.contains(&event.change_kind))),
        (Facet::Evidence, evidence_facet(event, evidence_ids, view)),
    ];
    let required = |facet: Facet| branch!("matching.facet_required", facets(rule).contains(&facet));
    let results: Vec<(Facet, Evaluation)> = all.into_iter().filter(|(facet, _)| required(*facet)).collect();
    let result = predicate::all_of(results.iter().map(|(_, result)| *result));
    let decisive = results.iter().find(|(_, facet)| *facet == result).map(|(facet, _)| *facet);
    Some(match result {
        Evaluation::Satisfied => {
            reason(result, None, "the event fits the dependency in every facet the rule requires".into())
        }
        Evaluation::NotSatisfied => reason(result, decisive, format!("the {} does not fit", named(decisive))),
        Evaluation::Unknown => {
            reason(result, decisive, format!("it cannot be told whether the {} fits", named(decisive)))
        }
    })
}

fn named(facet: Option<Facet>) -> &'static str {
    match facet {
        Some(Facet::Entity) => "entity",
        Some(Facet::Scope) => "scope of the source",
        Some(Facet::ChangeKind) => "kind of change",
        Some(Facet::Evidence) => "cited evidence",
        None => "event",
    }
}

/// At least one watched item is cited, and is on record with the cited digest; one that is not there cannot be told.
fn evidence_facet(event: &Event, watched: &[Id], view: &View) -> Evaluation {
    if watched.is_empty() {
        return Evaluation::Satisfied;
    }
    let cited = event.evidence_refs.iter().filter(|cited| watched.iter().any(|id| id.as_str() == cited.id.as_str()));
    predicate::any_of(cited.map(|cited| {
        let known = view.evidence.get(&EvidenceId::new(cited.id.as_str()));
        let resolved = known.is_some_and(|evidence| evidence.payload.content_digest() == cited.digest);
        match branch!("matching.cited_evidence_resolves", resolved) {
            true => Evaluation::Satisfied,
            false => Evaluation::Unknown,
        }
    }))
}

/// One reason for every trigger that waits for the event's source, with the record of its evaluation.
fn triggers(
    event: &Event,
    auth_ref: Option<&ArtifactRef>,
    view: &View,
    at: &Moment,
) -> (Vec<Rationale>, Vec<EvaluationRecord>) {
    let mut considered = Vec::new();
    let mut records = Vec::new();
    for reentry in view.state.triggers_awaiting(&Awaited::Source(event.source.source_id.clone())) {
        let Some(obligation) = view.state.obligation(&reentry.obligation_id) else {
            continue;
        };
        let subject =
            Subject { id: (&reentry.reentry_id).into(), scope: &obligation.scope, source_binding: auth_ref.cloned() };
        let evaluated = predicate::record(&subject, &reentry.predicate, view, at);
        let result = evaluated.first().map_or(Evaluation::Unknown, |record| record.result);
        let activated =
            view.activated.contains(&(reentry.reentry_id.clone(), predicate::activation_key(reentry, view)));
        let (result, reason) = match result {
            _ if is_expired(reentry, at) => (Evaluation::NotSatisfied, "the trigger has expired"),
            Evaluation::Satisfied if branch!("matching.trigger_activated_before", activated) => {
                (Evaluation::NotSatisfied, "the trigger was activated on these very inputs before")
            }
            Evaluation::Satisfied => (result, "the trigger's predicate is satisfied"),
            Evaluation::NotSatisfied => (result, "the trigger's predicate is not satisfied"),
            Evaluation::Unknown => (result, "the trigger's predicate cannot be told"),
        };
        records.extend(evaluated);
        considered.push(Rationale {
            candidate: (&reentry.reentry_id).into(),
            obligation_id: reentry.obligation_id.clone(),
            result,
            facet: None,
            reason: reason.into(),
        });
    }
    (considered, records)
}

/// Whether the trigger is disabled by its expiry: nothing makes work eligible through it any more (§7.3).
#[must_use]
pub fn is_expired(reentry: &Reentry, at: &Moment) -> bool {
    let expired = reentry.expires_at.as_ref().is_some_and(|expires_at| *expires_at <= at.now);
    branch!("matching.trigger_expired", expired)
}

/// The triggers that fire on what was just recorded: satisfied, not expired, of an open obligation, and not activated on
/// these inputs before (DEC-55). The review of a gap fires alike, under the name that [`gap_trigger`] gives it.
///
/// Only triggers that wait for something these entries touch are evaluated; those that a commit installs are evaluated at
/// once. Time alone is looked after by [`crate::timers`].
#[must_use]
pub fn fired<'a>(view: &View, at: &Moment, recorded: impl IntoIterator<Item = &'a Entry>) -> Vec<Fired> {
    let mut reentries: BTreeMap<&ReentryId, &Reentry> = BTreeMap::new();
    let mut gaps: BTreeMap<&ObligationId, &Obligation> = BTreeMap::new();
    let mut touched = Touched::default();
    recorded.into_iter().for_each(|entry| touched.by(entry));
    for input in &touched.inputs {
        reentries.extend(view.state.triggers_awaiting(input).map(|reentry| (&reentry.reentry_id, reentry)));
        gaps.extend(view.state.gaps_awaiting(input).map(|obligation| (&obligation.obligation_id, obligation)));
    }
    for obligation in touched.installed.iter().filter_map(|id| view.state.obligation(id)) {
        let installed = view.state.reentries_of(&obligation.obligation_id);
        reentries.extend(installed.map(|reentry| (&reentry.reentry_id, reentry)));
        gaps.insert(&obligation.obligation_id, obligation);
    }
    let fired = reentries.into_values().filter_map(|reentry| fire(reentry, view, at));
    fired.chain(gaps.into_values().filter_map(|obligation| review(obligation, view, at))).collect()
}

/// What entries touch that a predicate can read.
#[derive(Default)]
struct Touched {
    inputs: BTreeSet<Awaited>,
    installed: BTreeSet<ObligationId>,
}

impl Touched {
    fn by(&mut self, entry: &Entry) {
        match entry {
            Entry::Payload(payload) => match payload.body() {
                Body::Event(event) => self.inputs.extend([Awaited::Source(event.source.source_id.clone())]),
                Body::Evidence(evidence) => self.inputs.extend([Awaited::Source(evidence.source.source_id.clone())]),
                Body::Obligation(_)
                | Body::Route(_)
                | Body::Work(_)
                | Body::Result(_)
                | Body::Action(_)
                | Body::Adjudication(_)
                | Body::Delta(_)
                | Body::Reentry(_)
                | Body::Handoff(_)
                | Body::Briefcase(_) => {}
            },
            Entry::Artifact(artifact) => match &**artifact {
                ArtifactBody::UserDecision(decision) => {
                    self.inputs.insert(Awaited::Decision(crate::bench::packet_of(decision)));
                }
                ArtifactBody::AcceptanceReceipt(receipt) => {
                    self.inputs.insert(Awaited::Handoff(receipt.handoff_ref.clone()));
                }
                ArtifactBody::MatchReceipt(_)
                | ArtifactBody::DisclosureReceipt(_)
                | ArtifactBody::Declaration(_)
                | ArtifactBody::CommitReceipt(_)
                | ArtifactBody::RestrictionStatement(_)
                | ArtifactBody::ReconciliationReceipt(_)
                | ArtifactBody::Confession(_)
                | ArtifactBody::Incident(_)
                | ArtifactBody::IncidentStep(_)
                | ArtifactBody::ReadSet(_)
                | ArtifactBody::Conference(_)
                | ArtifactBody::ConferenceMove(_)
                | ArtifactBody::Proceeding(_)
                | ArtifactBody::ResponsibilityContract(_)
                | ArtifactBody::HandoffConsent(_)
                | ArtifactBody::ReviewReceipt(_)
                | ArtifactBody::Call(_)
                | ArtifactBody::Observing(_)
                | ArtifactBody::UngovernedCall(_)
                | ArtifactBody::WorkTaken(_)
                | ArtifactBody::Advice(_) => {}
            },
            Entry::Commit(commit) => self.by_commit(commit),
            Entry::Genesis(_)
            | Entry::Auth(_)
            | Entry::Intent(_)
            | Entry::Outcome(_)
            | Entry::Refusal(_)
            | Entry::Ledger(_)
            | Entry::Ownership(_)
            | Entry::Activation(_)
            | Entry::Notice(_)
            | Entry::Passed => {}
        }
    }

    fn by_commit(&mut self, commit: &closer_state::Commit) {
        for (kind, id) in closer_state::touched(commit) {
            if kind == ItemKind::Obligation {
                self.installed.insert(ObligationId::new(id.as_str()));
            }
            self.inputs.insert(Awaited::Item(id));
        }
        let operations = commit.delta.changes.iter().filter_map(|change| match change {
            closer_contracts::delta::Change::Add { item } | closer_contracts::delta::Change::Revise { item, .. } => {
                if let Item::Operation(entry) = &**item {
                    Some(entry.capability.clone())
                } else {
                    None
                }
            }
            closer_contracts::delta::Change::Suspend { .. }
            | closer_contracts::delta::Change::Retract { .. }
            | closer_contracts::delta::Change::RevokeGrant { .. }
            | closer_contracts::delta::Change::AdmitObligation { .. }
            | closer_contracts::delta::Change::SetStatus { .. }
            | closer_contracts::delta::Change::SetConditions { .. }
            | closer_contracts::delta::Change::SetTriggers { .. }
            | closer_contracts::delta::Change::SetOwner { .. }
            | closer_contracts::delta::Change::AddDependency { .. }
            | closer_contracts::delta::Change::RemoveDependency { .. }
            | closer_contracts::delta::Change::SuspendEligibility { .. }
            | closer_contracts::delta::Change::LiftRestriction { .. } => None,
        });
        self.inputs.extend(operations.map(Awaited::Capability));
    }
}

/// The firing of one installed trigger, if it fires now.
#[must_use]
pub fn fire(reentry: &Reentry, view: &View, at: &Moment) -> Option<Fired> {
    if is_expired(reentry, at) {
        return None;
    }
    let key = predicate::activation_key(reentry, view);
    let activated = view.activated.contains(&(reentry.reentry_id.clone(), key));
    let satisfied = predicate::evaluate(&reentry.predicate, view, at) == Evaluation::Satisfied;
    let open = view.state.obligation(&reentry.obligation_id).is_some_and(|obligation| obligation.status.is_open());
    let fires = open
        && branch!("matching.trigger_satisfied", satisfied)
        && branch!("matching.trigger_not_activated", !activated);
    fires.then(|| Fired {
        obligation_id: reentry.obligation_id.clone(),
        cause: Cause {
            event_id: None,
            match_receipt: None,
            reentry_id: Some(reentry.reentry_id.clone()),
            activation_key: Some(key),
            reason: "the trigger's predicate is satisfied".into(),
        },
    })
}

/// The name under which the review of an obligation's gap is activated: it has no trigger of its own.
#[must_use]
pub fn gap_trigger(obligation_id: &ObligationId) -> ReentryId {
    ReentryId::new(crate::derived_id("review", obligation_id.as_str()))
}

/// The review of an obligation's gap, if its condition holds now and it was not reviewed on these inputs before.
#[must_use]
pub fn review(obligation: &Obligation, view: &View, at: &Moment) -> Option<Fired> {
    let gap = obligation.trigger_gap.as_ref()?;
    let reentry_id = gap_trigger(&obligation.obligation_id);
    let key = predicate::key_of(&gap.review_predicate, reentry_id.as_str(), view);
    let activated = view.activated.contains(&(reentry_id.clone(), key));
    let satisfied = predicate::evaluate(&gap.review_predicate, view, at) == Evaluation::Satisfied;
    let fires = obligation.status.is_open() && branch!("matching.review_due", satisfied) && !activated;
    fires.then(|| Fired {
        obligation_id: obligation.obligation_id.clone(),
        cause: Cause {
            event_id: None,
            match_receipt: None,
            reentry_id: Some(reentry_id),
            activation_key: Some(key),
            reason: Text::new(format!("the gap is to be reviewed by {}", gap.responsible_owner)),
        },
    })
}
