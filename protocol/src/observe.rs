//! Observing: for a time that ends by itself, calls of operations that nothing was ever granted for are forwarded as they are,
//! after it is on record how they would have been judged.
//!
//! A forwarded call is no effect of this runtime: it has no permit, no attempt, no receipt and no readback, it counts against
//! no grant and no budget, and nothing accepted follows from it. What is decided here is whether observing is on, which calls
//! it is about, what would have been said to each, and whether it may be forwarded at all. Whatever has a grant is governed
//! as always; whatever is restricted, or is not what was registered, goes nowhere. Spec: §4.2.

mod report;

pub use report::{Counted, Proposed, Report, Tally, report};

use crate::advice::{self, Asked};
use crate::entry::ArtifactBody;
use crate::input::{Moment, Reply, Submission};
use crate::sequence::Deciding;
use crate::view::View;
use crate::{action, call, streams};
use closer_contracts::branch;
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, ArtifactId, Id, Key, ObligationId, OperationId};
use closer_contracts::refs::{ArtifactRef, Parameters, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code, foremost};
use closer_contracts::time::Timestamp;
use closer_contracts::work::ActionProposal;
use closer_contracts::{Fault, word_enum};
use closer_monitor::ClockStanding;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One day, in milliseconds.
const DAY_MS: u64 = 24 * 3_600_000;
/// How many days after it was first started observing ends at the latest.
pub const DAYS_MAX: u64 = 14;

word_enum! {
    /// What would have become of a call.
    pub enum Foreseen {
        /// It would have run.
        Pass = "pass",
        /// A person would have been asked.
        Ask = "ask",
        /// It would have been refused.
        Refuse = "refuse",
    }
}

/// The user has observing begin, or end earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observing {
    /// Its id.
    pub observing_id: ArtifactId,
    /// When it ends.
    pub until: Timestamp,
}

impl Check for Observing {
    fn check(&self) -> Result<(), Fault> {
        self.observing_id.check().map_err(|fault| fault.within("observing_id"))
    }
}

/// A call that is forwarded without being governed, with what would have become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UngovernedCall {
    /// Its id.
    pub ungoverned_id: ArtifactId,
    /// Who calls.
    pub caller: ActorId,
    /// The obligation it would have been for.
    pub obligation_id: ObligationId,
    /// What makes a repeat of the same message the same call.
    pub transport_key: Option<Key>,
    /// The action it would have been.
    pub proposal: ActionProposal,
    /// The digest of the operation's contract as its endpoint shows itself now.
    pub endpoint: Digest,
    /// What would have become of it.
    pub foreseen: Foreseen,
    /// The foremost of what speaks against it, where anything does.
    pub code: Option<Code>,
}

impl Check for UngovernedCall {
    fn check(&self) -> Result<(), Fault> {
        self.ungoverned_id.check().map_err(|fault| fault.within("ungoverned_id"))?;
        self.caller.check().map_err(|fault| fault.within("caller"))?;
        self.obligation_id.check().map_err(|fault| fault.within("obligation_id"))?;
        self.transport_key.check().map_err(|fault| fault.within("transport_key"))?;
        self.proposal.check().map_err(|fault| fault.within("proposal"))
    }
}

impl UngovernedCall {
    fn is_the_same_message_as(&self, other: &Self) -> bool {
        (&self.caller, &self.obligation_id, &self.proposal) == (&other.caller, &other.obligation_id, &other.proposal)
    }
}

/// What was observed: since when, until when, and each forwarded call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedCalls {
    period: Option<(Timestamp, Timestamp)>,
    calls: OrdMap<ArtifactId, Arc<UngovernedCall>>,
    keyed: OrdMap<Key, ArtifactRef>,
}

impl ObservedCalls {
    /// The first record begins it, and no later one makes it longer.
    pub(crate) fn fold_period(&mut self, observing: &Observing, at: &Timestamp) {
        let (began_at, until) = self.period.clone().unwrap_or_else(|| (at.clone(), observing.until.clone()));
        self.period = Some((began_at, until.min(observing.until.clone())));
    }

    pub(crate) fn fold_call(&mut self, call: &UngovernedCall, reference: ArtifactRef) {
        if let Some(key) = &call.transport_key {
            self.keyed.insert(key.clone(), reference);
        }
        self.calls.insert(call.ungoverned_id.clone(), Arc::new(call.clone()));
    }

    /// When observing began and when it ends; nothing where it never began.
    #[must_use]
    pub const fn period(&self) -> Option<&(Timestamp, Timestamp)> {
        self.period.as_ref()
    }

    /// The call that was forwarded under the key of a message.
    pub(crate) fn under(&self, key: &Key) -> Option<&ArtifactRef> {
        self.keyed.get(key)
    }
}

/// Whether observing is on: it was begun and is not over. A clock in doubt cannot say so, and then it is off.
#[must_use]
pub fn is_on(view: &View, at: &Moment) -> bool {
    let not_over = view.ungoverned.period().is_some_and(|(_, until)| at.now < *until);
    branch!("observe.not_over", not_over && at.clock != ClockStanding::Unreliable)
}

/// Whether a call of an operation is observed instead of governed: observing is on and no grant was ever given for it, neither
/// one in force nor one that was revoked or has expired.
#[must_use]
pub fn applies(view: &View, operation: &OperationId, at: &Moment) -> bool {
    let granted = view.state.grants_allowing(operation).next().is_some();
    is_on(view, at) && branch!("observe.never_granted", !granted)
}

/// When observing is to end for whoever asks for an end, or for so many days: nothing where it ends as early already.
#[must_use]
pub fn wanted(view: &View, asked: Option<Timestamp>, days: Option<u64>, at: &Moment) -> Option<Timestamp> {
    let began_at = view.ungoverned.period().map_or(&at.now, |(began_at, _)| began_at);
    let by_days = began_at.plus_ms(days.unwrap_or(DAYS_MAX).saturating_mul(DAY_MS));
    let wanted = asked.unwrap_or(by_days);
    let known = view.ungoverned.period().is_some_and(|(_, until)| *until <= wanted);
    (!known).then_some(wanted)
}

/// Records that observing begins, or ends earlier than it would have.
pub(crate) fn begin(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    observing: &Observing,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    let mut denials = Vec::new();
    let own = submission.producer.role == ProducerRole::User && view.state.is_user(&submission.producer.actor_id);
    if branch!("observe.not_the_users", !own) {
        let reason = "only the user has calls forwarded without being governed";
        let denial = Denial::new(Code::MissingAuthority, CheckKind::Authority, reason);
        denials.push(denial.of(&submission.producer.actor_id));
    }
    let latest = view.ungoverned.period().map(|(_, until)| until.clone());
    let latest = latest.unwrap_or_else(|| deciding.at.now.plus_ms(DAYS_MAX * DAY_MS));
    if branch!("observe.too_long", observing.until > latest) {
        let reason = format!("observing ends at {latest} at the latest, and an end that was set is not put off");
        denials.push(Denial::new(Code::OutOfBounds, CheckKind::Authority, reason).of(&observing.until));
    }
    if !denials.is_empty() {
        let digest = submission.content.digest()?;
        return deciding.refuse(Id::new(observing.observing_id.as_str()), Some(digest), denials);
    }
    let reference = deciding.batch.artifact(observing.clone(), vec![streams::bench()])?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

const fn is_of_authority(code: Code) -> bool {
    matches!(code, Code::MissingAuthority | Code::OutOfBounds | Code::GrantRevoked | Code::GrantExpired)
}

/// What speaks against an action now beside the lack of a grant.
fn beside_authority(view: &View, caller: &ActorId, call: (&ObligationId, &ActionProposal), at: &Moment) -> Vec<Denial> {
    let (obligation_id, proposal) = call;
    let asked = Asked {
        actor: caller.clone(),
        tool: Key::from("observed"),
        operation: proposal.operation.clone(),
        target: proposal.target.clone(),
        parameters: proposal.parameters.clone(),
        obligation_id: Some(obligation_id.clone()),
    };
    let mut denials = advice::objections(view, &asked, at);
    denials.retain(|denial| !is_of_authority(denial.code));
    denials
}

/// What would become of a call now, and the foremost of what speaks against it. Where no grant covers it a person would be
/// asked, whatever else there is; the code says that there is more.
#[must_use]
pub fn foreseen(view: &View, call: &UngovernedCall, at: &Moment) -> (Foreseen, Option<Code>) {
    let code_of = |denials: &[Denial]| foremost(denials).map(|denial| denial.code);
    let unplaced = call::unplaced(view, &call.obligation_id, &call.proposal.operation, call.endpoint);
    if branch!("observe.would_not_be_taken", !unplaced.is_empty()) {
        return (Foreseen::Refuse, code_of(&unplaced));
    }
    let others = beside_authority(view, &call.caller, (&call.obligation_id, &call.proposal), at);
    let covered = action::covering_grant(view, &call.proposal, &at.now).is_some();
    match (covered, code_of(&others)) {
        (true, None) => (Foreseen::Pass, None),
        (true, Some(code)) => (Foreseen::Refuse, Some(code)),
        (false, other) => (Foreseen::Ask, Some(other.unwrap_or(Code::MissingAuthority))),
    }
}

/// Records a call before it is forwarded. A message that comes again is told the record of the first.
pub(crate) fn record(
    deciding: &mut Deciding<'_>,
    submission: &Submission<ArtifactBody>,
    call: &UngovernedCall,
) -> Result<Reply, Fault> {
    let view = deciding.view;
    if let Some(known) = call.transport_key.as_ref().and_then(|key| view.ungoverned.under(key)) {
        let earlier = view.ungoverned.calls.get(&known.id);
        if branch!("observe.sent_again", earlier.is_some_and(|earlier| earlier.is_the_same_message_as(call))) {
            return Ok(Reply::Recorded(vec![known.clone()]));
        }
    }
    let denials = objections(deciding, submission, call);
    if !denials.is_empty() {
        let digest = submission.content.digest()?;
        return deciding.refuse(Id::new(call.ungoverned_id.as_str()), Some(digest), denials);
    }
    let reference = deciding.batch.artifact(call.clone(), Vec::new())?;
    deciding.batch.auth(submission.auth.record())?;
    Ok(Reply::Recorded(vec![reference]))
}

fn objections(deciding: &Deciding<'_>, submission: &Submission<ArtifactBody>, call: &UngovernedCall) -> Vec<Denial> {
    let (view, at) = (deciding.view, deciding.at);
    let mut denials = Vec::new();
    let own = submission.producer.actor_id == call.caller && submission.producer.role == ProducerRole::Participant;
    if branch!("observe.call_of_another", !own) {
        let reason = "a call is made by a participant, in its own name";
        denials.push(Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&call.caller));
    }
    if branch!("observe.governed", !applies(view, &call.proposal.operation, at)) {
        let reason = "observing is not on, or the operation has a grant: the call is governed";
        denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&call.proposal.operation));
    }
    let key = call.transport_key.as_ref();
    let used = key.is_some_and(|key| view.calls.under(key).is_some() || view.ungoverned.under(key).is_some());
    if branch!("observe.key_stands_for_another", used) {
        let reason = "the key of this message stands for another call";
        denials.push(Denial::new(Code::KeyReuseChangedContent, CheckKind::Resolution, reason).of(&call.ungoverned_id));
    }
    if branch!("observe.not_what_is_foreseen", foreseen(view, call, at) != (call.foreseen, call.code)) {
        let reason = "this is not what would become of it any more";
        denials.push(Denial::new(Code::StaleVersion, CheckKind::Authority, reason).of(&call.proposal.operation));
    }
    denials
}

/// A call that may be forwarded as it is. It is no permit, and nothing that acts on a permit takes it.
#[derive(Debug)]
pub struct Ungoverned {
    proposal: ActionProposal,
}

impl Ungoverned {
    /// The operation.
    #[must_use]
    pub const fn operation(&self) -> &OperationId {
        &self.proposal.operation
    }

    /// What its tool is handed.
    #[must_use]
    pub const fn parameters(&self) -> &Parameters {
        &self.proposal.parameters
    }
}

/// Lets a call be forwarded that is on record; `view` is what is durable.
///
/// # Errors
/// Why it goes nowhere: it would have been refused, it is restricted, or observing is over.
pub fn release(view: &View, id: &ArtifactId, at: &Moment) -> Result<Ungoverned, Denial> {
    let deny = |code, reason: &str| Denial::new(code, CheckKind::Authority, reason).of(id);
    let Some(call) = view.ungoverned.calls.get(id) else {
        return Err(deny(Code::UnresolvedRef, "no such call is on record"));
    };
    if branch!("observe.over_before_forwarding", !applies(view, &call.proposal.operation, at)) {
        return Err(deny(Code::MissingAuthority, "observing is over, or the operation has been granted meanwhile"));
    }
    match foreseen(view, call, at) {
        (Foreseen::Refuse, code) if branch!("observe.refused_is_not_forwarded", true) => {
            Err(deny(code.unwrap_or(Code::MissingAuthority), "it would be refused, and is not forwarded either"))
        }
        (_, Some(Code::Restricted)) if branch!("observe.restricted_is_not_forwarded", true) => {
            Err(deny(Code::Restricted, "it is restricted; observing changes nothing about that"))
        }
        (Foreseen::Pass | Foreseen::Ask | Foreseen::Refuse, _) => Ok(Ungoverned { proposal: call.proposal.clone() }),
    }
}
