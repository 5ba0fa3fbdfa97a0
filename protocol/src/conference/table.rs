//! Everything that is on record of conferences, as one fold. Nothing here decides. Spec: §4.1, DEC-42.

use super::proceeding::{Access, Proceeding, Reach, Release, Report, Seal, What};
use closer_contracts::Payload;
use closer_contracts::conference::{Conference, ConferenceMove, FollowKind, Follows};
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, CoalitionId, ConferenceId, ContextId, EpisodeId, Id, PayloadId, WorkId};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Work, WorkResult};
use imbl::{OrdMap, OrdSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A participant's initial position: the RESULT it answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// The RESULT payload.
    pub payload_id: PayloadId,
    /// Its content digest.
    pub digest: Digest,
    /// What it says.
    pub body: Arc<WorkResult>,
    /// Its place among everything recorded of conferences.
    pub(super) place: u64,
}

impl Position {
    /// The reference to it.
    #[must_use]
    pub fn reference(&self) -> ArtifactRef {
        crate::entry::reference(&self.payload_id, self.digest)
    }
}

/// A record of a conference: its reference, its content and its place among them all.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<T> {
    /// The reference to it.
    pub reference: ArtifactRef,
    /// What it says.
    pub body: Arc<T>,
    pub(super) place: u64,
}

/// One conference and how far it has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Its contract.
    pub contract: Arc<Conference>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The work that each seat was asked with.
    pub asked: OrdMap<ActorId, WorkId>,
    /// The positions that came back.
    pub positions: OrdMap<ActorId, Position>,
    /// The seal, once there is one.
    pub seal: Option<Placed<Seal>>,
    /// The release, once there is one.
    pub release: Option<Placed<Release>>,
    /// The moves, in order.
    pub moves: imbl::Vector<Placed<ConferenceMove>>,
    /// The report, once it is over.
    pub report: Option<Placed<Report>>,
    /// How many passes of moves have begun.
    pub pass: u32,
    /// The last turn of everybody who was asked for a move.
    pub turned: OrdMap<ActorId, Turned>,
    /// The work whose answer failed.
    pub failed: OrdSet<WorkId>,
    /// Whether something of it was seen before its release.
    pub leaked: bool,
    /// Whether another conference has taken its place.
    pub replaced: bool,
    pub(super) place: u64,
}

impl Round {
    /// The coalition that its work names.
    #[must_use]
    pub fn coalition(&self) -> CoalitionId {
        CoalitionId::new(self.contract.conference_id.as_str())
    }

    /// Whether everybody was asked: before that, nobody's answer counts.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.contract.seats.iter().all(|seat| self.asked.contains_key(&seat.actor))
    }

    /// The ids of its subjects, and of what moves have narrowed them to.
    #[must_use]
    pub fn subject_ids(&self) -> BTreeSet<Id> {
        let narrowed = self.moves.iter().filter_map(|made| made.body.narrowed.as_ref());
        let declared = self.contract.subjects.iter().map(closer_contracts::conference::Subject::id);
        declared.chain(narrowed.map(|proposition| (&proposition.proposition_id).into())).collect()
    }

    /// What was said of this subject by this digest.
    pub fn moves_on<'a>(&'a self, subject: &'a [Digest]) -> impl Iterator<Item = &'a Placed<ConferenceMove>> {
        self.moves.iter().filter(move |made| subject.contains(&made.body.subject))
    }
}

/// A participant's turn to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// In which pass, from 1.
    pub pass: u32,
    /// The work that it was asked with.
    pub work_id: WorkId,
    /// When it was asked.
    pub asked_at: Timestamp,
    pub(super) place: u64,
}

/// A position of another that a context has seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) conference_id: ConferenceId,
    pub(super) item: ArtifactRef,
    pub(super) reach: Reach,
    pub(super) place: u64,
}

/// Every conference on record, and what every context has seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    rounds: OrdMap<ConferenceId, Arc<Round>>,
    of_episode: OrdMap<EpisodeId, ConferenceId>,
    works: OrdMap<WorkId, (ConferenceId, ActorId)>,
    sealed: OrdSet<ConferenceId>,
    movers: OrdMap<Digest, ActorId>,
    seen: OrdMap<ContextId, imbl::Vector<Seen>>,
    derives: OrdMap<ContextId, OrdSet<ContextId>>,
    placed: u64,
}

impl Table {
    /// The conference with this id.
    #[must_use]
    pub fn round(&self, id: &ConferenceId) -> Option<&Arc<Round>> {
        self.rounds.get(id)
    }

    /// Every conference whose positions are not released.
    pub fn unreleased(&self) -> impl Iterator<Item = &Arc<Round>> {
        self.sealed.iter().filter_map(|id| self.rounds.get(id))
    }

    /// Every conference.
    pub fn rounds(&self) -> impl Iterator<Item = &Arc<Round>> {
        self.rounds.values()
    }

    /// The newest conference of an episode.
    #[must_use]
    pub fn of_episode(&self, id: &EpisodeId) -> Option<&Arc<Round>> {
        self.rounds.get(self.of_episode.get(id)?)
    }

    /// The conference and participant that a unit of work belongs to.
    #[must_use]
    pub fn of_work(&self, id: &WorkId) -> Option<(&Arc<Round>, &ActorId)> {
        let (conference, actor) = self.works.get(id)?;
        Some((self.rounds.get(conference)?, actor))
    }

    /// Who made the move that a reference names.
    #[must_use]
    pub fn author_of(&self, reference: &ArtifactRef) -> Option<ActorId> {
        self.movers.get(&reference.digest).cloned()
    }

    /// How much is on record of conferences.
    #[must_use]
    pub const fn placed(&self) -> u64 {
        self.placed
    }

    /// The conference that a coalition is of.
    #[must_use]
    pub fn of_coalition(&self, id: &CoalitionId) -> Option<&Arc<Round>> {
        self.rounds.get(&ConferenceId::new(id.as_str()))
    }

    /// The context and everything it derives from.
    #[must_use]
    pub fn ancestry(&self, context: &ContextId) -> BTreeSet<ContextId> {
        let mut known = BTreeSet::from([context.clone()]);
        let mut open = vec![context.clone()];
        while let Some(next) = open.pop() {
            for parent in self.derives.get(&next).into_iter().flatten() {
                if known.insert(parent.clone()) {
                    open.push(parent.clone());
                }
            }
        }
        known
    }

    /// What a context has seen of others on any of these subjects, what it inherits included.
    pub(super) fn seen_on<'a>(&'a self, context: &ContextId, subjects: &'a BTreeSet<Id>) -> Vec<&'a Seen> {
        let contexts = self.ancestry(context);
        let seen = contexts.iter().filter_map(|context| self.seen.get(context)).flatten();
        seen.filter(|seen| {
            let about = self.rounds.get(&seen.conference_id).map(|round| round.subject_ids()).unwrap_or_default();
            seen.reach != Reach::Refused && about.iter().any(|subject| subjects.contains(subject))
        })
        .collect()
    }

    /// Whether something leaked in this conference or in one that it is a rebase of.
    pub(super) fn leaked(&self, id: &ConferenceId) -> bool {
        let mut at = Some(id.clone());
        let mut steps = 0;
        while let Some(round) = at.take().and_then(|id| self.rounds.get(&id)) {
            if round.leaked {
                return true;
            }
            steps += 1;
            at = match &round.contract.follows {
                Some(Follows { kind: FollowKind::Rebase, conference_id }) if steps <= self.rounds.len() => {
                    Some(conference_id.clone())
                }
                Some(_) | None => None,
            };
        }
        false
    }

    const fn next_place(&mut self) -> u64 {
        self.placed += 1;
        self.placed
    }

    pub(crate) fn fold_contract(&mut self, contract: &Conference, opened_at: &Timestamp) {
        for seat in &contract.seats {
            let parents = self.derives.entry(seat.context.clone()).or_default();
            parents.extend(seat.derives_from.iter().cloned());
        }
        let round = Round {
            contract: Arc::new(contract.clone()),
            opened_at: opened_at.clone(),
            asked: OrdMap::new(),
            positions: OrdMap::new(),
            seal: None,
            release: None,
            moves: imbl::Vector::new(),
            report: None,
            pass: 0,
            turned: OrdMap::new(),
            failed: OrdSet::new(),
            leaked: false,
            replaced: false,
            place: self.next_place(),
        };
        let replaced = contract.follows.as_ref().and_then(|follows| self.rounds.get_mut(&follows.conference_id));
        if let Some(replaced) = replaced {
            Arc::make_mut(replaced).replaced = true;
        }
        self.sealed.insert(contract.conference_id.clone());
        self.of_episode.insert(contract.episode_id.clone(), contract.conference_id.clone());
        self.rounds.insert(contract.conference_id.clone(), Arc::new(round));
    }

    pub(crate) fn fold_work(&mut self, work: &Work, recipient: Option<&ActorId>, asked_at: &Timestamp) {
        let id = ConferenceId::new(work.coalition_ref.as_str());
        let place = self.placed + 1;
        let (Some(round), Some(recipient)) = (self.rounds.get_mut(&id).map(Arc::make_mut), recipient) else {
            return;
        };
        self.works.insert(work.work_id.clone(), (id, recipient.clone()));
        if work.output_contract_ref != crate::work::move_contract() {
            round.asked.insert(recipient.clone(), work.work_id.clone());
            return;
        }
        self.placed = place;
        let asked_before = round.turned.get(recipient).is_some_and(|turned| turned.pass == round.pass);
        round.pass += u32::from(round.pass == 0 || asked_before);
        let (work_id, asked_at) = (work.work_id.clone(), asked_at.clone());
        round.turned.insert(recipient.clone(), Turned { pass: round.pass, work_id, asked_at, place });
    }

    pub(crate) fn fold_failure(&mut self, work_id: &WorkId) {
        let round = self.works.get(work_id).and_then(|(id, _)| self.rounds.get_mut(id));
        if let Some(round) = round {
            Arc::make_mut(round).failed.insert(work_id.clone());
        }
    }

    pub(crate) fn fold_result(&mut self, payload: &Payload, body: &Arc<WorkResult>) {
        let Some((id, actor)) = self.works.get(&body.work_id).cloned() else {
            return;
        };
        let position = Position {
            payload_id: payload.id().clone(),
            digest: payload.content_digest(),
            body: body.clone(),
            place: self.next_place(),
        };
        if let Some(round) = self.rounds.get_mut(&id) {
            Arc::make_mut(round).positions.insert(actor, position);
        }
    }

    pub(crate) fn fold_move(&mut self, body: &ConferenceMove, reference: ArtifactRef) {
        let place = self.next_place();
        self.movers.insert(reference.digest, body.actor.clone());
        if let Some(round) = self.rounds.get_mut(&body.conference_id) {
            Arc::make_mut(round).moves.push_back(Placed { reference, body: Arc::new(body.clone()), place });
        }
    }

    pub(crate) fn fold_proceeding(&mut self, proceeding: &Proceeding, reference: ArtifactRef) {
        let place = self.next_place();
        let Some(round) = self.rounds.get_mut(&proceeding.conference_id).map(Arc::make_mut) else {
            return;
        };
        match &proceeding.what {
            What::Sealed(seal) => round.seal = Some(Placed { reference, body: Arc::new(seal.clone()), place }),
            What::Concluded(report) => round.report = Some(Placed { reference, body: Arc::new(report.clone()), place }),
            What::Released(release) => {
                self.sealed.remove(&proceeding.conference_id);
                let seats = round.contract.seats.clone();
                round.release = Some(Placed { reference, body: Arc::new(release.clone()), place });
                for seat in seats.iter().filter(|seat| release.contexts.contains(&seat.context)) {
                    for position in release.positions.iter().filter(|position| position.actor != seat.actor) {
                        self.see(&proceeding.conference_id, &seat.context, &position.position, Reach::Seen, place);
                    }
                }
            }
            What::Accessed(access) => {
                // After the release there is nothing left to leak: it is seen, and no more.
                let reach = match (access.reach, &round.release) {
                    (Reach::Leaked, Some(_)) => Reach::Seen,
                    (reach, _) => reach,
                };
                round.leaked |= reach == Reach::Leaked;
                let Access { context, item, .. } = access;
                self.see(&proceeding.conference_id, context, item, reach, place);
            }
        }
    }

    fn see(&mut self, id: &ConferenceId, context: &ContextId, item: &ArtifactRef, reach: Reach, place: u64) {
        let seen = Seen { conference_id: id.clone(), item: item.clone(), reach, place };
        self.seen.entry(context.clone()).or_default().push_back(seen);
    }
}
