//! The sequence: one per space, the only decider.
//!
//! It takes inputs one after another against the newest view, records whose flush is pending included, and says what is
//! appended, what is refused and what may follow. Nothing leaves the process before the step's records are durable. The
//! decided, unflushed suffix is bounded, so that an urgent input waits for the flush in progress and one more at most. On
//! a conflict or a failed flush the whole suffix is discarded and the kept inputs are decided again. Spec: design §5.
//!
//! ```text
//! input ──► take ──► Step ──► append (shell) ──► acknowledged ──► effects and replies leave
//!             ▲                    │ conflict, failed flush
//!             └── inputs again ◄── discard
//! ```

use crate::batch::Batch;
use crate::entry::{ArtifactBody, Entry};
use crate::input::{Answer, Effect, Input, Moment, Reply, Step, Submission};
use crate::intake::{self, Refused};
use crate::view::{Divergence, View};
use crate::{
    adjudicate, artifact, bench, commit, conference, delta, disclose, dispatch, episode, matching, readback, streams,
    urgent, work,
};
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::branch;
use closer_contracts::delta::{ChangeClass, Delta};
use closer_contracts::envelope::Body;
use closer_contracts::id::{DeltaId, Id};
use closer_contracts::record::{ClaimKey, CustodyClass, Lane, Reads};
use closer_contracts::refs::Amounts;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::{Fault, Payload};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most bytes that may be decided and not yet durable.
pub const SUFFIX_BYTES_MAX: usize = 1 << 20;
/// The most appends that may be decided and not yet durable.
pub const SUFFIX_BATCHES_MAX: usize = 256;

/// Which lane an input belongs to. Priority acts on inputs before they are decided; decided steps keep their order.
#[must_use]
pub fn lane(input: &Input, view: &View) -> Lane {
    match input {
        Input::Artifact(submission) if is_urgent(&submission.content, view) => Lane::Reserved,
        Input::Payload(submission) if is_restrictive_or_readback(submission.content.body(), view) => Lane::Reserved,
        Input::Commit { delta_id } if is_restriction_on_record(view, delta_id) => Lane::Reserved,
        Input::Performed { .. } | Input::Recover { .. } | Input::Tick => Lane::Reserved,
        Input::Payload(_)
        | Input::Artifact(_)
        | Input::Disclose(_)
        | Input::Answer { .. }
        | Input::Unanswered { .. }
        | Input::Issue { .. }
        | Input::Unreadable { .. }
        | Input::Unseen { .. }
        | Input::SeenAgain { .. }
        | Input::Open { .. }
        | Input::Dispatch { .. }
        | Input::Commit { .. }
        | Input::Confer(_)
        | Input::End { .. } => Lane::Ordinary,
    }
}

fn is_urgent(artifact: &ArtifactBody, view: &View) -> bool {
    // The user restricts by a declaration, and by the delta, its endorsement and the commit that follow it.
    let declares = |artifact: &ArtifactBody| matches!(artifact, ArtifactBody::Declaration(declaration) if view.state.is_user(&declaration.authenticated_issuer.identity));
    matches!(artifact, ArtifactBody::RestrictionStatement(_) | ArtifactBody::ReconciliationReceipt(_))
        || declares(artifact)
}

fn is_restrictive_or_readback(body: &Body, view: &View) -> bool {
    if let Body::Event(event) = body {
        return urgent::restrictive_event(view, event).is_some();
    }
    if let Body::Adjudication(adjudication) = body {
        return is_restriction_on_record(view, &DeltaId::new(adjudication.subject.id.as_str()));
    }
    matches!(body, Body::Evidence(evidence) if evidence.readback.is_some())
        || matches!(body, Body::Delta(delta) if only_restricts(delta))
}

/// Whether a delta does nothing but restrict: that has room where nothing else has.
fn only_restricts(delta: &Delta) -> bool {
    !delta.changes.is_empty() && delta.changes.iter().all(|change| change.class() == ChangeClass::Restrictive)
}

fn is_restriction_on_record(view: &View, delta_id: &DeltaId) -> bool {
    view.deltas.get(delta_id).is_some_and(|delta| only_restricts(&delta.body))
}

/// A step under decision: the batch it writes and the effects it allows.
pub(crate) struct Deciding<'a> {
    pub(crate) view: &'a Arc<View>,
    pub(crate) at: &'a Moment,
    pub(crate) batch: Batch<'a>,
    pub(crate) effects: Vec<Effect>,
    /// What whoever answered measured of its own use.
    pub(crate) used: Amounts,
}

impl<'a> Deciding<'a> {
    pub(crate) fn new(view: &'a Arc<View>, at: &'a Moment, batch: Batch<'a>) -> Self {
        Self { view, at, batch, effects: Vec::new(), used: Amounts::default() }
    }

    /// Refuses the subject: every denial is recorded.
    pub(crate) fn refuse(
        &mut self,
        subject: Id,
        digest: Option<closer_contracts::Digest>,
        denials: Vec<Denial>,
    ) -> Result<Reply, Fault> {
        intake::refuse(&mut self.batch, self.view, Refused { subject, digest, denials })
    }

    /// The view with everything folded that this step has written so far.
    pub(crate) fn so_far(&mut self) -> Result<Arc<View>, Fault> {
        self.batch.folded().map_err(|divergence| Fault::schema(divergence.reason))
    }

    /// Records the triggers that fire on what this step has written (§1.1, C11).
    pub(crate) fn fire(&mut self) -> Result<(), Fault> {
        let view = self.so_far()?;
        for fired in matching::fired(&view, self.at, self.batch.entries()) {
            crate::tick::fire(self, fired)?;
        }
        bench::withdraw_stale(self)
    }
}

/// A decided step whose append is not yet durable.
#[derive(Debug)]
struct Undurable {
    input: Input,
    at: Moment,
    bytes: usize,
    before: Arc<View>,
}

/// The sequence of one space.
#[derive(Debug)]
pub struct Sequence {
    view: Arc<View>,
    suffix: VecDeque<Undurable>,
    unreadable: u64,
}

impl Sequence {
    /// A sequence over the view that the durable log folds to.
    #[must_use]
    pub fn new(view: View) -> Self {
        Self { view: Arc::new(view), suffix: VecDeque::new(), unreadable: 0 }
    }

    /// The newest view, undurable steps included.
    #[must_use]
    pub const fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// The view that is durable.
    #[must_use]
    pub fn durable(&self) -> &Arc<View> {
        self.suffix.front().map_or(&self.view, |undurable| &undurable.before)
    }

    /// Whether another step may be decided before the oldest is durable.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let bytes: usize = self.suffix.iter().map(|undurable| undurable.bytes).sum();
        self.suffix.len() < SUFFIX_BATCHES_MAX && bytes < SUFFIX_BYTES_MAX
    }

    /// Decides one input and folds what it records.
    ///
    /// # Errors
    /// [`Divergence`] when the sequence's own records do not fold: a broken invariant; nothing of the step may leave.
    pub fn take(&mut self, input: Input, at: Moment, reads: &dyn Reads) -> Result<Step, Divergence> {
        let at = Moment {
            now: self.view.latest.as_ref().map_or(at.now.clone(), |latest| at.now.clone().max(latest.clone())),
            ..at
        };
        if let Input::Unreadable { .. } = &input {
            // What an earlier process put on record is gone on from.
            self.unreadable = self.unreadable.max(self.view.unreadable).saturating_add(1);
        }
        let (step, view) = decide(&self.view, &input, &at, reads, self.unreadable)
            .map_err(|fault| Divergence { reason: format!("a decision could not be written down: {fault}") })?;
        let before = std::mem::replace(&mut self.view, view);
        if let Some(append) = &step.append {
            let bytes =
                append.records.iter().map(|record| record.body.as_ref().map_or(0, |body| body.len()) + 512).sum();
            self.suffix.push_back(Undurable { input, at, bytes, before });
        }
        Ok(step)
    }

    /// The oldest undurable step has become durable.
    pub fn acknowledged(&mut self) {
        self.suffix.pop_front();
    }

    /// Discards everything undurable and gives the inputs back, in order, to be decided again.
    pub fn discard(&mut self) -> Vec<(Input, Moment)> {
        if let Some(oldest) = self.suffix.front() {
            self.view = oldest.before.clone();
        }
        self.suffix.drain(..).map(|undurable| (undurable.input, undurable.at)).collect()
    }
}

/// Decides one input against the view; gives the step and the view with everything of it folded.
fn decide(
    view: &Arc<View>,
    input: &Input,
    at: &Moment,
    reads: &dyn Reads,
    unreadable: u64,
) -> Result<(Step, Arc<View>), Fault> {
    let batch = Batch::new(view, reads, &at.now, lane(input, view));
    let mut deciding = Deciding::new(view, at, batch);
    let reply = match input {
        Input::Payload(submission) => submitted(&mut deciding, submission, reads)?,
        Input::Answer { answer, used } => {
            deciding.used = used.clone();
            match answer {
                Answer::Result(submission) => match work::repeated(view, &submission.content) {
                    Some(denial) => refuse_payload(&mut deciding, submission, vec![denial])?,
                    None => submitted(&mut deciding, submission, reads)?,
                },
                Answer::Move(submission) => artifact::decide(&mut deciding, submission, reads)?,
            }
        }
        Input::Unanswered { work_id, denial, used, handed_in_by } => {
            deciding.used = used.clone();
            work::unanswered(&mut deciding, work_id, denial, handed_in_by.as_ref())?
        }
        Input::Issue { work, disclosure } => issue(&mut deciding, work, disclosure, reads)?,
        Input::Disclose(submission) => disclose::answer(&mut deciding, submission)?,
        Input::Artifact(submission) => artifact::decide(&mut deciding, submission, reads)?,
        Input::Unreadable { subject, denial } => intake::unreadable(&mut deciding, subject, denial, unreadable)?,
        Input::Unseen { target, method, obligation_id, reason } => {
            readback::unseen(&mut deciding, target, method, obligation_id, reason)?
        }
        Input::SeenAgain { target, method, obligation_id } => {
            readback::seen_again(&mut deciding, target, method, obligation_id)?
        }
        Input::Open { obligation_id, episode_id } => episode::open(&mut deciding, obligation_id, episode_id)?,
        Input::Dispatch { payload_id, adjudication_id } => {
            dispatch::admit(&mut deciding, payload_id, adjudication_id.as_ref(), reads)?
        }
        Input::Performed { attempt_id, performed } => dispatch::performed(&mut deciding, attempt_id, performed)?,
        Input::Commit { delta_id } => commit::admit(&mut deciding, delta_id)?,
        Input::End { episode_id, end, reason } => episode::end(&mut deciding, episode_id, *end, reason)?,
        Input::Confer(proceed) => conference::proceed(&mut deciding, proceed)?,
        Input::Tick => crate::tick::tick(&mut deciding)?,
        Input::Recover { running } => dispatch::recover(&mut deciding, running)?,
    };
    let reply = match deciding.batch.taken().cloned() {
        Some(key) if branch!("sequence.key_taken", true) => refuse_taken(&mut deciding, input, reads, &key)?,
        Some(_) | None => reply,
    };
    let folded = deciding.so_far()?;
    let effects = deciding.effects;
    let decided = deciding.batch.finish();
    Ok((Step { append: decided.append, entries: decided.entries, effects, reply }, folded))
}

/// Takes in a payload, or refuses it with everything that speaks against it.
fn submitted(deciding: &mut Deciding<'_>, submission: &Submission<Payload>, reads: &dyn Reads) -> Result<Reply, Fault> {
    match intake::payload(deciding.view, submission, deciding.at, reads) {
        Ok(()) => decide_payload(deciding, &submission.content, submission.auth.record()),
        Err(denials) => refuse_payload(deciding, submission, denials),
    }
}

/// Issues a unit of work with the receipt of its packet. Where it is refused nothing has gone out, so no receipt is left.
fn issue<'a>(
    deciding: &mut Deciding<'a>,
    submission: &Submission<Payload>,
    receipt: &DisclosureReceipt,
    reads: &'a dyn Reads,
) -> Result<Reply, Fault> {
    let payload = &submission.content;
    let Body::Work(work) = payload.body() else {
        let fault = Fault::schema("a packet is the packet of work");
        return refuse_payload(deciding, submission, vec![fault.into()]);
    };
    deciding.batch.artifact(receipt.clone(), Vec::new())?;
    let with_receipt = deciding.so_far()?;
    let admitted = intake::payload(&with_receipt, submission, deciding.at, reads);
    let denials = match &admitted {
        Ok(()) => work::objections(deciding.view, &deciding.batch, payload, work, receipt, deciding.at)?,
        Err(denials) => denials.clone(),
    };
    if denials.is_empty() || deciding.batch.taken().is_some() {
        return work::issue(deciding, work, payload, submission.auth.record(), &receipt.recipient);
    }
    deciding.batch = Batch::new(deciding.view, reads, &deciding.at.now, Lane::Ordinary);
    match admitted {
        Ok(()) => deciding.refuse((&work.work_id).into(), Some(payload.content_digest()), denials),
        Err(_) => refuse_payload(deciding, submission, denials),
    }
}

/// An id or key that the decided records would take stands for other content: the input is refused as a whole (DEC-107).
fn refuse_taken<'a>(
    deciding: &mut Deciding<'a>,
    input: &Input,
    reads: &'a dyn Reads,
    key: &ClaimKey,
) -> Result<Reply, Fault> {
    let (subject, digest) = match input {
        Input::Payload(submission)
        | Input::Issue { work: submission, .. }
        | Input::Answer { answer: Answer::Result(submission), .. } => {
            (Id::from(submission.content.id()), Some(submission.content.content_digest()))
        }
        Input::Disclose(submission) => (Id::new(submission.content.request_id.as_str()), None),
        Input::Artifact(submission) | Input::Answer { answer: Answer::Move(submission), .. } => {
            (Id::new(submission.content.id().as_str()), None)
        }
        Input::Unanswered { work_id, .. } => (Id::from(work_id), None),
        Input::Open { episode_id, .. } | Input::End { episode_id, .. } => (Id::from(episode_id), None),
        Input::Dispatch { payload_id, .. } => (Id::from(payload_id), None),
        Input::Performed { attempt_id, .. } => (Id::from(attempt_id), None),
        Input::Commit { delta_id } => (Id::from(delta_id), None),
        Input::Unseen { target, .. } | Input::SeenAgain { target, .. } => (Id::new(target.address.as_str()), None),
        Input::Confer(proceed) => (Id::from(proceed.conference_id()), None),
        Input::Unreadable { .. } | Input::Tick | Input::Recover { .. } => (Id::from("sequence"), None),
    };
    deciding.batch = Batch::new(deciding.view, reads, &deciding.at.now, lane(input, deciding.view));
    deciding.effects.clear();
    let reason = "an id or key that it takes stands for other content";
    deciding.refuse(subject, digest, vec![Denial::new(RefusalCode::KeyConflict, CheckKind::Resolution, reason).of(key)])
}

fn refuse_payload(
    deciding: &mut Deciding<'_>,
    submission: &Submission<Payload>,
    denials: Vec<Denial>,
) -> Result<Reply, Fault> {
    let payload = &submission.content;
    let repeated =
        denials.iter().any(|denial| matches!(denial.code, RefusalCode::Duplicate | RefusalCode::KeyConflict));
    let reply = deciding.refuse(payload.id().into(), Some(payload.content_digest()), denials)?;
    // A restriction is processed however often its event comes (DEC-23).
    if let Body::Event(event) = payload.body() {
        let authentic = intake::producer(deciding.view, &submission.producer, &submission.auth, deciding.at).is_ok();
        if repeated && authentic {
            urgent::on_event(deciding, event, payload, submission.auth.record())?;
        }
    }
    Ok(reply)
}

fn decide_payload(
    deciding: &mut Deciding<'_>,
    payload: &Arc<Payload>,
    auth: &closer_contracts::auth::AuthRecord,
) -> Result<Reply, Fault> {
    match payload.body() {
        Body::Event(event) => crate::event::intake(deciding, event, payload, auth),
        Body::Work(body) => work::bare(deciding, body, payload),
        Body::Result(body) => work::answer(deciding, body, payload, auth),
        Body::Action(body) => crate::action::propose(deciding, body, payload, auth),
        Body::Evidence(body) => readback::intake(deciding, body, payload, auth),
        Body::Adjudication(body) => adjudicate::intake(deciding, body, payload, auth),
        Body::Delta(body) => delta::intake(deciding, body, payload, auth),
        Body::Briefcase(body) => bench::intake(deciding, body, payload, auth),
        Body::Handoff(body) => crate::handoff::offer(deciding, body, payload, auth),
        Body::Route(body) => crate::route::intake(deciding, body, payload, auth),
        Body::Obligation(_) | Body::Reentry(_) => {
            let reference = record_payload(deciding, payload, auth, Vec::new(), Vec::new())?;
            Ok(Reply::Recorded(vec![reference]))
        }
    }
}

/// Records a payload with its authentication, on its episode and obligations' audit streams and on `streams`.
pub(crate) fn record_payload(
    deciding: &mut Deciding<'_>,
    payload: &Arc<Payload>,
    auth: &closer_contracts::auth::AuthRecord,
    streams: Vec<closer_contracts::record::StreamId>,
    claims: Vec<(closer_contracts::record::ClaimKey, closer_contracts::Digest)>,
) -> Result<closer_contracts::refs::ArtifactRef, Fault> {
    record_payload_in(CustodyClass::Open, deciding, payload, auth, streams, claims)
}

/// As [`record_payload`], for a body that only this class of readers may read.
pub(crate) fn record_payload_in(
    custody: CustodyClass,
    deciding: &mut Deciding<'_>,
    payload: &std::sync::Arc<Payload>,
    auth: &closer_contracts::auth::AuthRecord,
    mut streams: Vec<closer_contracts::record::StreamId>,
    mut claims: Vec<(closer_contracts::record::ClaimKey, closer_contracts::Digest)>,
) -> Result<closer_contracts::refs::ArtifactRef, Fault> {
    let envelope = payload.envelope();
    streams.extend(envelope.episode_id.as_ref().map(streams::episode));
    streams.extend(envelope.obligation_ids.iter().map(streams::history));
    claims.push((streams::payload_claim(payload.id()), payload.content_digest()));
    deciding.batch.push_in(custody, payload.id().as_str(), Entry::Payload(payload.clone()), streams, claims)?;
    deciding.batch.auth(auth)?;
    if let Some(episode_id) = &envelope.episode_id {
        deciding.effects.push(Effect::Advance(episode_id.clone()));
    }
    Ok(crate::entry::payload_ref(payload))
}
