//! Records in words: predicates, scopes and digests as people read them.

use closer_contracts::digest::Digest;
use closer_contracts::item::{AffectedScope, ParameterBound};
use closer_contracts::reentry::{Evaluation, TypedPredicate};
use closer_contracts::refs::TargetPattern;
use closer_protocol::view::View;
use closer_protocol::{Moment, predicate};
use serde_json::{Value, json};

/// Twelve digits of a digest.
pub(super) fn short(digest: &Digest) -> String {
    digest.to_string().trim_start_matches("sha256:").chars().take(12).collect()
}

/// A predicate in words, without its evaluation.
pub(super) fn predicate(predicate: &TypedPredicate) -> String {
    match predicate {
        TypedPredicate::EvidenceAdded(leaf) => {
            let sources: Vec<&str> = leaf.permitted_source_refs.iter().map(|source| source.as_str()).collect();
            let streams: Vec<String> =
                leaf.after_cursor.iter().map(|(stream, after)| format!("{stream} after number {after}")).collect();
            format!("evidence from {} in {}", sources.join(", "), streams.join(", "))
        }
        TypedPredicate::DependencyVersionChanged(leaf) => {
            format!("`{}` is no longer at version {}", leaf.dependency_ref, short(&leaf.compared_version))
        }
        TypedPredicate::UserDecisionReceived(leaf) => {
            format!("the user answers packet `{}` with a {}", leaf.decision_ref, leaf.required_decision_class)
        }
        TypedPredicate::CapabilityVerified(leaf) => {
            format!("capability `{}` is verified at version {}", leaf.capability_ref, leaf.contract_version)
        }
        TypedPredicate::HandoffAccepted(leaf) => {
            format!("`{}` accepts handoff `{}`", leaf.recipient_ref, leaf.handoff_ref)
        }
        TypedPredicate::TimeReached(leaf) => format!("it is {}", leaf.at.as_str()),
        TypedPredicate::All(all) => format!("all of {}", all.items.len()),
        TypedPredicate::Any(any) => format!("any of {}", any.items.len()),
        TypedPredicate::Unsupported(_) => "an operator that this version does not know".to_owned(),
    }
}

/// Whether a predicate holds now, in one word.
pub(super) const fn evaluation(evaluation: Evaluation) -> &'static str {
    match evaluation {
        Evaluation::Satisfied => "holds",
        Evaluation::NotSatisfied => "does not hold yet",
        Evaluation::Unknown => "cannot be told",
    }
}

/// A predicate and all its children, each with what it comes to now, for programs and in indented lines.
pub(super) fn evaluated(
    typed: &TypedPredicate,
    view: &View,
    at: &Moment,
    depth: usize,
    lines: &mut Vec<String>,
) -> Value {
    let result = predicate::evaluate(typed, view, at);
    let words = predicate(typed);
    lines.push(format!("{}{words}: {}", "  ".repeat(depth), evaluation(result)));
    let children: Vec<Value> =
        typed.children().iter().map(|child| evaluated(child, view, at, depth + 1, lines)).collect();
    json!({ "predicate": words, "evaluation": result, "items": children })
}

/// What a restriction covers, in words.
pub(super) fn scope(scope: &AffectedScope) -> String {
    match scope {
        AffectedScope::Space {} => "everything".to_owned(),
        AffectedScope::Operation { operation } => format!("`{operation}`"),
        AffectedScope::Target { operation, targets } => {
            let operation =
                operation.as_ref().map_or_else(|| "every operation".to_owned(), |operation| format!("`{operation}`"));
            format!("{operation} on {}", self::targets(targets))
        }
        AffectedScope::Grant { grant_id } => format!("grant `{grant_id}`"),
        AffectedScope::Obligation { obligation_id } => format!("obligation `{obligation_id}`"),
    }
}

/// Targets in words.
pub(super) fn targets(targets: &TargetPattern) -> String {
    format!("`{}` of `{}`", targets.address, targets.account)
}

/// What a grant demands of a parameter, in words.
pub(super) fn bound(bound: &ParameterBound) -> String {
    let values: Vec<String> = bound.one_of.iter().flatten().map(|value| value.0.to_string()).collect();
    let mut demands = Vec::new();
    demands.extend((!values.is_empty()).then(|| format!("= {}", values.join(" or "))));
    demands.extend(bound.at_least.map(|least| format!("at least {least}")));
    demands.extend(bound.at_most.map(|most| format!("at most {most}")));
    format!("{} {}", bound.parameter, demands.join(", "))
}

/// The beginning of a long id.
pub(super) fn short_text(id: &str) -> String {
    id.trim_start_matches("sha256:").chars().take(12).collect()
}

/// An id as a message repeats it: whole where it could be one, else its beginning and its length.
pub(super) fn told_id(id: &str) -> String {
    const SHOWN_WHOLE: usize = 256;
    match id.chars().count() {
        count if count > SHOWN_WHOLE => {
            let beginning: String = id.chars().take(60).collect();
            format!("{beginning}... ({count} characters)")
        }
        _ => id.to_owned(),
    }
}
