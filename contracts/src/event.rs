//! EVENT and its MATCH_RECEIPT. Spec: §1.1, C2.

use crate::fault::Fault;
use crate::id::{ChangeKindId, EntityId, EventId, Id, Key, ObligationId, ReceiptId, Text};
use crate::reentry::EvaluationRecord;
use crate::refs::{ArtifactRef, SourceRef, StateRef, VersionedRef};
use crate::time::Timestamp;

crate::words! {
    /// How sure the observer is that the event happened (DEC-25). It never affects authority.
    pub enum Certainty {
        /// Seen by the observer; may enter as evidence.
        Observed = "observed",
        /// Told to the observer; may be investigated.
        Reported = "reported",
        /// Neither; may only schedule a review.
        Unknown = "unknown",
    }
}

crate::contract! {
    /// What changed, where, when and with what evidence, as an observer saw it. Spec: C2.
    pub struct Event = "EVENT" {
        "CP-C2-F01" event_id: EventId,
        "CP-C2-F02" source: SourceRef,
        /// When the observer saw it.
        "CP-C2-F03" observed_at: Timestamp,
        /// When the intake received it. Never merged with `observed_at`.
        "CP-C2-F04" received_at: Timestamp,
        "CP-C2-F05" entity_ref: EntityId,
        "CP-C2-F06" change_kind: ChangeKindId,
        "CP-C2-F07" evidence_refs: Vec<ArtifactRef>,
        /// Unique per source (DEC-23).
        "CP-C2-F08" deduplication_key: Key,
        "CP-C2-F09" certainty: Certainty;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

crate::words! {
    /// What matching an event came to (DEC-21).
    pub enum MatchOutcome {
        /// At least one candidate is satisfied and none is unknown.
        Matched = "matched",
        /// No candidate is satisfied and none is unknown.
        Unmatched = "unmatched",
        /// At least one candidate is unknown.
        Ambiguous = "ambiguous",
    }
}

crate::words! {
    /// The four facets of an event that a dependency is compared with (§1.1, DEC-20).
    pub enum Facet {
        /// The entity it is about.
        Entity = "entity",
        /// The scope of its source.
        Scope = "scope",
        /// The kind of change.
        ChangeKind = "change_kind",
        /// The evidence it cites.
        Evidence = "evidence",
    }
}

crate::contract! {
    /// Why one candidate matched, did not match, or could not be told.
    pub struct Rationale = "Rationale" {
        /// The dependency or trigger that was compared.
        "CP-C2-F16" candidate: Id,
        "CP-C2-F16" obligation_id: ObligationId,
        "CP-C2-F16" result: crate::reentry::Evaluation,
        /// The first facet that did not fit, where a facet decided.
        "CP-C2-F16" facet: Option<Facet>,
        "CP-C2-F16" reason: Text,
    }
}

crate::contract! {
    /// The record of one evaluated event: on which state, by which rule, with which outcome and why. Spec: §1.1, C2.
    pub struct MatchReceipt = "MATCH_RECEIPT" checked by MatchReceipt::check_outcome {
        "CP-C14-F25" receipt_id: ReceiptId,
        "CP-C2-F10" event_ref: ArtifactRef,
        "CP-C2-F11" state_basis: StateRef,
        "CP-C2-F12" rule_ref: VersionedRef,
        "CP-C2-F13" matched_obligation_ids: Vec<ObligationId>,
        "CP-C2-F14" predicate_results: Vec<EvaluationRecord>,
        "CP-C2-F15" outcome: MatchOutcome,
        "CP-C2-F16" rationale: Vec<Rationale>,
    }
}

impl MatchReceipt {
    fn check_outcome(&self) -> Result<(), Fault> {
        let consistent = match self.outcome {
            MatchOutcome::Matched => !self.matched_obligation_ids.is_empty(),
            MatchOutcome::Unmatched => self.matched_obligation_ids.is_empty(),
            MatchOutcome::Ambiguous => true,
        };
        match consistent {
            true => Ok(()),
            false => Err(Fault::schema("the outcome and the matched obligations disagree").within("outcome")),
        }
    }
}
