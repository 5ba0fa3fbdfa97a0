//! Artifacts that somebody submits beside the twelve payloads: each goes to the stage that decides on it. Spec: DEC-17.

use crate::entry::ArtifactBody;
use crate::input::{Reply, Submission};
use crate::sequence::Deciding;
use crate::view::View;
use crate::{advice, bench, call, conference, handoff, incident, intake, observe, review, streams, urgent, work};
use closer_contracts::audit::{Confession, ReconciliationReceipt, RestrictionStatement};
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Id};
use closer_contracts::record::Reads;
use closer_contracts::refs::ProducerRole;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};

/// Decides on an artifact that somebody submits: a decision, a restriction, a declaration, a reconciliation.
pub(crate) fn decide(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    reads: &dyn Reads,
) -> Result<Reply, Fault> {
    let body = &*submission.content;
    let subject = Id::new(body.id().as_str());
    let digest = body.digest()?;
    if let Err(denials) = intake::artifact(deciding.view, submission, deciding.at, reads, digest) {
        return deciding.refuse(subject, Some(digest), denials);
    }
    match body {
        ArtifactBody::UserDecision(decision) => bench::decide(deciding, submission, decision, digest),
        ArtifactBody::RestrictionStatement(statement) => restrict(deciding, submission, statement, digest),
        ArtifactBody::Declaration(_) => {
            authored(deciding, submission, ProducerRole::User, "a declaration is the user's")
        }
        ArtifactBody::ReconciliationReceipt(receipt) => {
            let owner = reconciles(deciding.view, receipt, &submission.producer.actor_id);
            if branch!("bench.reconciles_without_authority", !owner) {
                let reason = "an urgent restriction is reconciled by its independent owner or the user";
                let denial =
                    Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&submission.producer.actor_id);
                return deciding.refuse(subject, Some(digest), vec![denial]);
            }
            recorded(deciding, submission)
        }
        ArtifactBody::Confession(confession) => {
            if branch!("bench.confesses_nothing_on_record", !is_on_record(deciding.view, confession)) {
                let reason = "a confession names an assertion or attempt on record and its obligation";
                let denial =
                    Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&confession.affected.id);
                return deciding.refuse(subject, Some(digest), vec![denial]);
            }
            recorded(deciding, submission)
        }
        ArtifactBody::Incident(incident) => incident::open(deciding, submission, incident),
        ArtifactBody::IncidentStep(step) => incident::take(deciding, submission, step),
        ArtifactBody::Conference(contract) => conference::open(deciding, submission, contract),
        ArtifactBody::ReviewReceipt(receipt) => review::intake(deciding, submission, receipt),
        ArtifactBody::Call(made) => call::intake(deciding, submission, made),
        ArtifactBody::Observing(observing) => observe::begin(deciding, submission, observing),
        ArtifactBody::UngovernedCall(made) => observe::record(deciding, submission, made),
        ArtifactBody::WorkTaken(taken) => work::take(deciding, submission, taken),
        ArtifactBody::Advice(advice) => advice::record(deciding, submission, advice),
        ArtifactBody::ConferenceMove(made) => conference::make(deciding, submission, made),
        ArtifactBody::ResponsibilityContract(_) => handoff::contract(deciding, submission),
        ArtifactBody::HandoffConsent(consent) => handoff::consent(deciding, submission, consent),
        ArtifactBody::MatchReceipt(_)
        | ArtifactBody::DisclosureReceipt(_)
        | ArtifactBody::CommitReceipt(_)
        | ArtifactBody::AcceptanceReceipt(_)
        | ArtifactBody::ReadSet(_)
        | ArtifactBody::Proceeding(_) => {
            let denial = Denial::new(
                Code::MissingAuthority,
                CheckKind::Authority,
                "this receipt is written by its service alone",
            );
            deciding.refuse(subject, Some(digest), vec![denial.of(body.kind())])
        }
    }
}

/// A restriction is its issuer's own statement; it is committed at once.
fn restrict(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    statement: &RestrictionStatement,
    digest: Digest,
) -> Result<Reply, Fault> {
    if branch!("bench.statement_of_another", submission.producer.actor_id != statement.issuer) {
        let reason = "the statement is not its issuer's own";
        let denial = Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&statement.issuer);
        return deciding.refuse(Id::new(statement.statement_id.as_str()), Some(digest), vec![denial]);
    }
    let auth = deciding.batch.auth(submission.auth.record())?;
    let reply = urgent::restrict(deciding, statement, auth)?;
    deciding.fire()?;
    Ok(reply)
}

/// Whether what a confession is about is on record: a payload, a receipt or an attempt's intent, and the obligation (§8.1).
fn is_on_record(view: &View, confession: &Confession) -> bool {
    let affected = &confession.affected;
    let attempted = view.attempts.values().any(|attempt| attempt.intent_ref == *affected);
    let known = attempted || view.chain.holds(affected);
    known && view.state.obligation(&confession.affected_obligation).is_some()
}

fn reconciles(view: &View, receipt: &ReconciliationReceipt, who: &ActorId) -> bool {
    let urgent = view.commits.values().find(|committed| {
        committed.receipt_ref.as_ref().is_some_and(|reference| reference.digest == receipt.urgent_commit_ref.digest)
    });
    let owner = urgent
        .and_then(|committed| committed.receipt.as_ref()?.urgent_details.as_ref())
        .is_some_and(|details| details.independent_owner == *who);
    owner || (urgent.is_some() && view.state.is_user(who))
}

fn authored(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    role: ProducerRole,
    reason: &str,
) -> Result<Reply, Fault> {
    if branch!("bench.author_lacks_role", submission.producer.role != role) {
        let denial =
            Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&submission.producer.actor_id);
        return deciding.refuse(Id::new(submission.content.id().as_str()), None, vec![denial]);
    }
    recorded(deciding, submission)
}

fn recorded(deciding: &mut Deciding<'_>, submission: &Submission<ArtifactBody>) -> Result<Reply, Fault> {
    let reference = deciding.batch.artifact((*submission.content).clone(), vec![streams::bench()])?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}
