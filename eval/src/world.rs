//! A committed store, and the two worlds that begin from it. Spec: §10.1.
//!
//! The item is admitted by the ordinary loop: observations, an event, work, a delta, an endorsement, a commit. Withholding
//! touches the packet and its receipt; what the monitor judges on is the full state, the same in both worlds. Clock and ids
//! are the simulated space's own, so that the same item gives the same bytes.

mod deployment;
mod outcome;

pub use outcome::{Outcome, QuestionPut, Readback};

use crate::item::{Conclusion, StudyItem};
use crate::packet;
use crate::step::Step;
use closer_contracts::canonical::digest_of;
use closer_contracts::envelope::{Body, DisclosureRef};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ArtifactId, EpisodeId, EvidenceId};
use closer_contracts::item::{Claim, Standing};
use closer_contracts::record::Record;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ProposedClaim, Relation, Work, WorkResult};
use closer_contracts::{Digest, Payload};
use closer_protocol::View;
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply};
use closer_protocol::work::Packet;
use closer_scenarios::space::Broken;
use closer_scenarios::{Space, World, worker};
use std::sync::{Arc, Mutex};

/// How much later than the commit the worlds begin, in milliseconds.
const LATER_MS: u64 = 60_000;

/// What the worlds of a pair begin from.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The record.
    pub records: Vec<Record>,
    /// The moment at which it ends.
    pub now: Timestamp,
    /// The claim, as it was accepted.
    pub claim: Claim,
}

/// Why an item could not be committed.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The ordinary loop did not accept the conclusion; there is nothing to withhold.
    #[error("the conclusion was not accepted: {0}")]
    PromotionFailed(String),
    /// The space itself broke, or the item cannot be founded.
    #[error("{0}")]
    Broken(#[from] Broken),
}

/// Commits a conclusion of an item and brings its current inputs in.
///
/// # Errors
/// [`NotCommitted`].
pub fn commit(item: &StudyItem, conclusion: &Conclusion) -> Result<Committed, NotCommitted> {
    let founded = deployment::of(item, conclusion);
    let claimed = deployment::proposition(conclusion);
    let answer = Box::new(move |work: &Work, view: &View| concludes(work, view, claimed.clone()));
    let mut space = Space::found(&founded, answer)?;
    for (number, fields) in conclusion.evidence.iter().enumerate() {
        let source = deployment::source(item, number);
        for (field, value) in fields {
            space.world.set(&source, field.as_str(), value.0.clone());
        }
        recorded(&space.observe(&source, Some(deployment::EARLIER))?)?;
    }
    recorded(&space.event(deployment::EARLIER_ENTITY, "price")?)?;
    space.run()?;
    let claim = accepted(space.view());
    let claim = claim.ok_or_else(|| {
        let refusals: Vec<String> = space.refusals().unwrap_or_default().iter().map(ToString::to_string).collect();
        NotCommitted::PromotionFailed(refusals.join(", "))
    })?;
    // The next step is taken later: what was known then may have expired.
    space.pass(LATER_MS)?;
    for (field, value) in &item.inputs {
        space.world.set(&item.target, field.as_str(), value.0.clone());
    }
    recorded(&space.observe(&item.target, Some(deployment::NEXT))?)?;
    recorded(&space.event(deployment::NEXT_ENTITY, "price")?)?;
    Ok(Committed { records: space.records().to_vec(), now: space.moment().now, claim })
}

fn recorded(reply: &Reply) -> Result<(), Broken> {
    match reply {
        Reply::Recorded(_) => Ok(()),
        Reply::Refused(denials) => Err(Broken::Stuck(format!("{denials:?}"))),
    }
}

/// The claim in force on the conclusion's proposition.
fn accepted(view: &View) -> Option<Claim> {
    let proposition = deployment::PROPOSITION.into();
    let mut claims = view.state.claims_on(&proposition);
    claims.find_map(|accepted| accepted.item.as_claim()).filter(|claim| claim.standing == Standing::Current).cloned()
}

/// Claims it on every observation in the packet.
fn concludes(work: &Work, view: &View, proposition: closer_contracts::work::Proposition) -> WorkResult {
    let given = work.context_items.iter().map(|item| EvidenceId::new(item.reference.id.as_str()));
    let given = given.filter(|id| view.evidence.contains_key(id));
    let relation = |id| worker::relation(view, deployment::PROPOSITION, &id, Relation::Supports);
    WorkResult {
        assessments: given.map(relation).collect(),
        claims: vec![ProposedClaim { proposition, applicability: vec!["as observed".into()] }],
        ..worker::nothing(work)
    }
}

/// One world: its own space on a copy of the committed records and of the targets, and the packet that it hands out.
pub struct OneWorld {
    space: Space,
    episode: EpisodeId,
    packet: Packet,
    work: Work,
    answer: Arc<Mutex<Option<WorkResult>>>,
}

impl OneWorld {
    /// Begins a world. `withheld` leaves an item out of its packet.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn begin(item: &StudyItem, committed: &Committed, withheld: Option<&ArtifactId>) -> Result<Self, Broken> {
        let mut targets = World::default();
        for (field, value) in &item.inputs {
            targets.set(&item.target, field.as_str(), value.0.clone());
        }
        let answer = Arc::new(Mutex::new(None));
        let given = Arc::clone(&answer);
        let answers = Box::new(move |work: &Work, _: &View| {
            let given = given.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            given.unwrap_or_else(|| worker::nothing(work))
        });
        let mut space = Space::resume(committed.records.clone(), targets, committed.now.clone(), answers)?;
        let episode = space.open(deployment::NEXT)?;
        let Next::Work { participant, role } = space.next(&episode)? else {
            return Err(Broken::Stuck("the episode does not begin with work".into()));
        };
        let view = space.view();
        let opened = view.episodes.get(&episode).ok_or_else(|| Broken::Stuck("the episode is not on record".into()))?;
        let drafted = closer_protocol::work::draft(view, opened, &participant, &role, &committed.now)?;
        let packet = match withheld {
            None => drafted,
            Some(withheld) => withhold(drafted, withheld)?,
        };
        let Body::Work(work) = packet.work.body() else {
            return Err(Broken::Stuck("the packet is no work".into()));
        };
        Ok(Self { work: (**work).clone(), space, episode, packet, answer })
    }

    /// The packet, which is all that the participant is given.
    #[must_use]
    pub const fn work(&self) -> &Work {
        &self.work
    }

    /// What the monitor will judge on.
    #[must_use]
    pub fn state_root(&self) -> Digest {
        self.space.view().state.root()
    }

    /// Issues the packet, takes the participant's answer and carries the episode to its end or to a second question. An
    /// answer that the record does not take gives the codes it was refused by.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn answer(mut self, result: WorkResult, step: &Step) -> Result<Result<Outcome, String>, Broken> {
        let from = self.space.records().len();
        let work = self.space.submission(self.packet.work.clone())?;
        let issued = self.space.submit(Input::Issue { work, disclosure: self.packet.disclosure.clone() })?;
        recorded(&issued)?;
        *self.answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
        for _ in 0..200 {
            let next = self.space.next(&self.episode)?;
            // A second packet would be another question; the first answer's step is what is asked for.
            if matches!(next, Next::Ended | Next::Work { .. }) {
                return outcome::of(&self.space, from, step).map(Ok);
            }
            let (taken, reply) = self.space.advance(&self.episode)?;
            if let (Next::Ask { .. }, Reply::Refused(denials)) = (&taken, &reply) {
                let codes: Vec<&str> = denials.iter().map(|denial| denial.code.as_str()).collect();
                return Ok(Err(codes.join(", ")));
            }
        }
        Err(Broken::Stuck("the episode goes round".into()))
    }
}

fn withhold(packet: Packet, withheld: &ArtifactId) -> Result<Packet, Fault> {
    let mut disclosure = packet.disclosure;
    disclosure.materialized_item_refs.retain(|reference| reference.id != *withheld);
    let mut envelope = packet.work.envelope().clone();
    if let Body::Work(work) = &envelope.body {
        envelope.body = Body::from(packet::without(work, withheld));
    }
    envelope.disclosure = DisclosureRef { id: disclosure.disclosure_id.clone(), digest: digest_of(&disclosure)? };
    Ok(Packet { work: Payload::seal(envelope)?, disclosure })
}
