//! The Bench: what belongs to the user, the answers that come back, and the grants they lead to. Spec: §7.3, C13, DEC-63 to
//! DEC-65.

mod fate;
mod refusal;
mod subject;

pub use fate::{Fate, fate};
pub(crate) use subject::withdraw_stale;
pub use subject::{changed, changed_since_asked, proposed, waits};

use crate::entry::{ActivationEntry, ArtifactBody, Cause, Entry, Fired};
use crate::input::{Effect, Reply, Submission};
use crate::intake;
use crate::sequence::{Deciding, record_payload};
use crate::services::{self, Lineage};
use crate::view::{Episode, OnRecord, Packet, View};
use crate::work::lineage;
use crate::{commit, people, streams};
use closer_contracts::audit::{DecisionType, Delegability, Grant, Revocation, UserDecision};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::briefcase::{
    Alternative, Briefcase, DecisionClass, GrantProposal, PacketStatus, RequestedAuthorization, WhileWaiting,
};
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::digest::Digest;
use closer_contracts::envelope::Body;
use closer_contracts::id::{DecisionId, DeltaId, EvidenceId, GrantId, Key, PayloadId, Text};
use closer_contracts::item::{Item, ParameterBound};
use closer_contracts::obligation::ObligationStatus;
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

/// The ways to answer that every packet offers; to allow only where something is proposed.
fn options(proposal: Option<&ActionProposal>) -> Vec<Alternative> {
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
    alternatives
}

/// The evidence that a packet shows: what the result relates, and the newest about the target that would be touched.
fn shown(view: &View, episode: &Episode, result: &WorkResult, proposal: Option<&ActionProposal>) -> Vec<EvidenceId> {
    let mut shown: Vec<EvidenceId> = result.assessments.iter().map(|relation| relation.evidence_id.clone()).collect();
    shown.extend(proposal.and_then(|proposal| subject::newest_of(view, &episode.obligation_id, &proposal.target)));
    shown.sort();
    shown.dedup();
    shown
}

/// What a packet says is not known: what the result leaves open, and what has changed since the same was asked before. One
/// that rests on no evidence says so (§7.3).
fn uncertain(view: &View, episode: &Episode, result: &WorkResult, proposal: Option<&ActionProposal>) -> Vec<Text> {
    let mut unknown: Vec<Text> = result.unresolved.iter().map(|open| open.text.clone()).collect();
    if let Some(action) = episode.actions.last().and_then(|id| view.actions.get(id)) {
        let refused = view.refused.get(&Key::new(action.payload.id().as_str()));
        unknown.extend(refused.map(|(code, _)| intake::bounded(&format!("the monitor refused it before: {code}"))));
        let changed = changed_since_asked(view, &action.body.authority_ref);
        unknown.extend(changed.iter().map(|fact| intake::bounded(&format!("{}: {}", fact.fact, fact.change))));
    }
    if unknown.is_empty() && shown(view, episode, result, proposal).is_empty() {
        unknown.push(Text::from("no evidence on record bears on it"));
    }
    unknown
}

/// When a packet is to be answered by. One that asks the same anew keeps the time that is running: a question that keeps
/// coming never outruns its deadline.
fn deadline(view: &View, packet: &Briefcase, now: &Timestamp) -> Timestamp {
    let running = subject::same(view, packet).filter_map(|(_, older)| older.packet.body.deadline.clone());
    let running = running.filter(|deadline| branch!("bench.deadline_runs_on", deadline > now)).min();
    running.unwrap_or_else(|| now.plus_ms(PACKET_MS))
}

/// Whether what an episode would ask is asked already, on the same evidence, and waits.
#[must_use]
pub fn is_asked(
    view: &View,
    episode: &Episode,
    result: &OnRecord<WorkResult>,
    proposal: Option<&ActionProposal>,
    now: &Timestamp,
) -> bool {
    let drafted = draft(view, episode, result, proposal, now);
    let packet = drafted.as_ref().ok().map(Payload::body);
    let Some(Body::Briefcase(packet)) = packet else { return false };
    subject::is_asked(view, packet)
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
        alternatives: options(proposal),
        evidence_refs: shown(view, episode, &result.body, proposal),
        dissent: Vec::new(),
        remaining_uncertainty: uncertain(view, episode, &result.body, proposal),
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
    let packet = Briefcase { deadline: Some(deadline(view, &packet, now)), ..packet };
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
    let unexplained = packet.evidence_refs.is_empty() && packet.remaining_uncertainty.is_empty();
    if branch!("bench.early_without_its_gap", unexplained) {
        let reason = "a packet that rests on no evidence says what is not known";
        let denial = Denial::new(Code::SchemaInvalid, CheckKind::Schema, reason).of(&packet.decision_id);
        return deciding.refuse((&packet.decision_id).into(), Some(payload.content_digest()), vec![denial]);
    }
    subject::refresh(deciding, packet)?;
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

/// The packet that a decision answers: its reference names the packet's decision id and the version that was shown.
#[must_use]
pub fn packet_of(decision: &UserDecision) -> DecisionId {
    DecisionId::new(decision.briefcase_ref.id.as_str())
}

/// The user answers a packet. Only a scoped authorization leads to a grant, and never to a wider one than was shown.
pub(crate) fn decide(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    decision: &UserDecision,
    digest: Digest,
) -> Result<Reply, Fault> {
    let denials = unanswerable(deciding.view, submission, decision, &deciding.at.now);
    if !denials.is_empty() {
        let late = is_late(deciding, decision) && !denials.iter().any(|denial| denial.code == Code::MissingAuthority);
        let reply = deciding.refuse((&decision.decision_id).into(), Some(digest), denials)?;
        if late {
            subject::withdraw(deciding, &packet_of(decision), "an answer came after its deadline")?;
        }
        return Ok(reply);
    }
    let Some(packet) = deciding.view.packets.get(&packet_of(decision)) else {
        return Ok(Reply::Recorded(Vec::new()));
    };
    let packet = packet.packet.clone();
    let decision_ref = deciding.batch.artifact((*submission.content).clone(), vec![streams::bench()])?;
    let auth_ref = deciding.batch.auth(submission.auth.record())?;
    let authorizes = decision.decision_type == DecisionType::ScopedAuthorization;
    let missing = people::missing(&*deciding.so_far()?, decision);
    if branch!("bench.quorum_awaited", authorizes && missing > 0) {
        deciding.fire()?;
        return Ok(Reply::Recorded(vec![decision_ref]));
    }
    let mut changes = status_changes(deciding.view, &packet.body, ObligationStatus::Active, "the user has answered");
    let mut authorities = Vec::new();
    if branch!("bench.answer_authorizes", authorizes) {
        changes.extend(authorized(&packet.body, decision).map(|asked| grant(decision, &asked, auth_ref)));
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
    if !refused {
        wake(deciding, &packet.body, decision, &decision_ref)?;
    }
    deciding.fire()?;
    Ok(Reply::Recorded(vec![decision_ref]))
}

/// An answer wakes what it is about. After a refusal there is nothing to ask again: the obligation keeps its triggers and waits
/// for something new, or its gap says that nothing else wakes it.
fn wake(
    deciding: &mut Deciding<'_>,
    packet: &Briefcase,
    decision: &UserDecision,
    decision_ref: &ArtifactRef,
) -> Result<(), Fault> {
    for obligation_id in &packet.obligation_ids {
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
    Ok(())
}

/// What an answer authorizes: what was asked, or the narrowest grant for the action that the user put in its place.
#[must_use]
pub(crate) fn authorized(packet: &Briefcase, decision: &UserDecision) -> Option<GrantProposal> {
    let asked = packet.requested_authorization.as_ref()?.grant();
    Some(match &decision.amendment {
        None => asked.clone(),
        Some(amended) => GrantProposal { expiry: asked.expiry.clone(), ..narrowest(amended, &asked.expiry) },
    })
}

/// The action that an episode carries out because the user put it in another's place, and the result it was proposed in.
#[must_use]
pub fn amendment(view: &View, episode: &Episode) -> Option<(PayloadId, ActionProposal)> {
    let causes = episode.causes.iter().filter_map(|cause| cause.match_receipt.as_ref());
    let decision = causes.filter_map(|cited| view.amended.get(&DecisionId::new(cited.id.as_str()))).next_back()?;
    let packet = &view.packets.get(&packet_of(decision))?.packet.payload;
    let result = packet.envelope().parents.iter().find(|parent| view.results.contains_key(*parent))?;
    Some((result.clone(), decision.amendment.clone()?))
}

/// The grant that an answer leads to.
#[must_use]
pub fn grant_id(decision: &UserDecision) -> GrantId {
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

fn is_over(packet: &Packet, now: &Timestamp) -> bool {
    packet.packet.body.deadline.as_ref().is_some_and(|deadline| deadline <= now)
}

/// Whether an answer comes to a packet that waits, after its deadline.
fn is_late(deciding: &Deciding<'_>, decision: &UserDecision) -> bool {
    let packet = deciding.view.packets.get(&packet_of(decision));
    packet.is_some_and(|packet| waits(packet) && is_over(packet, &deciding.at.now))
}

/// Why a packet is no longer open to be answered as it was shown.
fn no_longer_open(view: &View, packet: &Packet) -> String {
    let answered = packet.decision.as_ref().and_then(|reference| {
        let decisions = view.decisions.get(&packet.packet.body.decision_id)?;
        decisions.iter().find(|(known, _)| known == reference)
    });
    match answered {
        Some((_, decision)) => {
            format!("it was answered before: {} by {}", decision.decision_type, decision.authenticated_issuer.identity)
        }
        None => format!("it is {}; look at what is asked now", packet.status),
    }
}

/// Why an answer does not count: not the user's, no such packet, an older version of it, or no answer at all (DEC-64).
fn unanswerable(
    view: &View,
    submission: &Submission<ArtifactBody>,
    decision: &UserDecision,
    now: &Timestamp,
) -> Vec<Denial> {
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
            true => "the packet was refused before; that answer stands".to_owned(),
            false => no_longer_open(view, packet),
        };
        denials.push(Denial::new(Code::StalePacket, CheckKind::Resolution, reason).of(&decision.decision_id));
    } else if branch!("bench.answer_late", !honoured && is_over(packet, now)) {
        let reason =
            "the answer came after the packet's deadline and did nothing; it is asked anew where it still matters";
        denials.push(Denial::new(Code::StalePacket, CheckKind::Resolution, reason).of(&decision.decision_id));
    }
    denials.extend(people::unheard(view, decision, &packet.packet.body, now));
    if let Some(amended) = &decision.amendment {
        let of_the_same = proposed(&packet.packet.body).is_some_and(|proposal| proposal.operation == amended.operation);
        if branch!("bench.amends_another_operation", !of_the_same) {
            let reason = "an amendment changes the action that the packet proposes, and not into another operation";
            denials.push(Denial::new(Code::SubjectMismatch, CheckKind::Authority, reason).of(&decision.decision_id));
        }
    }
    if branch!("bench.only_acknowledged", decision.decision_type == DecisionType::Acknowledgment) {
        denials.push(
            Denial::new(Code::NotAGrant, CheckKind::Authority, "an acknowledgment answers nothing")
                .of(&decision.decision_id),
        );
    }
    denials
}
