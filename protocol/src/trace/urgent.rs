//! The urgent trace: restriction first, review by its deadline, correction as required. Spec: §7.2, C15.

use super::chain::{Chain, Located};
use super::{Fault, From, Gap, Stage, Trace};
use crate::entry::ArtifactBody;
use crate::timers::reconciliation_key;
use closer_contracts::audit::{CommitReceipt, ReconciliationDisposition, ReconciliationReceipt, UrgentDetails};
use closer_contracts::branch;
use closer_contracts::delta::{AdmissionPath, Change};
use closer_contracts::digest::Digest;
use closer_contracts::id::Text;
use closer_state::Commit;
use std::sync::Arc;

/// Walks the trace of an urgent commit: what restricted, that dispatch was refused by it, how it was reviewed and what
/// became of it. A review after the deadline holds, is said to be late, and needs the record that the deadline was missed.
///
/// # Errors
/// The first gap: also where a later stage has not come yet.
pub fn check_urgent(chain: &Chain, version: u64) -> Result<Trace, Gap> {
    let nothing = |missing, fault| Gap { missing, cited_by: None, citation: format!("version {version}"), fault };
    let (receipt, digest, position) = chain.receipt(version).ok_or_else(|| nothing(Stage::Receipt, Fault::Missing))?;
    let from = From::new(Stage::Receipt, &receipt.receipt_id, position);
    let urgent = receipt.admission_path == AdmissionPath::UrgentRestrictive;
    let details = receipt.urgent_details.as_ref().filter(|_| urgent);
    let Some(details) = details else {
        return Err(from.gap(Stage::Receipt, &receipt.receipt_id, Fault::Differs("is no urgent receipt")));
    };
    let mut trace = Trace::default();
    let commit = from.follow(Stage::Commit, version, chain.commits.get(&version))?;
    let same =
        commit.content.delta.proposal_digest == receipt.proposal_digest && commit.content.after == receipt.after_state;
    from.demand(
        branch!("trace.urgent_receipt_fits_commit", same),
        Stage::Delta,
        &receipt.delta_id,
        "is another delta",
    )?;
    restriction(chain, &from, details, commit.position, &mut trace)?;
    trace.push(Stage::Delta, &receipt.delta_id, receipt.proposal_digest, "an urgent restriction");
    trace.push(Stage::Receipt, &receipt.receipt_id, digest, details.reason.as_str());
    refusal(chain, &from, &commit.content, &mut trace)?;
    let reviewed = reconciliation(chain, &from, details, digest, version, &mut trace)?;
    correction(chain, receipt, details, digest, &reviewed, &mut trace)?;
    Ok(trace)
}

/// The authenticated event or statement stands before the commit.
fn restriction(chain: &Chain, from: &From, details: &UrgentDetails, before: u64, trace: &mut Trace) -> Result<(), Gap> {
    let citation = &details.issuer_auth_ref;
    let commit = From::new(Stage::Commit, &from.id, before);
    // An event is cited by its own payload, a statement by its authentication.
    if let Some(event) = chain.cited(citation) {
        commit.follow(Stage::Restriction, &citation.id, Some(event))?;
        trace.push(Stage::Restriction, &citation.id, citation.digest, "an authenticated event");
        return Ok(());
    }
    let auth = commit.follow(Stage::Restriction, &citation.id, chain.auths.get(&citation.digest))?;
    let subject = &auth.content;
    let is_it = |artifact: &ArtifactBody| matches!(artifact, ArtifactBody::RestrictionStatement(statement) if statement.statement_id.as_str() == subject.as_str());
    let statement = chain.artifacts.values().find(|located| is_it(&located.content));
    commit.follow(Stage::Restriction, subject, statement)?;
    trace.push(Stage::Restriction, subject, citation.digest, "an authenticated statement");
    Ok(())
}

/// A dispatch that came after was refused, naming what the commit restricts.
fn refusal(chain: &Chain, from: &From, commit: &Commit, trace: &mut Trace) -> Result<(), Gap> {
    let restricts = commit.delta.changes.iter().map(|change| change.subject().1);
    let refused = restricts.clone().find_map(|id| {
        chain
            .refused
            .get(&Text::new(id.as_str()))
            .filter(|located| branch!("trace.refused_after_restriction", located.position > from.position))
    });
    let citation = restricts.map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    let Some(refused) = refused else {
        return Err(from.gap(Stage::Refusal, citation, Fault::Differs("has refused no dispatch yet")));
    };
    let digest = refused.content.subject_digest.unwrap_or_else(|| Digest::of(b""));
    trace.push(Stage::Refusal, &refused.content.subject, digest, refused.content.code.to_string());
    Ok(())
}

/// The review that discharges the duty; a late one stands beside the record that its deadline was missed.
fn reconciliation<'a>(
    chain: &'a Chain,
    from: &From,
    details: &UrgentDetails,
    urgent: Digest,
    version: u64,
    trace: &mut Trace,
) -> Result<Located<&'a ReconciliationReceipt>, Gap> {
    let reviews = chain.reconciliations(urgent);
    let discharges = |receipt: &ReconciliationReceipt| receipt.disposition != ReconciliationDisposition::Unresolved;
    let review = reviews.into_iter().find(|(receipt, _, _)| branch!("trace.review_discharges", discharges(receipt)));
    let Some((receipt, digest, position)) = review else {
        let missing = Fault::Differs("has not been reconciled; the duty stands");
        return Err(from.gap(Stage::Reconciliation, &from.id, missing));
    };
    let own = From::new(Stage::Reconciliation, &receipt.receipt_id, position);
    own.demand(from.position < position, Stage::Receipt, &from.id, "is not on record before its review")?;
    let late = receipt.issued_at > details.reconciliation_due_at;
    if branch!("trace.review_is_late", late) {
        let key = reconciliation_key(version);
        own.follow(Stage::Overdue, &key, chain.notices.get(&key))?;
        trace.push(Stage::Overdue, &key, urgent, format!("not reconciled by {}", details.reconciliation_due_at));
    }
    let when = if late { " (late)" } else { "" };
    trace.push(Stage::Reconciliation, &receipt.receipt_id, digest, format!("{}{when}", receipt.disposition));
    Ok(Located { position, content: receipt })
}

/// The ordinary commit that lifts what was restricted, citing the urgent receipt, or settles the duty.
fn correction(
    chain: &Chain,
    receipt: &CommitReceipt,
    details: &UrgentDetails,
    urgent: Digest,
    reviewed: &Located<&ReconciliationReceipt>,
    trace: &mut Trace,
) -> Result<(), Gap> {
    let corrects = |change: &Change| match change {
        Change::LiftRestriction { urgent_receipt, .. } => urgent_receipt.digest == urgent,
        Change::SetStatus { obligation_id, status, .. } => {
            *obligation_id == details.reconciliation_obligation_id && !status.is_open()
        }
        Change::Add { .. }
        | Change::Revise { .. }
        | Change::Suspend { .. }
        | Change::Retract { .. }
        | Change::RevokeGrant { .. }
        | Change::AdmitObligation { .. }
        | Change::SetConditions { .. }
        | Change::SetTriggers { .. }
        | Change::SetOwner { .. }
        | Change::AddDependency { .. }
        | Change::RemoveDependency { .. }
        | Change::SuspendEligibility { .. } => false,
    };
    let after = |located: &&Located<Arc<Commit>>| {
        branch!("trace.correction_after_review", located.position > reviewed.position)
    };
    let later = chain.commits.values().filter(after);
    let ordinary = |commit: &Commit| commit.delta.admission_path == AdmissionPath::Ordinary;
    let found = later
        .map(|located| &located.content)
        .find(|commit| ordinary(commit) && commit.delta.changes.iter().any(corrects));
    let own = From::new(Stage::Reconciliation, &reviewed.content.receipt_id, reviewed.position);
    let Some(found) = found else {
        return Err(own.gap(
            Stage::Correction,
            &receipt.receipt_id,
            Fault::Differs("was neither corrected nor confirmed by a commit"),
        ));
    };
    let (corrected, _, _) =
        chain.receipt(found.version).ok_or_else(|| own.gap(Stage::Receipt, found.version, Fault::Missing))?;
    let endorsed = corrected.adjudication_refs.iter().all(|reference| chain.cited(reference).is_some());
    own.demand(
        branch!("trace.correction_endorsed", endorsed),
        Stage::Endorsement,
        &corrected.receipt_id,
        "cites an endorsement that is not on record",
    )?;
    trace.push(
        Stage::Correction,
        &corrected.delta_id,
        corrected.proposal_digest,
        format!("committed as version {}", found.version),
    );
    Ok(())
}
