//! Three moments with three subjects. Spec: §4.2, C9.

use super::support::{altered, json_of, read, refused, round_trips};
use crate::adjudication::{Adjudication, Disposition, Phase};
use crate::delta::Delta;
use crate::digest::Digest;
use crate::example::{Example, Extent};
use crate::refs::{ArtifactRef, EvidenceSnapshot, SubjectType, TypedRef};
use crate::refusal::RefusalCode;
use crate::shows;
use serde_json::{Value, json};

/// A valid adjudication of this phase about a subject of this type.
fn about(phase: Phase, r#type: SubjectType) -> Value {
    let disposition = match phase {
        Phase::PreAction => Disposition::Justified,
        Phase::PostOutcome => Disposition::Established,
        Phase::SemanticCommit => Disposition::Endorsed,
    };
    json_of(&Adjudication {
        phase,
        disposition,
        subject: TypedRef { r#type, ..TypedRef::example(Extent::Full) },
        ..Adjudication::example(Extent::Full)
    })
}

#[test]
fn adjudication_is_whole() {
    shows!("CP-C9-01");
    round_trips::<Adjudication>();
    for phase in Phase::ALL {
        assert!(read::<Adjudication>(about(*phase, phase.subject_type())).is_ok());
    }
}

#[test]
fn before_the_action_the_subject_is_an_action() {
    shows!("CP-4.2-01", "CP-C9-02"; by "adjudication.subject_fits_phase");
    assert!(read::<Adjudication>(about(Phase::PreAction, SubjectType::Action)).is_ok());
    for other in [SubjectType::Delta, SubjectType::Readback] {
        refused(read::<Adjudication>(about(Phase::PreAction, other)), RefusalCode::SubjectMismatch);
    }
    let mut unbound = about(Phase::PreAction, SubjectType::Action);
    unbound.as_object_mut().expect("an object").remove("evidence_snapshot");
    refused(read::<Adjudication>(unbound), RefusalCode::SchemaInvalid);
}

#[test]
fn after_the_outcome_the_subject_is_a_readback() {
    shows!("CP-4.2-02"; by "adjudication.subject_fits_phase", "adjudication.outcome_cites_readback");
    let whole = about(Phase::PostOutcome, SubjectType::Readback);
    assert!(read::<Adjudication>(whole.clone()).is_ok());
    for other in [SubjectType::Action, SubjectType::Delta] {
        refused(read::<Adjudication>(about(Phase::PostOutcome, other)), RefusalCode::SubjectMismatch);
    }
    refused(read::<Adjudication>(altered(whole, "readback_refs", json!([]))), RefusalCode::SchemaInvalid);
}

#[test]
fn at_the_commit_the_subject_is_a_delta() {
    shows!("CP-4.2-03"; by "adjudication.subject_fits_phase", "delta.proposal_digest_agrees");
    assert!(read::<Adjudication>(about(Phase::SemanticCommit, SubjectType::Delta)).is_ok());
    for other in [SubjectType::Action, SubjectType::Readback] {
        refused(read::<Adjudication>(about(Phase::SemanticCommit, other)), RefusalCode::SubjectMismatch);
    }
    let delta = json_of(&Delta::example(Extent::Full));
    assert!(read::<Delta>(delta.clone()).is_ok());
    let altered = altered(delta, "delta_id", json!("another"));
    refused(read::<Delta>(altered), RefusalCode::DigestMismatch);
}

#[test]
fn a_disposition_belongs_to_its_phase() {
    let of_phase = |phase: Phase| -> &[&str] {
        match phase {
            Phase::PreAction => &["justified", "not_justified", "deferred", "insufficient"],
            Phase::PostOutcome => &["established", "not_established", "unknown"],
            Phase::SemanticCommit => &["endorsed", "rejected", "insufficient"],
        }
    };
    for phase in Phase::ALL {
        for disposition in Disposition::ALL {
            let one = altered(about(*phase, phase.subject_type()), "disposition", json!(disposition));
            match of_phase(*phase).contains(&disposition.as_str()) {
                true => assert!(read::<Adjudication>(one).is_ok(), "{disposition} in {phase}"),
                false => refused(read::<Adjudication>(one), RefusalCode::SchemaInvalid),
            }
        }
    }
}

#[test]
fn a_snapshot_is_sorted_without_repeats_and_digested() {
    shows!("CP-C1-07"; by "evidence_snapshot.digest_agrees");
    let item = |id: &str| ArtifactRef { id: id.into(), digest: Digest::of(id.as_bytes()) };
    let snapshot = EvidenceSnapshot::of(vec![item("b"), item("a"), item("b")]).expect("a snapshot");
    assert_eq!(snapshot.refs, [item("a"), item("b")]);
    assert_eq!(EvidenceSnapshot::of(vec![item("a"), item("b")]).expect("a snapshot"), snapshot);
    assert!(read::<EvidenceSnapshot>(json_of(&snapshot)).is_ok());
    for refs in [json!([item("a")]), json!([item("b"), item("a")]), json!([item("a"), item("a"), item("b")])] {
        let changed = altered(json_of(&snapshot), "refs", refs);
        refused(read::<EvidenceSnapshot>(changed), RefusalCode::DigestMismatch);
    }
}
