//! The Bench: what belongs to the user, the answers that come back, and the grants they lead to. Spec: §7.3, C13, DEC-63 to
//! DEC-65.

mod refusal;

use crate::entry::{ActivationEntry, ArtifactBody, Cause, Entry, Fired};
use crate::incident;
use crate::input::{Effect, Reply, Submission};
use crate::intake;
use crate::sequence::{Deciding, record_payload};
use crate::services::{self, Lineage};
use crate::view::{Episode, OnRecord, View};
use crate::work::lineage;
use crate::{commit, conference, review, streams, urgent};
use closer_contracts::audit::{DecisionType, Delegability, Grant, Revocation, UserDecision};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::briefcase::{
    Alternative, Briefcase, DecisionClass, GrantProposal, PacketStatus, RequestedAuthorization, WhileWaiting,
};
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::digest::Digest;
use closer_contracts::id::{DecisionId, DeltaId, GrantId, Id, PayloadId, Text};
use closer_contracts::item::{Item, ParameterBound};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::record::Reads;
use closer_contracts::refs::{ArtifactRef, AuthenticatedIssuer, ProducerRole, TargetPattern};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ActionProposal, Need, WorkResult};
use closer_contracts::{Fault, Payload};
use std::sync::Arc;

/// How long a packet waits before it is overdue, in milliseconds: one day.
pub const PACKET_MS: u64 = 24 * 3_600_000;
/// How long a granted authorization lasts, in milliseconds: one day.
pub const GRANT_MS: u64 = 24 * 3_600_000;

/// Whether something a result left open belongs to the user.
#[must_use]
pub fn belongs_to_user(result: &WorkResult) -> bool {
    result.unresolved.iter().any(|open| class_of(open.need).is_some())
}

/// Whether a result leaves the user a choice that no comparison of options makes: a preference or a tradeoff.
#[must_use]
pub fn leaves_a_choice(result: &WorkResult) -> bool {
    result.unresolved.iter().any(|open| matches!(open.need, Need::Preference | Need::Tradeoff))
}

const fn class_of(need: Need) -> Option<DecisionClass> {
    match need {
        Need::Preference => Some(DecisionClass::Preference),
        Need::Authority => Some(DecisionClass::NewAuthority),
        Need::Tradeoff => Some(DecisionClass::MaterialTradeoff),
        Need::Evidence | Need::Prerequisite => None,
    }
}

/// The narrowest grant that covers exactly this proposal, once.
fn narrowest(proposal: &ActionProposal, now: &Timestamp) -> GrantProposal {
    let exactly = |(name, value): (&closer_contracts::id::Key, &closer_contracts::refs::Plain)| ParameterBound {
        operation: proposal.operation.clone(),
        parameter: name.clone(),
        at_least: None,
        at_most: None,
        one_of: Some(vec![value.clone()]),
    };
    GrantProposal {
        allowed_operations: vec![proposal.operation.clone()],
        targets: vec![TargetPattern::exactly(&proposal.target)],
        parameter_bounds: proposal.parameters.iter().map(exactly).collect(),
        resource_bounds: closer_contracts::refs::Amounts { calls: Some(1), ..Default::default() },
        expiry: now.plus_ms(GRANT_MS),
    }
}

/// Drafts the packet of an episode: the judgment that its result leaves to the user, or the authority that a proposal
/// lacks. Nothing is recommended that nothing supports (C13).
///
/// # Errors
/// The codes of the contract.
pub fn draft(
    view: &View,
    episode: &Episode,
    result: &OnRecord<WorkResult>,
    proposal: Option<&ActionProposal>,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let open = result.body.unresolved.iter().find(|open| class_of(open.need).is_some());
    let decision_class = open.and_then(|open| class_of(open.need)).unwrap_or(DecisionClass::NewAuthority);
    let question = match (open, proposal) {
        (Some(open), _) => open.text.clone(),
        (None, Some(proposal)) => intake::bounded(&format!(
            "May `{}` be done once on `{}` of `{}`? No grant covers it.",
            proposal.operation, proposal.target.address, proposal.target.account
        )),
        (None, None) => Text::from("How should this go on?"),
    };
    let option = |id: &str, text: &str, consequence: &str| Alternative {
        option_id: id.into(),
        text: Text::from(text),
        consequence: Text::from(consequence),
    };
    let mut alternatives = Vec::new();
    if proposal.is_some() {
        alternatives.push(option(
            "allow",
            "Allow exactly this, once",
            "the action is assessed anew and done under this grant",
        ));
    }
    alternatives.push(option("refuse", "Do not allow it", "the effect stays blocked and the obligation stays open"));
    alternatives.push(option("investigate", "Find out more first", "work goes on within what is granted"));
    let packet = Briefcase {
        decision_id: DecisionId::new(crate::derived_id(
            "decision",
            &format!("{}.{}", episode.episode_id, episode.packets.len() + 1),
        )),
        obligation_ids: vec![episode.obligation_id.clone()],
        question,
        decision_class,
        recommendation: None,
        recommendation_reason: Some(Text::from("the record supports no preference; the choice is the user's")),
        alternatives,
        evidence_refs: result.body.assessments.iter().map(|relation| relation.evidence_id.clone()).collect(),
        dissent: Vec::new(),
        remaining_uncertainty: result.body.unresolved.iter().map(|open| open.text.clone()).collect(),
        requested_authorization: proposal.map(|proposal| RequestedAuthorization::Action {
            proposal: proposal.clone(),
            grant: narrowest(proposal, now),
        }),
        deadline: Some(now.plus_ms(PACKET_MS)),
        deadline_policy_ref: view
            .state
            .profile()
            .map_or_else(|| "policy.deadline".into(), |profile| profile.deadline_policy.clone()),
        while_waiting: WhileWaiting {
            permitted: vec![Text::from("work on other obligations, and investigation within what is granted")],
            blocked: vec![Text::from("the effect that is asked about")],
            consequence: Text::from(
                "without an answer nothing is permitted; the obligation stays open and is escalated once",
            ),
        },
        refresh_conditions: Vec::new(),
        status: PacketStatus::Open,
        extensions: None,
    };
    services::write(
        view,
        PayloadId::new(crate::derived_id("pl", packet.decision_id.as_str())),
        services::actor_ref(ProducerRole::Coordinator),
        lineage(episode, vec![result.payload.id().clone()]),
        services::internal_disclosure(view)?,
        packet,
        now,
    )
}

/// Puts a packet on The Bench; its obligations await the user's judgment from then on.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    packet: &Briefcase,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let reference = record_payload(deciding, payload, auth, vec![streams::bench()], Vec::new())?;
    deciding.effects.push(Effect::OnTheBench(packet.decision_id.clone()));
    let awaiting = status_changes(
        deciding.view,
        packet,
        ObligationStatus::AwaitingUserJudgment,
        "a judgment of the user is awaited",
    );
    if !awaiting.is_empty() {
        let routine = commit::Routine {
            delta_id: DeltaId::new(crate::derived_id("awaiting", packet.decision_id.as_str())),
            changes: awaiting,
            support_relations: Vec::new(),
            authorities: Vec::new(),
            lineage: packet_lineage(packet, payload.id()),
        };
        commit::by_rule(deciding, routine)?;
    }
    Ok(Reply::Recorded(vec![reference]))
}

fn packet_lineage(packet: &Briefcase, parent: &PayloadId) -> Lineage {
    Lineage {
        parents: vec![parent.clone()],
        obligation_ids: packet.obligation_ids.clone(),
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    }
}

fn status_changes(view: &View, packet: &Briefcase, status: ObligationStatus, reason: &str) -> Vec<Change> {
    let open = packet.obligation_ids.iter().filter_map(|id| view.state.obligation(id));
    open.filter(|obligation| obligation.status.is_open() && obligation.status != status)
        .map(|obligation| Change::SetStatus {
            obligation_id: obligation.obligation_id.clone(),
            status,
            successor: None,
            reason: Text::from(reason),
        })
        .collect()
}

/// Decides on an artifact that somebody submits: a decision, a restriction, a declaration, a reconciliation.
pub(crate) fn decide_artifact(
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
        ArtifactBody::UserDecision(decision) => decide(deciding, submission, decision, digest),
        ArtifactBody::RestrictionStatement(statement) => {
            if branch!("bench.statement_of_another", submission.producer.actor_id != statement.issuer) {
                let denial = Denial::new(
                    Code::Unauthenticated,
                    CheckKind::Authentication,
                    "the statement is not its issuer's own",
                );
                return deciding.refuse(subject, Some(digest), vec![denial.of(&statement.issuer)]);
            }
            let auth = deciding.batch.auth(submission.auth.record())?;
            let reply = urgent::restrict(deciding, statement, auth)?;
            deciding.fire()?;
            Ok(reply)
        }
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
        ArtifactBody::ConferenceMove(made) => conference::make(deciding, submission, made),
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

/// Whether what a confession is about is on record: a payload, a receipt or an attempt's intent, and the obligation (§8.1).
fn is_on_record(view: &View, confession: &closer_contracts::audit::Confession) -> bool {
    let affected = &confession.affected;
    let attempted = view.attempts.values().any(|attempt| attempt.intent_ref == *affected);
    let known = attempted || view.chain.holds(affected);
    known && view.state.obligation(&confession.affected_obligation).is_some()
}

fn reconciles(
    view: &View,
    receipt: &closer_contracts::audit::ReconciliationReceipt,
    who: &closer_contracts::id::ActorId,
) -> bool {
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

/// The packet that a decision answers: its reference names the packet's decision id and the version that was shown.
#[must_use]
pub fn packet_of(decision: &UserDecision) -> DecisionId {
    DecisionId::new(decision.briefcase_ref.id.as_str())
}

/// The user answers a packet. Only a scoped authorization leads to a grant, and never to a wider one than was shown.
fn decide(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    decision: &UserDecision,
    digest: Digest,
) -> Result<Reply, Fault> {
    let denials = unanswerable(deciding.view, submission, decision);
    if !denials.is_empty() {
        return deciding.refuse((&decision.decision_id).into(), Some(digest), denials);
    }
    let Some(packet) = deciding.view.packets.get(&packet_of(decision)) else {
        return Ok(Reply::Recorded(Vec::new()));
    };
    let packet = packet.packet.clone();
    let decision_ref = deciding.batch.artifact((*submission.content).clone(), vec![streams::bench()])?;
    let auth_ref = deciding.batch.auth(submission.auth.record())?;
    let mut changes = status_changes(deciding.view, &packet.body, ObligationStatus::Active, "the user has answered");
    let mut authorities = Vec::new();
    if branch!("bench.answer_authorizes", decision.decision_type == DecisionType::ScopedAuthorization) {
        let asked = packet.body.requested_authorization.as_ref().map(|requested| requested.grant());
        changes.extend(asked.map(|asked| grant(decision, asked, auth_ref)));
        authorities.push(AuthorityRef { kind: AuthorityKind::UserDecision, reference: decision_ref.clone() });
    }
    let refused = branch!("bench.answer_refuses", decision.decision_type == DecisionType::Rejection);
    if refused {
        let given = refusal::given_by(deciding.view, &packet_of(decision));
        if !given.is_empty() {
            authorities.push(AuthorityRef { kind: AuthorityKind::UserDecision, reference: decision_ref.clone() });
        }
        changes.extend(given.into_iter().map(|grant_id| Change::RevokeGrant {
            grant_id,
            reason: Text::from("the user refused after having allowed it"),
        }));
        changes.extend(refusal::gaps(deciding, &packet));
    }
    if !changes.is_empty() {
        let routine = commit::Routine {
            delta_id: DeltaId::new(crate::derived_id("answered", decision.decision_id.as_str())),
            changes,
            support_relations: Vec::new(),
            authorities,
            lineage: packet_lineage(&packet.body, packet.payload.id()),
        };
        commit::by_rule(deciding, routine)?;
    }
    // After a refusal there is nothing to ask again: the obligation keeps its triggers and waits for something new, or its
    // gap says that nothing else wakes it.
    let awake = packet.body.obligation_ids.iter().filter(|_| !refused);
    for obligation_id in awake {
        let cause = Cause {
            event_id: None,
            match_receipt: Some(decision_ref.clone()),
            reentry_id: None,
            activation_key: None,
            reason: intake::bounded(&format!("the user answered: {}", decision.decision_type)),
        };
        let fired = Fired { obligation_id: obligation_id.clone(), cause };
        let id = crate::derived_id(&format!("answered.{}", decision.decision_id), obligation_id.as_str());
        let streams = vec![streams::history(obligation_id)];
        deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
        deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    }
    deciding.fire()?;
    Ok(Reply::Recorded(vec![decision_ref]))
}

fn grant_id(decision: &UserDecision) -> GrantId {
    GrantId::new(crate::derived_id("grant", decision.decision_id.as_str()))
}

fn grant(decision: &UserDecision, asked: &GrantProposal, auth_ref: ArtifactRef) -> Change {
    let issuer = decision.authenticated_issuer.identity.clone();
    Change::Add {
        item: Box::new(Item::Grant(Grant {
            grant_id: grant_id(decision),
            authenticated_issuer: AuthenticatedIssuer { identity: issuer.clone(), auth_ref },
            allowed_operations: asked.allowed_operations.clone(),
            targets: asked.targets.clone(),
            parameter_bounds: asked.parameter_bounds.clone(),
            resource_bounds: asked.resource_bounds.clone(),
            expiry: asked.expiry.clone(),
            delegability: Delegability::None,
            revocation: Revocation { may_revoke: vec![issuer], revoked_by: None },
        })),
    }
}

/// Why an answer does not count: not the user's, no such packet, an older version of it, or no answer at all (DEC-64).
fn unanswerable(view: &View, submission: &Submission<ArtifactBody>, decision: &UserDecision) -> Vec<Denial> {
    let who = &submission.producer;
    let mut denials = Vec::new();
    let own = who.role == ProducerRole::User && who.actor_id == decision.authenticated_issuer.identity;
    if branch!("bench.answer_not_the_users", !own) {
        denials.push(
            Denial::new(Code::MissingAuthority, CheckKind::Authority, "a packet is answered by the user")
                .of(&who.actor_id),
        );
    }
    let Some(packet) = view.packets.get(&packet_of(decision)) else {
        denials.push(
            Denial::new(Code::UnresolvedRef, CheckKind::Resolution, "no such packet is on The Bench")
                .of(&decision.decision_id),
        );
        return denials;
    };
    let shown = decision.briefcase_ref.digest == packet.packet.payload.content_digest()
        && decision.evidence_version == packet.evidence_version
        && matches!(packet.status, PacketStatus::Open | PacketStatus::Overdue);
    // A refusal counts however late it comes; a second one after it restricts nothing more.
    let repeated = refusal::stands(view, &packet_of(decision));
    let honoured = decision.decision_type == DecisionType::Rejection && !repeated;
    if branch!("bench.packet_stale", !shown && !honoured) {
        let reason = match repeated {
            true => "the packet was refused before; that answer stands",
            false => "the answer is to a version of the packet that is no longer open; look at it again",
        };
        denials.push(Denial::new(Code::StalePacket, CheckKind::Resolution, reason).of(&decision.decision_id));
    }
    if branch!("bench.only_acknowledged", decision.decision_type == DecisionType::Acknowledgment) {
        denials.push(
            Denial::new(Code::NotAGrant, CheckKind::Authority, "an acknowledgment answers nothing")
                .of(&decision.decision_id),
        );
    }
    denials
}
