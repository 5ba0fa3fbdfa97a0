//! The calls on record: by id, by the key of their message, by intent, and which episode took each up.

use super::Call;
use crate::view::View;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ArtifactId, DecisionId, EpisodeId, Key, ObligationId};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use closer_state::State;
use imbl::OrdMap;
use std::sync::Arc;

/// A call on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The call.
    pub call: Arc<Call>,
    /// The reference to it.
    pub reference: ArtifactRef,
    /// When it was recorded.
    pub called_at: Timestamp,
}

/// Every call on record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    known: OrdMap<ArtifactId, Known>,
    keyed: OrdMap<Key, ArtifactId>,
    intents: OrdMap<Digest, Vec<ArtifactId>>,
    waiting: OrdMap<ObligationId, Vec<ArtifactId>>,
    taken: OrdMap<EpisodeId, ArtifactId>,
    episodes: OrdMap<ArtifactId, EpisodeId>,
    redeemed: OrdMap<DecisionId, ArtifactId>,
}

impl Calls {
    pub(crate) fn fold(&mut self, call: &Call, reference: ArtifactRef, state: &State, at: &Timestamp) {
        let id = call.call_id.clone();
        if let Some(key) = &call.transport_key {
            self.keyed.insert(key.clone(), id.clone());
        }
        if let Ok(intent) = call.intent(state) {
            self.intents.entry(intent).or_default().push(id.clone());
        }
        if let Some(packet) = &call.redeems {
            self.redeemed.insert(packet.clone(), id.clone());
        }
        self.waiting.entry(call.obligation_id.clone()).or_default().push(id.clone());
        self.known.insert(id, Known { call: Arc::new(call.clone()), reference, called_at: at.clone() });
    }

    /// An episode takes up the call that has waited longest on its obligation, where one waits.
    pub(crate) fn fold_began(&mut self, episode_id: &EpisodeId, obligation_id: &ObligationId) {
        let Some(waiting) = self.waiting.get_mut(obligation_id).filter(|waiting| !waiting.is_empty()) else {
            return;
        };
        let id = waiting.remove(0);
        self.taken.insert(episode_id.clone(), id.clone());
        self.episodes.insert(id, episode_id.clone());
    }

    /// A call by its id.
    #[must_use]
    pub fn get(&self, id: &ArtifactId) -> Option<&Known> {
        self.known.get(id)
    }

    /// The calls that were recorded since a moment.
    pub(crate) fn since(&self, at: &Timestamp) -> impl Iterator<Item = &Known> {
        self.known.values().filter(move |known| known.called_at >= *at)
    }

    /// The call that came under the key of a message.
    pub(crate) fn under(&self, key: &Key) -> Option<&Known> {
        self.known.get(self.keyed.get(key)?)
    }

    /// The calls with an intent, the newest first.
    pub(crate) fn with_intent(&self, intent: Digest) -> impl Iterator<Item = &Known> {
        let ids = self.intents.get(&intent).map(Vec::as_slice).unwrap_or_default();
        ids.iter().rev().filter_map(|id| self.known.get(id))
    }

    /// The call that an episode serves.
    #[must_use]
    pub fn of_episode(&self, episode_id: &EpisodeId) -> Option<&Known> {
        self.known.get(self.taken.get(episode_id)?)
    }

    /// The episode that took a call up.
    #[must_use]
    pub fn episode_of(&self, id: &ArtifactId) -> Option<&EpisodeId> {
        self.episodes.get(id)
    }

    /// The call that redeemed a packet.
    pub(crate) fn redemption_of(&self, packet: &DecisionId) -> Option<&Known> {
        self.known.get(self.redeemed.get(packet)?)
    }

    /// The call that waits longest on an obligation.
    pub(crate) fn next_of(&self, obligation_id: &ObligationId) -> Option<&Known> {
        self.known.get(self.waiting.get(obligation_id)?.first()?)
    }

    /// Whether an artifact is the answer to a packet that a call's episode put on The Bench.
    pub(crate) fn answers_packet_of_call(&self, view: &View, cited: &ArtifactRef) -> bool {
        let mut answered = view.decisions.iter().filter(|(_, given)| given.iter().any(|(known, _)| known == cited));
        answered.any(|(packet_id, _)| {
            let packet = view.packets.get(packet_id);
            let episode = packet.and_then(|packet| packet.packet.payload.envelope().episode_id.clone());
            episode.is_some_and(|episode| self.taken.contains_key(&episode))
        })
    }
}
