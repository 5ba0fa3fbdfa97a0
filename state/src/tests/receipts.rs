use super::fixtures::*;
use crate::{Commit, Divergence, ReceiptFacts, State, receipt, verify_chain};
use closer_contracts::audit::{CommitReceipt, UrgentDetails};
use closer_contracts::delta::AdmissionPath;
use closer_contracts::item::AffectedScope;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::{RefusalCode, shows};

fn facts(id: &str, adjudication_refs: Vec<ArtifactRef>, urgent_details: Option<UrgentDetails>) -> ReceiptFacts {
    ReceiptFacts {
        receipt_id: id.into(),
        adjudication_refs,
        committing_authority: "user".into(),
        committed_at: now(),
        urgent_details,
    }
}

fn details() -> UrgentDetails {
    UrgentDetails {
        issuer_auth_ref: artifact("auth-1"),
        restrictive_authority_ref: "issuer".into(),
        reason: "it is not safe".into(),
        evidence_refs: Vec::new(),
        affected_scope: AffectedScope::Space {},
        reconciliation_obligation_id: "duty-1".into(),
        reconciliation_due_at: duty().due_at,
        independent_owner: "independent".into(),
        escalation_policy_ref: "policy-1".into(),
    }
}

fn ordinary(commit: &Commit, after: &State) -> CommitReceipt {
    let id = format!("receipt-{}", commit.version);
    receipt(commit, after, facts(&id, vec![artifact("adjudication-1")], None)).unwrap()
}

#[test]
fn a_receipt_names_the_delta_its_endorsements_and_both_states() {
    shows!("CP-C10-04", "CP-C10-13", "CP-C14-02"; by "receipt.ordinary_unendorsed");
    let state = founded();
    let (commit, next) = attempt(&state, vec![add(claim("a"))]).unwrap();
    let made = ordinary(&commit, &next);
    assert_eq!(made.proposal_digest, commit.delta.proposal_digest);
    assert_eq!(made.adjudication_refs, [artifact("adjudication-1")]);
    assert_eq!((made.before_state, made.after_state), (state.reference(), next.reference()));
    assert_eq!((made.profile_ref.id.as_str(), made.profile_ref.version), ("profile-1", 1));
    let unendorsed = receipt(&commit, &next, facts("r", Vec::new(), None)).unwrap_err();
    assert_eq!(unendorsed.code, RefusalCode::MissingEndorsement);
}

#[test]
fn receipts_chain_without_a_gap_one_for_every_version() {
    shows!("CP-C14-10", "CP-C14-11"; by "state.receipts_chain");
    let mut state = founded();
    let mut receipts = Vec::new();
    for id in ["a", "b", "c", "d"] {
        let (commit, next) = attempt(&state, vec![add(claim(id))]).unwrap();
        receipts.push(ordinary(&commit, &next));
        state = next;
    }
    assert_eq!(verify_chain(&receipts), Ok(()));
    assert_eq!(state.reference().version, receipts.len() as u64);
    for missing in 1..3 {
        let mut gapped = receipts.clone();
        gapped.remove(missing);
        let receipt = gapped[missing].receipt_id.to_string();
        assert_eq!(verify_chain(&gapped), Err(Divergence::Chain { receipt }));
    }
    let mut forked = receipts.clone();
    forked[2].before_state.digest = closer_contracts::Digest::of(b"another history");
    assert!(verify_chain(&forked).is_err());
}

#[test]
fn an_urgent_receipt_names_its_duty_which_is_open() {
    shows!("CP-C14-06", "CP-7.2-16", "CP-C10-11"; by "state.duty_is_open");
    let change = restriction("r-1", AffectedScope::Space {});
    let (commit, next) = attempt_urgent(&founded(), vec![change]).unwrap();
    let made = receipt(&commit, &next, facts("receipt-1", Vec::new(), Some(details()))).unwrap();
    assert_eq!(made.admission_path, AdmissionPath::UrgentRestrictive);
    assert_eq!(made.urgent_details, Some(details()));
    let dangling = UrgentDetails { reconciliation_obligation_id: "nowhere".into(), ..details() };
    let refused = receipt(&commit, &next, facts("receipt-1", Vec::new(), Some(dangling))).unwrap_err();
    assert_eq!(refused.code, RefusalCode::UnresolvedRef);
}

#[test]
fn a_receipt_keeps_to_its_path() {
    let change = restriction("r-1", AffectedScope::Space {});
    let (commit, next) = attempt_urgent(&founded(), vec![change]).unwrap();
    let bare = receipt(&commit, &next, facts("receipt-1", Vec::new(), None)).unwrap_err();
    assert_eq!(bare.code, RefusalCode::SchemaInvalid);
    let filler = facts("receipt-1", vec![artifact("adjudication-1")], Some(details()));
    assert_eq!(receipt(&commit, &next, filler).unwrap_err().code, RefusalCode::SchemaInvalid);
}
