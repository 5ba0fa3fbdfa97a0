//! EVIDENCE and readback: what was observed, bound to its target. Spec: §6.3, C8.

use crate::fault::Fault;
use crate::id::{ActionId, AttemptId, EvidenceId, Id, ObservationStreamId, Text};
use crate::refs::{ArtifactRef, SourceRef, Target, TypedValue, VersionedRef};
use crate::time::Timestamp;
use crate::work::TargetVersion;

crate::words! {
    /// What a readback came to (C8). `not_matched` proves another state, not that nothing happened.
    pub enum ReadbackOutcome {
        /// The target shows the postcondition.
        Matched = "matched",
        /// The target shows something else, after the settle time.
        NotMatched = "not_matched",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

crate::contract! {
    /// Exactly what was observed: the target and the place in the stream of its observations. Spec: C8, §6.3.
    pub struct TargetBinding = "TargetBinding" {
        "CP-C8-F05" target: Target,
        "CP-C8-F05" observation_sequence_ref: ObservationStreamId,
        /// Monotonic within `observation_sequence_ref` and comparable nowhere else.
        "CP-C8-F05" observation_version: u64,
        "CP-C8-F05" target_version: TargetVersion,
    }
}

crate::contract! {
    /// What makes an observation the readback of an attempt. Spec: C8.
    pub struct Readback = "Readback" {
        "CP-C8-F09" attempt_id: AttemptId,
        "CP-C8-F10" expected_postcondition_ref: Id,
        "CP-C8-F11" readback_method_ref: VersionedRef,
        "CP-C8-F12" outcome: ReadbackOutcome,
    }
}

crate::contract! {
    /// One observation, recorded and not interpreted. Spec: C8.
    pub struct Evidence = "EVIDENCE" checked by Evidence::check_readback {
        "CP-C8-F01" evidence_id: EvidenceId,
        "CP-C8-F02" source: SourceRef,
        "CP-C8-F03" artifact_ref: ArtifactRef,
        "CP-C8-F04" observed_at: Timestamp,
        "CP-C8-F05" target_binding: TargetBinding,
        "CP-C8-F06" observation: TypedValue,
        "CP-C8-F07" limitations: Vec<Text>,
        "CP-C8-F08" action_ref: Option<ActionId>,
        /// The readback additions; `null` for an observation that reads back no attempt.
        "CP-C8-01" readback: Option<Readback>;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Evidence {
    fn check_readback(&self) -> Result<(), Fault> {
        match crate::branch!("evidence.readback_names_action", self.readback.is_some() && self.action_ref.is_none()) {
            true => Err(Fault::schema("a readback names the action it reads back").within("action_ref")),
            false => Ok(()),
        }
    }
}
