//! Contracts with rules between their fields: their parts, with what the rules demand.

use super::{Example, Extent, Parts, values};
use crate::action::Action;
use crate::adjudication::{Adjudication, Disposition, Phase};
use crate::audit::{CommitReceipt, DecisionType, Declaration, DisclosureIncident, Grant, Revocation, UserDecision};
use crate::briefcase::Briefcase;
use crate::conference::{Conference, ConferenceMove, MoveKind};
use crate::delta::{AdmissionPath, Delta};
use crate::event::{MatchOutcome, MatchReceipt};
use crate::item::{Appointment, Method, OperationEntry, Shown, SigningKeyEntry};
use crate::obligation::Obligation;
use crate::reentry::{All, Any, TypedPredicate};
use crate::refs::{EvidenceSnapshot, SubjectType, TypedRef};
use crate::work::{ContextItem, Postcondition, StopCondition};

macro_rules! settled {
    ($($name:ident, $part:ident, $extent:ident => $rules:block)+) => {$(
        impl Example for $name {
            fn example($extent: Extent) -> Self {
                let mut $part = Self::parts($extent);
                $rules
                $part
            }
        }
    )+};
}

/// The same list, with one item where it is empty.
fn filled<T: Example>(list: Vec<T>, extent: Extent) -> Vec<T> {
    match list.is_empty() {
        true => vec![T::example(extent)],
        false => list,
    }
}

settled! {
    StopCondition, stop, _extent => {
        stop.rounds_max = stop.rounds_max.max(1);
        stop.calls_max = stop.calls_max.max(1);
        stop.time_ms_max = stop.time_ms_max.max(1);
    }
    UserDecision, decision, _extent => {
        if decision.amendment.is_some() {
            decision.decision_type = DecisionType::ScopedAuthorization;
        }
    }
    ContextItem, item, _extent => {
        item.reference.digest = crate::canonical::digest_of(&item.content).expect("a digest");
    }
    Postcondition, postcondition, extent => {
        postcondition.expectations = filled(postcondition.expectations, extent);
    }
    EvidenceSnapshot, snapshot, _extent => {
        snapshot = Self::of(snapshot.refs).expect("a digest");
    }
    TypedRef, subject, _extent => {
        subject.r#type = SubjectType::Delta;
    }
    Obligation, obligation, extent => {
        obligation.resolution_conditions = filled(obligation.resolution_conditions, extent);
    }
    Action, action, _extent => {
        action.logical_digest = action.compute_logical_digest().expect("a digest");
    }
    MatchReceipt, receipt, extent => {
        receipt.outcome = match extent {
            Extent::Minimal => MatchOutcome::Unmatched,
            Extent::Full | Extent::Bound => MatchOutcome::Matched,
        };
    }
    Adjudication, adjudication, extent => {
        (adjudication.phase, adjudication.disposition) = match extent {
            Extent::Minimal => (Phase::PreAction, Disposition::Justified),
            Extent::Full | Extent::Bound => (Phase::PostOutcome, Disposition::Established),
        };
        adjudication.subject.r#type = adjudication.phase.subject_type();
    }
    Delta, delta, extent => {
        delta.changes = match extent {
            Extent::Minimal => values::changes(extent).into_iter().take(1).collect(),
            Extent::Full => values::changes(extent),
            Extent::Bound => vec![Example::example(extent)],
        };
        delta = delta.sealed().expect("a digest");
    }
    All, all, _extent => {
        all.items = vec![TypedPredicate::example(Extent::Minimal)];
    }
    Any, any, _extent => {
        any.items = vec![TypedPredicate::example(Extent::Minimal)];
    }
    Briefcase, packet, extent => {
        packet.obligation_ids = filled(packet.obligation_ids, extent);
        packet.recommendation_reason = Some(Example::example(extent));
    }
    Declaration, declaration, extent => {
        declaration.success_criteria = filled(declaration.success_criteria, extent);
    }
    Revocation, revocation, extent => {
        revocation.may_revoke = filled(revocation.may_revoke, extent);
    }
    Grant, grant, extent => {
        grant.allowed_operations = filled(grant.allowed_operations, extent);
        grant.targets = filled(grant.targets, extent);
    }
    CommitReceipt, receipt, extent => {
        match extent {
            Extent::Minimal => receipt.adjudication_refs = vec![Example::example(extent)],
            Extent::Full | Extent::Bound => {
                receipt.admission_path = AdmissionPath::UrgentRestrictive;
                receipt.adjudication_refs = Vec::new();
            }
        }
    }
    DisclosureIncident, incident, extent => {
        incident.released_item_refs = filled(incident.released_item_refs, extent);
        incident.recipient_refs = filled(incident.recipient_refs, extent);
    }
    Method, method, extent => {
        method.preconditions = filled(method.preconditions, extent);
        method.success_criteria = filled(method.success_criteria, extent);
        method.failure_criteria = filled(method.failure_criteria, extent);
    }
    OperationEntry, entry, _extent => {
        entry.contract_digest = crate::canonical::digest_of(&entry.contract).expect("a digest");
    }
    SigningKeyEntry, entry, _extent => {
        let public = values::signing_key().verifying_key();
        entry = Self {
            revoked_at: entry.revoked_at,
            compromised: entry.compromised,
            ..Self::of(&public, entry.signing_scope, Example::example(Extent::Minimal)..Example::example(Extent::Bound))
        };
    }
    Conference, conference, extent => {
        conference.subjects = filled(conference.subjects, extent);
        conference.seats = filled(conference.seats, extent);
        conference.allowed_moves = filled(conference.allowed_moves, extent);
    }
    ConferenceMove, moved, extent => {
        moved.narrowed = None;
        match extent {
            Extent::Minimal => {}
            Extent::Full | Extent::Bound => moved.r#move = MoveKind::Challenge,
        }
    }
    Shown, shown, extent => {
        shown.expectations = filled(shown.expectations, extent);
    }
    Appointment, appointment, _extent => {
        appointment.independent_owner = "owner-1".into();
    }
}
