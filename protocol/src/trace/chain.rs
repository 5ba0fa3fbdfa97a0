//! The records that traces run through, by what they are cited by, each with its place in the log.

use crate::entry::{Activation, ActivationEntry, ArtifactBody, Entry, Fired, Intent};
use crate::view::wakes;
use closer_contracts::Payload;
use closer_contracts::audit::{CommitReceipt, ReconciliationReceipt};
use closer_contracts::auth::{AuthRecord, SigningScope};
use closer_contracts::canonical;
use closer_contracts::delta::Change;
use closer_contracts::digest::Digest;
use closer_contracts::envelope::Body;
use closer_contracts::id::{
    ActionId, ActorId, AttemptId, DecisionId, DeltaId, EpisodeId, EventId, EvidenceId, GrantId, Id, Key, ObligationId,
    PayloadId, ReentryId, Text, WorkId,
};
use closer_contracts::item::Item;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{Refusal, RefusalCode};
use closer_state::Commit;
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

/// A record and its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Located<T> {
    pub(super) position: u64,
    pub(super) content: T,
}

type By<K, T> = OrdMap<K, Located<T>>;

/// Everything that traces run through. Built by folding entries in log order; a clone is cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    position: u64,
    payloads: By<PayloadId, Arc<Payload>>,
    events: OrdMap<EventId, PayloadId>,
    works: OrdMap<WorkId, PayloadId>,
    proposed: OrdMap<ActionId, PayloadId>,
    acted: OrdSet<EpisodeId>,
    evidence: OrdMap<EvidenceId, PayloadId>,
    readbacks: OrdMap<AttemptId, PayloadId>,
    deltas: OrdMap<DeltaId, PayloadId>,
    versions: OrdMap<DecisionId, Vec<PayloadId>>,
    pub(super) artifacts: By<Digest, Arc<ArtifactBody>>,
    pub(super) auths: By<Digest, Id>,
    pub(super) activations: By<EpisodeId, Activation>,
    pub(super) fired: By<(ReentryId, Digest), Fired>,
    pub(super) intents: By<AttemptId, Arc<Intent>>,
    pub(super) commits: By<u64, Arc<Commit>>,
    pub(super) grants: OrdMap<GrantId, u64>,
    receipts: OrdMap<u64, Digest>,
    reconciled: OrdMap<Digest, Vec<Digest>>,
    pub(super) refused: By<Text, Refusal>,
    pub(super) notices: By<Key, ()>,
}

impl Chain {
    /// The chain of these entries, in log order.
    #[must_use]
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut chain = Self::default();
        entries.into_iter().for_each(|entry| chain.fold(entry));
        chain
    }

    /// Folds the next entry of the log.
    pub fn fold(&mut self, entry: &Entry) {
        self.position += 1;
        match entry {
            Entry::Payload(payload) => self.fold_payload(payload),
            Entry::Artifact(artifact) => self.fold_artifact(artifact),
            Entry::Auth(auth) => self.fold_auth(auth),
            Entry::Activation(ActivationEntry::Began(began)) => {
                let located = self.located(began.clone());
                self.activations.insert(began.episode_id.clone(), located);
            }
            Entry::Activation(ActivationEntry::Fired(fired)) => {
                if let (Some(reentry), Some(key)) = (&fired.cause.reentry_id, fired.cause.activation_key) {
                    let located = self.located(fired.clone());
                    self.fired.insert((reentry.clone(), key), located);
                }
            }
            Entry::Intent(intent) => {
                let located = self.located(intent.clone());
                self.intents.insert(intent.attempt_id.clone(), located);
            }
            Entry::Commit(commit) => self.fold_commit(commit),
            Entry::Refusal(refusal) => self.fold_refusal(refusal),
            Entry::Notice(notice) => {
                let located = self.located(());
                self.notices.insert(notice.key.clone(), located);
            }
            Entry::Activation(ActivationEntry::Ended(_))
            | Entry::Genesis(_)
            | Entry::Outcome(_)
            | Entry::Ledger(_)
            | Entry::Ownership(_)
            | Entry::Passed => {}
        }
    }

    const fn located<T>(&self, content: T) -> Located<T> {
        Located { position: self.position, content }
    }

    fn fold_payload(&mut self, payload: &Arc<Payload>) {
        let id = payload.id().clone();
        match payload.body() {
            Body::Event(body) => drop(self.events.insert(body.event_id.clone(), id.clone())),
            Body::Work(body) => drop(self.works.insert(body.work_id.clone(), id.clone())),
            Body::Action(body) => {
                self.proposed.entry(body.action_id.clone()).or_insert_with(|| id.clone());
                self.acted.extend(payload.envelope().episode_id.clone());
            }
            Body::Evidence(body) => {
                if let Some(readback) = &body.readback {
                    self.readbacks.insert(readback.attempt_id.clone(), id.clone());
                }
                self.evidence.insert(body.evidence_id.clone(), id.clone());
            }
            Body::Delta(body) => drop(self.deltas.insert(body.delta_id.clone(), id.clone())),
            Body::Briefcase(body) => self.versions.entry(body.decision_id.clone()).or_default().push(id.clone()),
            Body::Obligation(_)
            | Body::Route(_)
            | Body::Result(_)
            | Body::Adjudication(_)
            | Body::Reentry(_)
            | Body::Handoff(_) => {}
        }
        let located = self.located(payload.clone());
        self.payloads.insert(id, located);
    }

    fn fold_artifact(&mut self, artifact: &Arc<ArtifactBody>) {
        let is_cited = matches!(
            **artifact,
            ArtifactBody::CommitReceipt(_)
                | ArtifactBody::ReconciliationReceipt(_)
                | ArtifactBody::MatchReceipt(_)
                | ArtifactBody::UserDecision(_)
                | ArtifactBody::RestrictionStatement(_)
        );
        let Some(digest) = is_cited.then(|| artifact.digest().ok()).flatten() else {
            return;
        };
        if let ArtifactBody::CommitReceipt(receipt) = &**artifact {
            self.receipts.insert(receipt.after_state.version, digest);
        }
        if let ArtifactBody::ReconciliationReceipt(receipt) = &**artifact {
            self.reconciled.entry(receipt.urgent_commit_ref.digest).or_default().push(digest);
        }
        let located = self.located(artifact.clone());
        self.artifacts.insert(digest, located);
    }

    fn fold_auth(&mut self, auth: &AuthRecord) {
        let restricts = auth.scope == SigningScope::RestrictionStatement;
        if let (true, Ok(digest)) = (restricts, canonical::digest_of(auth)) {
            let located = self.located(auth.subject_id.clone());
            self.auths.insert(digest, located);
        }
    }

    fn fold_commit(&mut self, commit: &Arc<Commit>) {
        for change in &commit.delta.changes {
            if let Change::Add { item } = change
                && let Item::Grant(grant) = &**item
            {
                self.grants.insert(grant.grant_id.clone(), commit.version);
            }
        }
        let located = self.located(commit.clone());
        self.commits.insert(commit.version, located);
    }

    fn fold_refusal(&mut self, refusal: &Refusal) {
        let restricted = matches!(refusal.code, RefusalCode::Restricted | RefusalCode::GrantRevoked);
        if let (true, Some(offending)) = (restricted, &refusal.offending) {
            let located = self.located(refusal.clone());
            self.refused.entry(offending.clone()).or_insert(located);
        }
    }

    /// The position after everything folded: what is checked now would come next.
    pub(super) const fn next(&self) -> u64 {
        self.position + 1
    }

    pub(super) fn payload(&self, id: &PayloadId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(id)
    }

    /// The body of the payload on record under this id.
    pub(crate) fn body(&self, id: &PayloadId) -> Option<&Body> {
        self.payloads.get(id).map(|located| located.content.body())
    }

    /// The payload on record under this id.
    pub(crate) fn on_record(&self, id: &PayloadId) -> Option<&Payload> {
        self.payloads.get(id).map(|located| &*located.content)
    }

    /// Every payload, in the order of the log: what a payload follows from comes before it.
    pub(crate) fn in_order(&self) -> Vec<&Payload> {
        let mut payloads: Vec<_> = self.payloads.values().collect();
        payloads.sort_by_key(|located| located.position);
        payloads.into_iter().map(|located| &*located.content).collect()
    }

    /// Whether a payload or receipt is on record under this id, with this digest.
    pub(crate) fn holds(&self, reference: &ArtifactRef) -> bool {
        let artifact =
            self.artifacts.get(&reference.digest).is_some_and(|located| located.content.id() == reference.id);
        artifact || self.cited(reference).is_some()
    }

    /// Who produced the payload that a reference names, or gave the decision that it names.
    pub(crate) fn author_of(&self, reference: &ArtifactRef) -> Option<ActorId> {
        if let Some(located) = self.cited(reference) {
            return Some(located.content.envelope().producer.actor_id.clone());
        }
        let located = self.artifacts.get(&reference.digest).filter(|located| located.content.id() == reference.id)?;
        if let ArtifactBody::UserDecision(decision) = &*located.content {
            return Some(decision.authenticated_issuer.identity.clone());
        }
        None
    }

    /// The payload that a reference names by its payload id and content digest.
    pub(super) fn cited(&self, reference: &ArtifactRef) -> Option<&Located<Arc<Payload>>> {
        let located = self.payloads.get(&PayloadId::new(reference.id.as_str()))?;
        (located.content.content_digest() == reference.digest).then_some(located)
    }

    pub(super) fn event(&self, id: &EventId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.events.get(id)?)
    }

    pub(super) fn work(&self, id: &WorkId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.works.get(id)?)
    }

    /// The first ACTION with this id: the proposal, before any further attempt at it.
    pub(super) fn proposal(&self, id: &ActionId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.proposed.get(id)?)
    }

    pub(super) fn evidence(&self, id: &EvidenceId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.evidence.get(id)?)
    }

    pub(super) fn readback(&self, id: &AttemptId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.readbacks.get(id)?)
    }

    pub(super) fn delta(&self, id: &DeltaId) -> Option<&Located<Arc<Payload>>> {
        self.payloads.get(self.deltas.get(id)?)
    }

    /// The version of a packet that a decision names by the packet's decision id and the version's digest.
    pub(super) fn packet(&self, reference: &ArtifactRef) -> Option<&Located<Arc<Payload>>> {
        let versions = self.versions.get(&DecisionId::new(reference.id.as_str()))?.iter();
        versions
            .filter_map(|id| self.payloads.get(id))
            .find(|located| located.content.content_digest() == reference.digest)
    }

    /// Whether a decision on record cites the version of its packet that was the newest when it was recorded (DEC-58).
    #[must_use]
    pub fn cites_current_packet(&self, decision_ref: &ArtifactRef, packet_ref: &ArtifactRef) -> bool {
        let Some(decided) = self.artifacts.get(&decision_ref.digest) else {
            return false;
        };
        let versions = self.versions.get(&DecisionId::new(packet_ref.id.as_str())).into_iter().flatten();
        let before =
            versions.filter_map(|id| self.payloads.get(id)).filter(|located| located.position < decided.position);
        before
            .max_by_key(|located| located.position)
            .is_some_and(|newest| newest.content.content_digest() == packet_ref.digest)
    }

    /// The receipt of a version, with its digest and place.
    pub(super) fn receipt(&self, version: u64) -> Option<(&CommitReceipt, Digest, u64)> {
        let digest = *self.receipts.get(&version)?;
        let located = self.artifacts.get(&digest)?;
        if let ArtifactBody::CommitReceipt(receipt) = &*located.content {
            return Some((receipt, digest, located.position));
        }
        None
    }

    /// The reviews of an urgent receipt, in order, with their digests and places.
    pub(super) fn reconciliations(&self, urgent: Digest) -> Vec<(&ReconciliationReceipt, Digest, u64)> {
        let digests = self.reconciled.get(&urgent).into_iter().flatten();
        digests
            .filter_map(|digest| {
                let located = self.artifacts.get(digest)?;
                if let ArtifactBody::ReconciliationReceipt(receipt) = &*located.content {
                    return Some((&**receipt, *digest, located.position));
                }
                None
            })
            .collect()
    }

    /// The newest commit that made an obligation eligible by invalidating what it relies on.
    pub(super) fn invalidation(&self, obligation_id: &ObligationId, reason: &Text) -> Option<&Located<Arc<Commit>>> {
        let woke = |commit: &Commit| wakes(commit).iter().any(|(id, why)| id == obligation_id && why == reason);
        self.commits.values().rev().find(|located| woke(&located.content))
    }

    /// Whether an action was proposed in the episode: what its delta then follows from is a post-outcome judgment.
    pub(super) fn acted(&self, episode_id: Option<&EpisodeId>) -> bool {
        episode_id.is_some_and(|episode_id| self.acted.contains(episode_id))
    }
}
