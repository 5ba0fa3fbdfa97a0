//! Evaluates typed predicates over the view: strong Kleene logic over what is on record. Spec: C11, DEC-54 to DEC-59.
//!
//! An evaluation is a pure function of the view and the moment. What cannot be told is `unknown`: a source that is not
//! registered, an input that is missing, a stream with a gap, an unreliable clock, an operator of a newer version. Being
//! satisfied permits reconsideration and nothing else; no authority is read or given here.

use crate::input::Moment;
use crate::view::View;
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ArtifactId, EvidenceId, Id, ObservationStreamId, SourceId};
use closer_contracts::item::{IdentityKind, Item, ItemKind, OperationEntry, Standing};
use closer_contracts::reentry::{
    CapabilityVerified, DependencyVersionChanged, Evaluation, EvaluationRecord, EvidenceAdded, HandoffAccepted,
    OPERATORS, PredicateVersion, Reentry, TimeReached, TypedPredicate, UserDecisionReceived,
};
use closer_contracts::refs::{ArtifactRef, Scope};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;
use std::collections::BTreeMap;

/// Evaluates a predicate on what is on record at this moment. Every child is evaluated.
#[must_use]
pub fn evaluate(predicate: &TypedPredicate, view: &View, at: &Moment) -> Evaluation {
    match predicate {
        TypedPredicate::EvidenceAdded(leaf) => evidence_added(leaf, view),
        TypedPredicate::DependencyVersionChanged(leaf) => dependency_changed(leaf, view),
        TypedPredicate::UserDecisionReceived(leaf) => decision_received(leaf, view),
        TypedPredicate::CapabilityVerified(leaf) => capability_verified(leaf, view, at),
        TypedPredicate::HandoffAccepted(leaf) => handoff_accepted(leaf, view),
        TypedPredicate::TimeReached(leaf) => time_reached(leaf, at),
        TypedPredicate::All(all) => all_of(all.items.iter().map(|item| evaluate(item, view, at))),
        TypedPredicate::Any(any) => any_of(any.items.iter().map(|item| evaluate(item, view, at))),
        TypedPredicate::Unsupported(_) => Evaluation::Unknown,
    }
}

/// Whether this version has every operator of a predicate that somebody installs here. What arrives from elsewhere with an
/// operator of another version is kept and evaluates `unknown` (DEC-57); to install it would be to wait for nothing.
///
/// # Errors
/// `unknown_version`, with the path of the operator.
pub fn installable(predicate: &TypedPredicate) -> Result<(), Fault> {
    let unsupported = matches!(predicate, TypedPredicate::Unsupported(_));
    if branch!("predicate.operator_unsupported", unsupported) {
        let reason = format!("this version has no such operator; it has {}", OPERATORS.join(", "));
        return Err(Fault::new(RefusalCode::UnknownVersion, reason).within("operator"));
    }
    let mut children = predicate.children().iter().enumerate();
    children.try_for_each(|(index, child)| installable(child).map_err(|fault| fault.within(index).within("items")))
}

/// `All`: one child that is not satisfied settles it, then one that is unknown.
#[must_use]
pub fn all_of(children: impl IntoIterator<Item = Evaluation>) -> Evaluation {
    let children: Vec<Evaluation> = children.into_iter().collect();
    let has = |evaluation| children.contains(&evaluation);
    if branch!("predicate.all_has_unsatisfied", has(Evaluation::NotSatisfied)) {
        return Evaluation::NotSatisfied;
    }
    match branch!("predicate.all_has_unknown", has(Evaluation::Unknown)) {
        true => Evaluation::Unknown,
        false => Evaluation::Satisfied,
    }
}

/// `Any`: one child that is satisfied settles it, then one that is unknown.
#[must_use]
pub fn any_of(children: impl IntoIterator<Item = Evaluation>) -> Evaluation {
    let children: Vec<Evaluation> = children.into_iter().collect();
    let has = |evaluation| children.contains(&evaluation);
    if branch!("predicate.any_has_satisfied", has(Evaluation::Satisfied)) {
        return Evaluation::Satisfied;
    }
    match branch!("predicate.any_has_unknown", has(Evaluation::Unknown)) {
        true => Evaluation::Unknown,
        false => Evaluation::NotSatisfied,
    }
}

const fn told(holds: bool) -> Evaluation {
    match holds {
        true => Evaluation::Satisfied,
        false => Evaluation::NotSatisfied,
    }
}

/// Evidence in scope, from a permitted source, after the cursor of its stream (DEC-54).
fn evidence_added(leaf: &EvidenceAdded, view: &View) -> Evaluation {
    let unregistered = |source: &SourceId| {
        let source = view.state.source(source);
        source.is_none_or(|source| source.standing != Standing::Current)
    };
    let source_unknown = leaf.permitted_source_refs.is_empty() || leaf.permitted_source_refs.iter().any(unregistered);
    let stream_missing = leaf.after_cursor.is_empty();
    let streams = leaf.after_cursor.iter().map(|(stream, &after)| stream_added(leaf, stream, after, view));
    let inputs =
        [branch!("predicate.source_unknown", source_unknown), branch!("predicate.no_stream_named", stream_missing)];
    any_of(streams.chain(inputs.into_iter().filter(|missing| *missing).map(|_| Evaluation::Unknown)))
}

fn stream_added(leaf: &EvidenceAdded, stream: &ObservationStreamId, after: u64, view: &View) -> Evaluation {
    let Some(&(head, _)) = view.observed.get(stream) else {
        return Evaluation::Unknown;
    };
    let mut expected = after.saturating_add(1);
    let mut contiguous = head >= after;
    for ((_, number), evidence_id) in view.numbered.range((stream.clone(), after)..=(stream.clone(), head.max(after))) {
        if branch!("predicate.at_or_before_cursor", *number <= after) {
            continue;
        }
        if qualifies(leaf, evidence_id, view) {
            return Evaluation::Satisfied;
        }
        contiguous &= *number == expected;
        expected = number.saturating_add(1);
    }
    match branch!("predicate.stream_contiguous", contiguous) {
        true => Evaluation::NotSatisfied,
        false => Evaluation::Unknown,
    }
}

fn qualifies(leaf: &EvidenceAdded, evidence_id: &EvidenceId, view: &View) -> bool {
    let Some(evidence) = view.evidence.get(evidence_id) else {
        return false;
    };
    let source_id = &evidence.body.source.source_id;
    let source = view.state.source(source_id).filter(|source| source.standing == Standing::Current);
    let permitted = leaf.permitted_source_refs.contains(source_id);
    let in_scope = source.is_some_and(|source| leaf.scope_ref.contains(&source.scope));
    branch!("predicate.source_permitted", permitted) && branch!("predicate.evidence_in_scope", in_scope)
}

/// The accepted item is another than the compared one, or no longer there (DEC-58).
fn dependency_changed(leaf: &DependencyVersionChanged, view: &View) -> Evaluation {
    let mut accepted = view.state.locate(&leaf.dependency_ref).map(|item| item.digest).peekable();
    if accepted.peek().is_none() {
        let removed = view.removed.contains(&leaf.dependency_ref);
        return match branch!("predicate.dependency_removed", removed) {
            true => Evaluation::Satisfied,
            false => Evaluation::Unknown,
        };
    }
    let same = accepted.any(|digest| digest == leaf.compared_version);
    told(branch!("predicate.dependency_differs", !same))
}

/// The user's decision of the required class, on the version of the packet that was current when it was issued (DEC-58). An
/// issuer who is no registered user leaves it unknown; what could not be authenticated is not on record at all.
fn decision_received(leaf: &UserDecisionReceived, view: &View) -> Evaluation {
    if branch!("predicate.packet_missing", !view.packets.contains_key(&leaf.decision_ref)) {
        return Evaluation::Unknown;
    }
    let decisions = view.decisions.get(&leaf.decision_ref).into_iter().flatten();
    any_of(decisions.map(|(reference, decision)| {
        let issuer = view.state.identity(&decision.authenticated_issuer.identity);
        let user = issuer
            .is_some_and(|identity| identity.kind == IdentityKind::User && identity.standing == Standing::Current);
        if branch!("predicate.issuer_unknown", !user) {
            return Evaluation::Unknown;
        }
        let answers = decision.decision_type != DecisionType::Acknowledgment;
        let required = decision.decision_type == leaf.required_decision_class;
        let current = view.chain.cites_current_packet(reference, &decision.briefcase_ref);
        told(
            branch!("predicate.decision_class_fits", required)
                && branch!("predicate.decision_answers", answers)
                && branch!("predicate.packet_was_current", current),
        )
    }))
}

/// An unexpired verification of the capability at exactly this version (DEC-58).
fn capability_verified(leaf: &CapabilityVerified, view: &View, at: &Moment) -> Evaluation {
    let mut entries = operations(view).filter(|entry| entry.capability == leaf.capability_ref).peekable();
    if branch!("predicate.capability_unregistered", entries.peek().is_none()) {
        return Evaluation::Unknown;
    }
    any_of(entries.map(|entry| {
        let verification = &entry.verification;
        let exact =
            verification.version == leaf.contract_version && verification.contract_digest == entry.contract_digest;
        let current = entry.standing == Standing::Current;
        if !branch!("predicate.capability_version_fits", exact && current) {
            return Evaluation::NotSatisfied;
        }
        match at.clock {
            ClockStanding::Unreliable => Evaluation::Unknown,
            ClockStanding::Reliable => {
                told(branch!("predicate.verification_unexpired", verification.expires_at > at.now))
            }
        }
    }))
}

fn operations(view: &View) -> impl Iterator<Item = &OperationEntry> {
    view.state.items(ItemKind::Operation).filter_map(|accepted| match &accepted.item {
        Item::Operation(entry) => Some(entry),
        Item::Goal(_)
        | Item::Constraint(_)
        | Item::Grant(_)
        | Item::Claim(_)
        | Item::Method(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::ReadbackMethod(_)
        | Item::Identity(_)
        | Item::Source(_)
        | Item::Rule(_)
        | Item::Policy(_)
        | Item::Appointment(_)
        | Item::Profile(_) => None,
    })
}

/// The ownership service's own receipt agrees in handoff, recipient, contract and epoch; nothing said elsewhere counts.
fn handoff_accepted(leaf: &HandoffAccepted, view: &View) -> Evaluation {
    let Some((_, receipt)) = view.acceptances.get(&leaf.handoff_ref) else {
        return Evaluation::Unknown;
    };
    let agrees = receipt.recipient_ref == leaf.recipient_ref
        && receipt.contract_digest == leaf.contract_digest
        && receipt.ownership_epoch == leaf.ownership_epoch;
    told(branch!("predicate.acceptance_agrees", agrees))
}

/// The runtime's clock has reached the instant; an unreliable clock cannot tell (DEC-59).
fn time_reached(leaf: &TimeReached, at: &Moment) -> Evaluation {
    match branch!("predicate.clock_reliable", at.clock == ClockStanding::Reliable) {
        true => told(branch!("predicate.time_reached", leaf.at <= at.now)),
        false => Evaluation::Unknown,
    }
}

/// Whether the predicate comes true within the interval whatever else happens: a bounded review (DEC-98).
#[must_use]
pub fn is_bounded(predicate: &TypedPredicate, now: &Timestamp, interval_ms_max: u64) -> bool {
    closer_state::comes_by(predicate, &now.plus_ms(interval_ms_max))
}

/// What a predicate read, apart from the time: where its streams stand, and the receipts and accepted items it looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The newest number of each stream it names; absent where nothing was observed.
    pub cursor: BTreeMap<ObservationStreamId, u64>,
    /// The decisions, acceptances, registry entries and items it looked at, in the order of its leaves.
    pub receipts: Vec<ArtifactRef>,
}

/// Everything a predicate reads in the view.
#[must_use]
pub fn inputs(predicate: &TypedPredicate, view: &View) -> Inputs {
    let mut inputs = Inputs::default();
    collect(predicate, view, &mut inputs);
    inputs
}

fn collect(predicate: &TypedPredicate, view: &View, inputs: &mut Inputs) {
    match predicate {
        TypedPredicate::EvidenceAdded(leaf) => {
            let heads =
                leaf.after_cursor.keys().filter_map(|stream| Some((stream.clone(), view.observed.get(stream)?.0)));
            inputs.cursor.extend(heads);
        }
        TypedPredicate::DependencyVersionChanged(leaf) => {
            let accepted = view.state.locate(&leaf.dependency_ref);
            inputs.receipts.extend(accepted.map(|item| cite(leaf.dependency_ref.as_str(), item.digest)));
        }
        TypedPredicate::UserDecisionReceived(leaf) => {
            let decisions = view.decisions.get(&leaf.decision_ref).into_iter().flatten();
            inputs.receipts.extend(decisions.map(|(reference, _)| reference.clone()));
        }
        TypedPredicate::CapabilityVerified(leaf) => {
            let entries = view.state.items(ItemKind::Operation).filter(
                |accepted| matches!(&accepted.item, Item::Operation(entry) if entry.capability == leaf.capability_ref),
            );
            inputs.receipts.extend(entries.map(|accepted| cite(accepted.item.id().as_str(), accepted.digest)));
        }
        TypedPredicate::HandoffAccepted(leaf) => {
            inputs.receipts.extend(view.acceptances.get(&leaf.handoff_ref).map(|(reference, _)| reference.clone()));
        }
        TypedPredicate::All(_) | TypedPredicate::Any(_) => {
            predicate.children().iter().for_each(|child| collect(child, view, inputs));
        }
        TypedPredicate::TimeReached(_) | TypedPredicate::Unsupported(_) => {}
    }
}

fn cite(id: &str, digest: Digest) -> ArtifactRef {
    ArtifactRef { id: ArtifactId::new(id), digest }
}

/// The predicate's version (DEC-57). What is installed has a canonical form; without one it has the digest of nothing.
fn version(predicate: &TypedPredicate) -> Digest {
    predicate.version().unwrap_or_else(|_| Digest::of(b""))
}

/// Where a trigger stands: its predicate's version, its deduplication key and what it read. The same trigger is activated
/// once under one key, so it stays silent until an input moves (DEC-55). Time is no input: it only passes.
#[must_use]
pub fn activation_key(reentry: &Reentry, view: &View) -> Digest {
    key_of(&reentry.predicate, reentry.deduplication_key.as_str(), view)
}

/// As [`activation_key`], for a predicate that stands under a name of its own.
#[must_use]
pub(crate) fn key_of(predicate: &TypedPredicate, name: &str, view: &View) -> Digest {
    let inputs = inputs(predicate, view);
    let read = canonical::to_bytes(&(&inputs.cursor, &inputs.receipts)).unwrap_or_default();
    canonical::hash_parts("closer.activation.v1", &[version(predicate).raw(), name.as_bytes(), &read])
}

/// What an evaluation is about and on whose word: the trigger or obligation, its scope, and how its source was
/// authenticated; `None` for a predicate without a source.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The trigger's id, or the obligation's for the review of its gap.
    pub id: Id,
    /// The obligation's scope.
    pub scope: &'a Scope,
    /// The authentication of the source.
    pub source_binding: Option<ArtifactRef>,
}

/// Evaluates a predicate and every child of it, and records each: the whole first, then its children in order (DEC-56).
#[must_use]
pub fn record(subject: &Subject<'_>, predicate: &TypedPredicate, view: &View, at: &Moment) -> Vec<EvaluationRecord> {
    let mut records = Vec::new();
    record_into(subject, predicate, view, at, &mut records);
    records
}

fn record_into(
    subject: &Subject<'_>,
    predicate: &TypedPredicate,
    view: &View,
    at: &Moment,
    records: &mut Vec<EvaluationRecord>,
) {
    let inputs = inputs(predicate, view);
    records.push(EvaluationRecord {
        predicate_version: PredicateVersion { id: subject.id.clone(), digest: version(predicate) },
        governing_state: view.state.reference(),
        event_cursor: inputs.cursor,
        input_receipt_refs: inputs.receipts,
        source_binding: subject.source_binding.clone(),
        scope: subject.scope.clone(),
        result: evaluate(predicate, view, at),
    });
    predicate.children().iter().for_each(|child| record_into(subject, child, view, at, records));
}
