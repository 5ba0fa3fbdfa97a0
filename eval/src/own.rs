//! On your own record: does one committed claim change the next step of the obligations it bears on? Spec: §10.1.
//!
//! Each open obligation whose packet would hold the claim now becomes a pair: the packet as the runtime would draft it, and
//! the same without the claim. Nothing is carried out and nothing is recorded; there is no truth to score against, so that what
//! is told is whether the step changes, never whether it gets better.

use crate::packet::{self, Difference};
use crate::participant::{self, Launch, Participant};
use crate::step::Step;
use closer_contracts::envelope::Body;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, ClaimId, Key, ObligationId};
use closer_contracts::item::{Claim, ItemKind};
use closer_contracts::record::Record;
use closer_contracts::time::Timestamp;
use closer_contracts::work::Work;
use closer_protocol::episode::Next;
use closer_protocol::view::Episode;
use closer_protocol::{View, work};
use closer_scenarios::space::Broken;
use closer_scenarios::{Space, World, worker};
use serde::Serialize;

/// Why a record could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// No claim has this id.
    #[error("no claim `{0}` is accepted")]
    NoClaim(ClaimId),
    /// The record cannot be folded.
    #[error("{0}")]
    Broken(#[from] Broken),
    /// A packet cannot be drafted.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// One obligation, asked with and without the claim.
#[derive(Debug, Clone, Serialize)]
pub struct OwnPair {
    /// The obligation.
    pub obligation_id: ObligationId,
    /// How the packets differ; nobody was asked where it is more than the claim.
    pub difference: Difference,
    /// Whether the pair counts.
    pub valid: bool,
    /// The step with the claim, or why there is none.
    pub with_claim: Option<Result<Step, String>>,
    /// The step without it.
    pub without_claim: Option<Result<Step, String>>,
    /// Whether they are two steps; none where either is missing.
    pub changes: Option<bool>,
}

/// Asks every open obligation that the claim bears on, each packet by a process of its own.
///
/// # Errors
/// [`NotAsked`].
pub fn ask(
    records: &[Record],
    claim: &ClaimId,
    participant: &Participant,
    launch: &Launch,
    seed: u64,
) -> Result<Vec<OwnPair>, NotAsked> {
    let now = records.last().map_or_else(|| Timestamp::from_unix_ms(0), |record| record.admitted_at.clone());
    let resumed =
        || Space::resume(records.to_vec(), World::default(), now.clone(), Box::new(|w, _| worker::nothing(w)));
    let space = resumed()?;
    let accepted = space.view().state.item(ItemKind::Claim, &claim.into());
    let accepted = accepted.and_then(|accepted| accepted.item.as_claim()).cloned();
    let accepted = accepted.ok_or_else(|| NotAsked::NoClaim(claim.clone()))?;
    let open: Vec<ObligationId> =
        space.view().state.open_obligations().map(|open| open.obligation_id.clone()).collect();
    let mut pairs = Vec::new();
    for obligation_id in open {
        if let Some(packet) = drafted(&mut resumed()?, &obligation_id, &now)? {
            pairs.extend(pair(obligation_id, &packet, &accepted, participant, launch, seed));
        }
    }
    Ok(pairs)
}

/// The packet that an obligation's participant would be handed now; none where nobody has ever been asked.
fn drafted(space: &mut Space, obligation_id: &ObligationId, now: &Timestamp) -> Result<Option<Work>, NotAsked> {
    let is_eligible = space.view().eligible.contains_key(obligation_id);
    if is_eligible && !space.view().under_way.contains_key(obligation_id) {
        let episode_id = space.open(obligation_id.as_str())?;
        if let Next::Work { participant, role } = space.next(&episode_id)? {
            let view = space.view();
            let episode = view.episodes.get(&episode_id);
            return episode.map(|episode| packet(view, episode, &participant, &role, now)).transpose();
        }
    }
    let view = space.view();
    let episodes = view.episodes.values().filter(|episode| episode.obligation_id == *obligation_id);
    let asked = episodes.filter_map(|episode| {
        let work = view.works.get(episode.work.last()?)?;
        Some((episode, view.issued_to.get(&work.body.work_id)?, &work.body.role, &work.admitted_at))
    });
    let last = asked.max_by_key(|(_, _, _, at)| (*at).clone());
    last.map(|(episode, recipient, role, _)| packet(view, episode, recipient, role, now)).transpose()
}

fn packet(view: &View, episode: &Episode, recipient: &ActorId, role: &Key, now: &Timestamp) -> Result<Work, NotAsked> {
    let drafted = work::draft(view, episode, recipient, role, now)?;
    let Body::Work(work) = drafted.work.body() else {
        return Err(Fault::schema("the packet is no work").into());
    };
    Ok((**work).clone())
}

/// None where the packet does not hold the claim.
fn pair(
    obligation_id: ObligationId,
    with: &Work,
    claim: &Claim,
    participant: &Participant,
    launch: &Launch,
    seed: u64,
) -> Option<OwnPair> {
    let withheld = ArtifactId::new(claim.claim_id.as_str());
    with.context_items.iter().find(|item| item.reference.id == withheld)?;
    let without = packet::without(with, &withheld);
    let difference = Difference::between(with, &without, Some(claim));
    let valid = difference.is_only(Some(&withheld));
    let step = |work: &Work| {
        let asked = participant::ask(participant, launch, work, seed);
        let bytes = asked.answer.map_err(|(_, reason)| reason)?;
        let answered = participant::read(&bytes, work).map_err(|fault| fault.to_string())?;
        Step::of(&answered.result).map_err(|fault| fault.to_string())
    };
    let (with_claim, without_claim) = match valid {
        true => (Some(step(with)), Some(step(&without))),
        false => (None, None),
    };
    let taken = |step: &Option<Result<Step, String>>| step.clone().and_then(Result::ok);
    let changes = taken(&with_claim).zip(taken(&without_claim)).map(|(with, without)| with != without);
    Some(OwnPair { obligation_id, difference, valid, with_claim, without_claim, changes })
}
