//! The user-judgment trace: what was left open, the packet, the decision, the grant made from it, and the action assessed
//! anew under it. Spec: §7.3, C15.

use super::chain::Chain;
use super::ordinary::readback;
use super::{Fault, From, Gap, Stage, Trace};
use crate::entry::{ArtifactBody, Intent};
use closer_contracts::Payload;
use closer_contracts::audit::DecisionType;
use closer_contracts::branch;
use closer_contracts::briefcase::{Briefcase, RequestedAuthorization};
use closer_contracts::delta::AuthorityKind;
use closer_contracts::envelope::Body;
use closer_contracts::id::{AttemptId, GrantId};

/// Walks the trace of an attempt under a grant that the user gave: from its readback to the assessment that was left open.
///
/// # Errors
/// The first gap, with the citation that led to it.
pub fn check_judgment(chain: &Chain, attempt_id: &AttemptId) -> Result<Trace, Gap> {
    let nothing = |missing| Gap { missing, cited_by: None, citation: attempt_id.to_string(), fault: Fault::Missing };
    let intent = chain.intents.get(attempt_id).ok_or_else(|| nothing(Stage::Dispatch))?;
    let observed = chain.readback(attempt_id).ok_or_else(|| nothing(Stage::Readback))?;
    let from = From::new(Stage::Dispatch, attempt_id, intent.position);
    let mut trace = Trace::default();
    let granted = grant(chain, &from, &intent.content, &mut trace)?;
    reassessment(chain, &from, &intent.content, granted)?;
    // The walk from the readback proves dispatch and assessment; only their steps belong to this trace.
    let mut acted = Trace::default();
    readback(chain, observed, &mut acted)?;
    for step in acted.steps {
        if step.stage == Stage::PreAction {
            trace.push(Stage::Reassessment, &step.id, step.digest, step.text);
        } else if matches!(step.stage, Stage::Dispatch | Stage::Readback) {
            trace.push(step.stage, &step.id, step.digest, step.text);
        }
    }
    Ok(trace)
}

/// Where a grant was committed: its version and the commit's place in the log.
struct Granted {
    version: u64,
    position: u64,
}

fn grant(chain: &Chain, from: &From, intent: &Intent, trace: &mut Trace) -> Result<Granted, Gap> {
    let action = from.follow(Stage::Action, &intent.action_ref.id, chain.cited(&intent.action_ref))?;
    let Some(grant_id) = authority(&action.content) else {
        return Err(from.gap(Stage::Action, &intent.action_ref.id, Fault::Differs("is no action")));
    };
    let version = chain.grants.get(grant_id);
    let commit = from.follow(Stage::Grant, grant_id, version.and_then(|version| chain.commits.get(version)))?;
    let own = From::new(Stage::Grant, grant_id, commit.position);
    let authorities = commit.content.delta.required_authority_refs.iter();
    let mut decisions = authorities.filter(|authority| authority.kind == AuthorityKind::UserDecision).peekable();
    let decided = decisions.peek().is_some();
    own.demand(
        branch!("trace.grant_cites_decision", decided),
        Stage::Decision,
        grant_id,
        "was not made from a decision of the user",
    )?;
    for authority in decisions {
        let located =
            own.follow(Stage::Decision, &authority.reference.id, chain.artifacts.get(&authority.reference.digest))?;
        let ArtifactBody::UserDecision(decision) = &*located.content else {
            return Err(own.gap(Stage::Decision, &authority.reference.id, Fault::Differs("is no decision")));
        };
        let authorizes = decision.decision_type == DecisionType::ScopedAuthorization;
        own.demand(
            branch!("trace.decision_authorizes", authorizes),
            Stage::Decision,
            &authority.reference.id,
            "authorizes nothing",
        )?;
        let decider = From::new(Stage::Decision, &decision.decision_id, located.position);
        bench(chain, &decider, &decision.briefcase_ref, trace)?;
        trace.push(
            Stage::Decision,
            &decision.decision_id,
            authority.reference.digest,
            decision.selected_option_or_instruction.as_str(),
        );
    }
    let digest = commit.content.delta.proposal_digest;
    trace.push(Stage::Grant, grant_id, digest, format!("committed as version {}", commit.content.version));
    Ok(Granted { version: commit.content.version, position: commit.position })
}

fn authority(payload: &Payload) -> Option<&GrantId> {
    if let Body::Action(body) = payload.body() { Some(&body.authority_ref) } else { None }
}

/// The packet, and the assessment that left something open before it.
fn bench(
    chain: &Chain,
    from: &From,
    reference: &closer_contracts::refs::ArtifactRef,
    trace: &mut Trace,
) -> Result<(), Gap> {
    let packet = from.follow(Stage::Bench, &reference.id, chain.packet(reference))?;
    let payload = &packet.content;
    let Body::Briefcase(body) = payload.body() else {
        return Err(from.gap(Stage::Bench, &reference.id, Fault::Differs("is no packet")));
    };
    let own = From::new(Stage::Bench, payload.id(), packet.position);
    let mut open = false;
    for parent in &payload.envelope().parents {
        let cited = own.follow(Stage::Assessment, parent, chain.payload(parent))?;
        if branch!("trace.assessment_left_open", leaves_open(&cited.content, body)) {
            trace.push(Stage::Assessment, parent, cited.content.content_digest(), "left something open");
            open = true;
        }
    }
    own.demand(open, Stage::Assessment, payload.id(), "follows from no assessment that left something open")?;
    trace.push(Stage::Bench, payload.id(), payload.content_digest(), body.question.as_str());
    Ok(())
}

/// Whether it left to the user what the packet asks: something unresolved, an objection, or an action without authority.
fn leaves_open(payload: &Payload, packet: &Briefcase) -> bool {
    match payload.body() {
        Body::Adjudication(body) => !body.unresolved.is_empty() || !body.disposition.is_positive(),
        Body::Result(body) => {
            let unauthorized = match &packet.requested_authorization {
                Some(RequestedAuthorization::Action { proposal, .. }) => body.action_proposals.contains(proposal),
                Some(RequestedAuthorization::Grant(_)) | None => false,
            };
            !body.unresolved.is_empty() || !body.objections.is_empty() || unauthorized
        }
        Body::Event(_)
        | Body::Obligation(_)
        | Body::Route(_)
        | Body::Work(_)
        | Body::Action(_)
        | Body::Evidence(_)
        | Body::Delta(_)
        | Body::Reentry(_)
        | Body::Handoff(_)
        | Body::Briefcase(_) => false,
    }
}

/// The action was assessed after the grant, on a state that holds it: an assessment from before does not count.
fn reassessment(chain: &Chain, from: &From, intent: &Intent, granted: Granted) -> Result<(), Gap> {
    let citation = &intent.adjudication_ref;
    let judged = from.follow(Stage::Reassessment, &citation.id, chain.cited(citation))?;
    let basis = if let Body::Adjudication(body) = judged.content.body() { body.governing_basis.version } else { 0 };
    let anew = judged.position > granted.position && basis >= granted.version;
    from.demand(
        branch!("trace.assessed_after_grant", anew),
        Stage::Reassessment,
        &citation.id,
        "was made before the grant",
    )
}
