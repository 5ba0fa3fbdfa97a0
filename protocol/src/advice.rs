//! Advice: what the monitor would say to something that an agent is about to do by its own hands.
//!
//! An agent's own shell and editor are not operations of this runtime: it neither carries them out nor reads them back, so what
//! is said about them admits nothing, reserves nothing and counts against no grant. It stands on record as advised, whatever
//! the agent does then. Spec: §4.2.

use crate::action;
use crate::entry::ArtifactBody;
use crate::input::{Moment, Reply, Submission};
use crate::sequence::Deciding;
use crate::services;
use crate::streams;
use crate::view::View;
use closer_contracts::action::Action;
use closer_contracts::branch;
use closer_contracts::contract::Check;
use closer_contracts::id::{ActionId, ActorId, ArtifactId, AttemptId, GrantId, Id, Key, ObligationId, OperationId};
use closer_contracts::refs::{Parameters, ProducerRole, Target};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code, foremost};
use closer_contracts::work::{ActionProposal, Postcondition};
use closer_contracts::{Digest, Fault, word_enum};
use closer_monitor::{
    AttemptStanding, DisclosureStanding, KeyStanding, Ownership, OwnershipStanding, Reservation, Situation,
};
use serde::{Deserialize, Serialize};

word_enum! {
    /// What is said. It is never more than advice: nothing is known of what happened then.
    pub enum AdvisedVerdict {
        /// Nothing speaks against it.
        AdvisedToGoOn = "advised_to_go_on",
        /// Something does.
        AdvisedAgainst = "advised_against",
    }
}

/// What was said to an agent about something that it would do itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Its id.
    pub advice_id: ArtifactId,
    /// What the agent calls its tool.
    pub tool: Key,
    /// The operation that the deployment takes it for.
    pub operation: OperationId,
    /// On what.
    pub target: Target,
    /// With which parameters.
    pub parameters: Parameters,
    /// The obligation it would serve, where one is named.
    pub obligation_id: Option<ObligationId>,
    /// What was said.
    pub verdict: AdvisedVerdict,
    /// As what it would be refused, where it would.
    pub code: Option<Code>,
}

impl Check for Advice {
    fn check(&self) -> Result<(), Fault> {
        self.advice_id.check().map_err(|fault| fault.within("advice_id"))?;
        self.tool.check().map_err(|fault| fault.within("tool"))?;
        self.operation.check().map_err(|fault| fault.within("operation"))?;
        self.target.check().map_err(|fault| fault.within("target"))?;
        self.parameters.check().map_err(|fault| fault.within("parameters"))?;
        match self.verdict == verdict_of(self.code) {
            true => Ok(()),
            false => Err(Fault::schema("the code and what was said do not go together").within("verdict")),
        }
    }
}

const fn verdict_of(code: Option<Code>) -> AdvisedVerdict {
    match code {
        None => AdvisedVerdict::AdvisedToGoOn,
        Some(_) => AdvisedVerdict::AdvisedAgainst,
    }
}

/// What an agent asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Who would do it.
    pub actor: ActorId,
    /// What the agent calls its tool.
    pub tool: Key,
    /// The operation that the deployment takes it for.
    pub operation: OperationId,
    /// On what.
    pub target: Target,
    /// With which parameters.
    pub parameters: Parameters,
    /// The obligation it would serve, where one is named.
    pub obligation_id: Option<ObligationId>,
}

/// What speaks now against what an agent would do itself; empty where nothing does.
#[must_use]
pub fn objections(view: &View, asked: &Asked, at: &Moment) -> Vec<Denial> {
    let proposal = ActionProposal {
        operation: asked.operation.clone(),
        target: asked.target.clone(),
        parameters: asked.parameters.clone(),
        expected_postcondition: Postcondition { id: Id::from("advice"), expectations: Vec::new() },
    };
    let covering = action::covering_grant(view, &proposal, &at.now);
    let closest = || view.state.grants_allowing(&asked.operation).next().map(|grant| grant.grant_id.clone());
    let authority = covering.clone().or_else(closest).unwrap_or_else(|| GrantId::from("none"));
    let mut denials = foreseen(view, asked, proposal, &authority, at);
    if covering.is_none() && branch!("advice.nothing_covers_it", denials.is_empty()) {
        let reason = "no grant covers this now";
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&asked.operation));
    }
    denials
}

fn foreseen(view: &View, asked: &Asked, proposal: ActionProposal, authority: &GrantId, at: &Moment) -> Vec<Denial> {
    let action = Action {
        action_id: ActionId::from("advice"),
        operation: proposal.operation,
        target: proposal.target,
        parameters: proposal.parameters,
        expected_postcondition: proposal.expected_postcondition,
        authority_ref: authority.clone(),
        relevant_semantic_version: view.state.reference().version,
        registry_version: view.state.operation(&asked.operation).map_or(1, |entry| entry.version),
        idempotency_key: Key::from("advice"),
        logical_digest: Digest::of(b"advice"),
        attempt_id: AttemptId::from("advice"),
        ownership_epoch: 0,
        extensions: None,
    };
    let nobodys = ObligationId::from("none");
    let ownership =
        Ownership { epoch: 0, owner: asked.actor.clone(), lease_expiry: None, standing: OwnershipStanding::Held };
    closer_monitor::foresee(&Situation {
        now: &at.now,
        clock: at.clock,
        state: &view.state,
        producer: &services::actor_ref(ProducerRole::Planner),
        proposer: &asked.actor,
        obligation_id: asked.obligation_id.as_ref().unwrap_or(&nobodys),
        action: &action,
        offered: None,
        moved: &[],
        ownership: &ownership,
        grant_calls: view.calls_under.get(authority).copied().unwrap_or(0),
        key: KeyStanding::Unused,
        attempt: AttemptStanding::First,
        disclosure: DisclosureStanding::Released,
        reservation: Reservation::Fits,
    })
}

/// The advice that these objections come to.
#[must_use]
pub fn draft(advice_id: ArtifactId, asked: Asked, objections: &[Denial]) -> Advice {
    let code = foremost(objections).map(|denial| denial.code);
    let Asked { actor: _, tool, operation, target, parameters, obligation_id } = asked;
    Advice { advice_id, tool, operation, target, parameters, obligation_id, verdict: verdict_of(code), code }
}

/// Records what is said to an agent, where it is what the monitor says at this moment.
pub(crate) fn record(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    advice: &Advice,
) -> Result<Reply, Fault> {
    let asked = Asked {
        actor: submission.producer.actor_id.clone(),
        tool: advice.tool.clone(),
        operation: advice.operation.clone(),
        target: advice.target.clone(),
        parameters: advice.parameters.clone(),
        obligation_id: advice.obligation_id.clone(),
    };
    let said = foremost(&objections(deciding.view, &asked, deciding.at)).map(|denial| denial.code);
    if branch!("advice.not_what_is_judged", said != advice.code) {
        let reason = "this is not what is to be said to it any more";
        let denial = Denial::new(Code::StaleVersion, CheckKind::Authority, reason).of(&advice.operation);
        let digest = submission.content.digest()?;
        return deciding.refuse(Id::new(advice.advice_id.as_str()), Some(digest), vec![denial]);
    }
    let streams = advice.obligation_id.iter().map(streams::history).collect();
    let reference = deciding.batch.artifact(advice.clone(), streams)?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}
