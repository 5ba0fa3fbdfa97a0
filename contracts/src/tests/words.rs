//! Every closed set of words: exactly these, and any other is refused. Spec: Appendix B.

use super::support::words;
use crate::shows;
use crate::{adjudication, audit, briefcase, delta, event, evidence, item, obligation, payload_type, refs, work};

#[test]
fn events_and_obligations() {
    shows!("CP-B-18", "CP-5-09");
    words(event::Certainty::ALL, &["observed", "reported", "unknown"]);
    words(event::MatchOutcome::ALL, &["matched", "unmatched", "ambiguous"]);
    words(
        obligation::ObligationStatus::ALL,
        &["active", "awaiting_event", "awaiting_user_judgment", "resolved", "superseded", "withdrawn"],
    );
    words(obligation::AssessmentStatus::ALL, &["unassessed", "met", "not_met", "insufficient"]);
    words(
        payload_type::PayloadType::ALL,
        &[
            "EVENT",
            "OBLIGATION",
            "ROUTE",
            "WORK",
            "RESULT",
            "ACTION",
            "EVIDENCE",
            "ADJUDICATION",
            "DELTA",
            "REENTRY",
            "HANDOFF",
            "BRIEFCASE",
        ],
    );
}

#[test]
fn evidence_and_adjudication() {
    shows!("CP-B-18");
    words(work::ReferenceStatus::ALL, &["resolved", "unresolved", "digest_mismatch", "unavailable"]);
    words(work::ScopeMatch::ALL, &["applicable", "not_applicable", "unknown"]);
    words(work::Relation::ALL, &["supports", "contradicts", "irrelevant", "unresolved"]);
    words(work::ReasonClass::ALL, &["no_grant", "outside_constraint", "factual", "omission", "risk"]);
    words(evidence::ReadbackOutcome::ALL, &["matched", "not_matched", "unknown"]);
    words(adjudication::Phase::ALL, &["pre_action", "post_outcome", "semantic_commit"]);
    words(refs::SubjectType::ALL, &["action", "readback", "delta"]);
    words(
        adjudication::Disposition::ALL,
        &[
            "justified",
            "not_justified",
            "deferred",
            "established",
            "not_established",
            "unknown",
            "endorsed",
            "rejected",
            "insufficient",
        ],
    );
}

#[test]
fn changes_packets_and_receipts() {
    shows!("CP-B-18");
    words(delta::AdmissionPath::ALL, &["ordinary", "urgent_restrictive"]);
    words(delta::AuthorityKind::ALL, &["declaration", "user_decision", "profile", "appointment", "instruction"]);
    words(briefcase::DecisionClass::ALL, &["preference", "new_authority", "material_tradeoff"]);
    words(briefcase::PacketStatus::ALL, &["open", "overdue", "refreshed", "withdrawn", "answered"]);
    words(
        audit::DecisionType::ALL,
        &["preference", "investigation_request", "rejection", "scoped_authorization", "acknowledgment"],
    );
    words(audit::ReconciliationDisposition::ALL, &["confirmed", "narrowed", "lift_recommended", "unresolved"]);
    words(audit::ConfessionStatus::ALL, &["open", "corrected", "retained_gap"]);
    words(item::EffectClass::ALL, &["read_only", "internal", "external_reversible", "external_irreversible"]);
    words(item::Mechanism::ALL, &["session", "ed25519"]);
}

#[test]
fn producer_roles() {
    shows!("CP-B-18");
    words(
        refs::ProducerRole::ALL,
        &[
            "observer",
            "matcher",
            "planner",
            "router",
            "coordinator",
            "participant",
            "assessor",
            "distiller",
            "issuer",
            "scheduler",
            "ownership",
            "monitor",
            "user",
            "semantic",
        ],
    );
}
