//! The transcript of a run: one line per step, as `sequence stage subject verdict code`.
//!
//! Authentications and movements of the ledger stand beside the record they belong to and have no line of their own.

use crate::space::{Broken, Space};
use closer_contracts::envelope::Body;
use closer_protocol::conference::What;
use closer_protocol::entry::{ActivationEntry, ArtifactBody, Entry};

/// What one line says.
struct Line {
    stage: String,
    subject: String,
    verdict: String,
    code: String,
}

fn line(stage: impl std::fmt::Display, subject: impl std::fmt::Display, verdict: impl std::fmt::Display) -> Line {
    Line { stage: stage.to_string(), subject: subject.to_string(), verdict: verdict.to_string(), code: "-".to_owned() }
}

/// The transcript of everything that a space recorded.
///
/// # Errors
/// A record that this version cannot read.
pub fn transcript(space: &Space) -> Result<String, Broken> {
    let mut text = String::new();
    for (sequence, (id, entry)) in space.entries()?.into_iter().enumerate() {
        if let Some(line) = told(&id, &entry) {
            let Line { stage, subject, verdict, code } = line;
            text.push_str(&format!("{sequence:>4} {stage:<12} {subject} {verdict} {code}\n"));
        }
    }
    Ok(text)
}

fn told(id: &str, entry: &Entry) -> Option<Line> {
    Some(match entry {
        Entry::Genesis(_) => line("genesis", "state", "accepted"),
        Entry::Payload(payload) => of_payload(payload),
        Entry::Artifact(artifact) => return of_artifact(artifact),
        Entry::Commit(commit) => line("commit", &commit.delta.delta_id, format_args!("version:{}", commit.version)),
        Entry::Intent(intent) => line("dispatch", &intent.attempt_id, "admitted"),
        Entry::Outcome(outcome) => line("outcome", &outcome.attempt_id, outcome.status),
        Entry::Refusal(refusal) => {
            Line { code: refusal.code.to_string(), ..line("refusal", &refusal.subject, "refused") }
        }
        Entry::Ownership(ownership) => {
            line("ownership", &ownership.obligation_id, format_args!("epoch:{}", ownership.epoch))
        }
        Entry::Activation(ActivationEntry::Fired(fired)) => {
            let trigger = fired.cause.reentry_id.as_ref().map_or_else(|| id.to_owned(), ToString::to_string);
            line("trigger", trigger, format_args!("eligible:{}", fired.obligation_id))
        }
        Entry::Activation(ActivationEntry::Began(began)) => {
            line("activation", &began.episode_id, format_args!("began:{}", began.obligation_id))
        }
        Entry::Activation(ActivationEntry::Ended(ended)) => line("activation", &ended.episode_id, ended.end),
        Entry::Notice(notice) => line("notice", &notice.key, notice.kind),
        Entry::Auth(_) | Entry::Ledger(_) | Entry::Passed => return None,
    })
}

fn of_payload(payload: &closer_contracts::Payload) -> Line {
    let stage = payload.envelope().r#type.as_str().to_ascii_lowercase();
    match payload.body() {
        Body::Adjudication(body) => line(body.phase, &body.adjudication_id, body.disposition),
        Body::Evidence(body) => match &body.readback {
            Some(readback) => line("readback", &body.evidence_id, readback.outcome),
            None => line(stage, &body.evidence_id, "observed"),
        },
        Body::Event(body) => line(stage, &body.event_id, body.certainty),
        Body::Briefcase(body) => line("bench", &body.decision_id, body.status),
        Body::Delta(body) => line(stage, &body.delta_id, "proposed"),
        Body::Action(body) => line(stage, &body.attempt_id, "proposed"),
        Body::Work(body) => line(stage, &body.work_id, "issued"),
        Body::Result(body) => line(stage, &body.work_id, "answered"),
        Body::Obligation(_) | Body::Route(_) | Body::Reentry(_) | Body::Handoff(_) => {
            line(stage, payload.id(), "recorded")
        }
    }
}

fn of_artifact(artifact: &ArtifactBody) -> Option<Line> {
    Some(match artifact {
        ArtifactBody::MatchReceipt(receipt) => line("match", &receipt.receipt_id, receipt.outcome),
        ArtifactBody::CommitReceipt(receipt) => line("receipt", &receipt.receipt_id, receipt.admission_path),
        ArtifactBody::UserDecision(decision) => line("decision", &decision.decision_id, decision.decision_type),
        ArtifactBody::RestrictionStatement(statement) => line("restriction", &statement.statement_id, "stated"),
        ArtifactBody::ReconciliationReceipt(receipt) => {
            line("reconciliation", &receipt.receipt_id, receipt.disposition)
        }
        ArtifactBody::Declaration(declaration) => line("declaration", &declaration.declaration_id, "recorded"),
        ArtifactBody::ResponsibilityContract(_) => return None,
        ArtifactBody::HandoffConsent(consent) => line("handoff", &consent.handoff_ref, "consented"),
        ArtifactBody::AcceptanceReceipt(receipt) => line("handoff", &receipt.handoff_ref, "accepted"),
        ArtifactBody::Confession(confession) => line("confession", &confession.confession_id, confession.status),
        ArtifactBody::Incident(incident) => line("incident", &incident.incident_id, "open"),
        ArtifactBody::IncidentStep(taken) => line("incident", &taken.incident_id, taken.content.word()),
        ArtifactBody::DisclosureReceipt(receipt) => line("disclosure", &receipt.disclosure_id, "released"),
        ArtifactBody::Conference(contract) => line("conference", &contract.conference_id, "opened"),
        ArtifactBody::ReviewReceipt(receipt) => line("review", &receipt.subject, receipt.decision),
        ArtifactBody::Call(call) => line("call", &call.caller, &call.proposal.operation),
        ArtifactBody::Advice(advice) => line("advice", &advice.operation, advice.verdict),
        ArtifactBody::Observing(observing) => line("observing", &observing.observing_id, &observing.until),
        ArtifactBody::UngovernedCall(call) => line("ungoverned", &call.proposal.operation, call.foreseen),
        ArtifactBody::WorkTaken(taken) => line("work", &taken.work_id, "taken"),
        ArtifactBody::ConferenceMove(made) => line("move", &made.actor, made.r#move),
        ArtifactBody::Proceeding(proceeding) => {
            let verdict = match &proceeding.what {
                What::Sealed(seal) => format!("sealed:{},absent:{}", seal.sealed.len(), seal.absent.len()),
                What::Released(release) => format!("released:{}", release.positions.len()),
                What::Accessed(access) => format!("{}:{}", access.reach, access.reader),
                What::Concluded(report) => format!("{},independence:{}", report.ending, report.independence.claim),
            };
            line("conference", &proceeding.conference_id, verdict)
        }
        ArtifactBody::ReadSet(_) => return None,
    })
}
