//! The processes of a run: one that holds the lease, one that may have lost it, and how they die and begin again.

use super::books::Books;
use super::ground::{Shared, Stored};
use super::plan::{Kind, Step};
use super::tampering::Kept;
use super::world::{self, CALM};
use super::{Summary, faults, invariants::Seen};
use crate::space::{Broken, Space};
use closer_contracts::Digest;
use closer_contracts::canonical::hash_parts;
use closer_contracts::id::{EpisodeId, ObligationId};
use closer_contracts::record::Record;
use closer_contracts::refs::Target;
use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;
use closer_protocol::View;
use closer_protocol::entry::Entry;
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_protocol::readback;
use closer_store::{Declined, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Ids that one process gives lie this far from those of the next.
const IDS_APART: u64 = 1_000_000;

/// A run under way.
pub(super) struct Simulation {
    pub(super) seed: u64,
    pub(super) obligations: usize,
    pub(super) shared: Shared,
    /// The process that holds the lease.
    pub(super) leader: Space,
    /// The one that held it before and does not know.
    pub(super) stale: Option<Space>,
    /// Messages on their way.
    pub(super) mail: Vec<Input>,
    /// What the durable records fold to, as read from the disk.
    pub(super) follower: View,
    /// How many records it has folded.
    pub(super) followed: usize,
    /// When somebody else changed each target last.
    pub(super) meddled: BTreeMap<Target, Timestamp>,
    pub(super) seen: Seen,
    /// The newest commit on the disk, for those who bend it.
    pub(super) kept: Option<Kept>,
    /// What the durable movements come to, by an accounting of its own.
    pub(super) books: Books,
    pub(super) restarts: usize,
    processes: u64,
}

impl Simulation {
    /// Founds the space on an empty disk.
    pub(super) fn new(seed: u64, obligations: usize) -> Result<Self, String> {
        let shared = Shared::default();
        shared.open()?;
        let stored = shared.acquire().map_err(|error| error.to_string())?;
        let mut leader = process(seed, stored, View::default())?;
        leader.begin(&world::deployment(obligations)).map_err(|broken| broken.to_string())?;
        for id in (1..=obligations).map(world::obligation).chain([ObligationId::from(CALM)]) {
            leader.world.set(&world::target_of(&format!("p-{id}")), "plan", "as it was founded");
        }
        let mut simulation = Self {
            seed,
            obligations,
            shared,
            leader,
            stale: None,
            mail: Vec::new(),
            follower: View::default(),
            followed: 0,
            meddled: BTreeMap::new(),
            seen: Seen::default(),
            kept: None,
            books: Books::default(),
            restarts: 0,
            processes: 1,
        };
        simulation.flush()?;
        simulation.check()?;
        Ok(simulation)
    }

    /// Takes one step; gives what came of it.
    pub(super) fn take(&mut self, step: Step) -> Result<String, String> {
        let mut rng = step.choices();
        let taken = match step.kind {
            Kind::Event => self.event(&mut rng),
            Kind::Open => self.open(&mut rng),
            Kind::Advance => self.advance(&mut rng),
            Kind::Twice => self.twice(&mut rng),
            Kind::Lose => self.lose(&mut rng),
            Kind::Delay => self.delay(&mut rng),
            Kind::Deliver => self.deliver(&mut rng),
            Kind::Send => self.send(&mut rng),
            Kind::Hear => self.hear(&mut rng),
            Kind::LoseEffects => self.lose_effects(&mut rng),
            Kind::Pass => self.pass(&mut rng),
            Kind::Doubt => Ok(self.doubt()),
            Kind::Misbehave => Ok(self.misbehave(&mut rng)),
            Kind::Behave => Ok(self.behave()),
            Kind::Meddle => self.meddle(&mut rng),
            Kind::Restrict => self.restrict(&mut rng),
            Kind::Reconcile => self.reconcile(&mut rng),
            Kind::Answer => self.answer(&mut rng),
            Kind::Transfer => self.transfer(&mut rng),
            Kind::Forge => self.forge(&mut rng),
            Kind::Deceive => self.deceive(&mut rng),
            Kind::Flush => Ok("flush".to_owned()),
            Kind::Fill => Ok(self.fill(&mut rng)),
            Kind::Free => Ok(self.free()),
            Kind::FailFlush => self.fail_flush(&mut rng),
            Kind::PowerCut => self.cut_power(&mut rng),
            Kind::Kill => self.kill(),
            Kind::TakeOver => self.take_over(&mut rng),
            Kind::Stale => self.go_on_stale(&mut rng),
            Kind::Race => self.race(&mut rng),
            Kind::Compete => self.compete(&mut rng),
        }?;
        self.check_left()?;
        // One step in four leaves what it decided on its way to the disk.
        if step.kind == Kind::Flush || !step.number.is_multiple_of(4) {
            self.flush()?;
        }
        Ok(taken)
    }

    /// Runs something in the leading process. Nothing where the store had no room for it, or the process died of it.
    pub(super) fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Space) -> Result<T, Broken>,
    ) -> Result<Option<T>, String> {
        match work(&mut self.leader) {
            Ok(done) => Ok(Some(done)),
            Err(Broken::Declined(Declined::Store(StoreError::Busy(_) | StoreError::StoreFull))) => {
                self.flush()?;
                self.leader.withdraw();
                Ok(None)
            }
            Err(Broken::Declined(Declined::Store(_)) | Broken::Lost(_)) => {
                self.begin_again()?;
                Ok(None)
            }
            Err(Broken::Declined(Declined::Conflict(conflict))) => {
                Err(format!("the log declined what its only sequencer decided: {conflict:?}"))
            }
            Err(broken @ (Broken::Fault(_) | Broken::Divergence(_) | Broken::Stuck(_))) => Err(broken.to_string()),
        }
    }

    /// Makes everything decided durable, or begins again where the disk refuses.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let flushed = self.shared.flush();
        match flushed && self.leader.land().is_ok() {
            true => self.follow(),
            false => self.begin_again(),
        }
    }

    /// Reads on from the disk, and folds what is there.
    pub(super) fn follow(&mut self) -> Result<(), String> {
        for (record, offered) in self.shared.durable_after(self.followed)? {
            if offered.as_ref() != Some(&record) {
                return Err(format!("record {} on disk is not what was offered", self.followed + 1));
            }
            let entry = Entry::read(&record).map_err(|fault| format!("`{}` does not read: {fault}", record.id))?;
            if let Entry::Commit(commit) = &entry {
                self.kept = Some(Kept { before: self.follower.state.clone(), commit: commit.clone() });
            }
            if let Entry::Ledger(movement) = &entry {
                self.books.enter(movement);
            }
            self.follower.fold(&entry, &record.admitted_at).map_err(|divergence| divergence.to_string())?;
            self.followed += 1;
        }
        Ok(())
    }

    /// Every process is gone; one begins again from what is on the disk.
    pub(super) fn begin_again(&mut self) -> Result<(), String> {
        for _ in 0..3 {
            self.shared.kill();
            self.shared.open()?;
            self.mail.clear();
            self.stale = None;
            self.restarts += 1;
            if self.lead()?.is_some() && self.recover()? {
                return Ok(());
            }
            self.shared.leave_space(None);
        }
        Err("the process cannot begin again".into())
    }

    /// A new process takes the lease; gives the one that had it.
    pub(super) fn lead(&mut self) -> Result<Option<Space>, String> {
        let Ok(stored) = self.shared.acquire() else { return Ok(None) };
        self.follow()?;
        self.seen.go_back_to(&self.follower, self.obligations);
        let mut space = process(self.seed, stored, self.follower.clone())?;
        space.number_ids_from(self.processes * IDS_APART);
        self.processes += 1;
        let moment = self.leader.moment();
        space.set_now(moment.now);
        space.set_clock(moment.clock);
        std::mem::swap(&mut space.world, &mut self.leader.world);
        space.world.forget_slow();
        Ok(Some(std::mem::replace(&mut self.leader, space)))
    }

    /// The new process finds what the one before left; false where that did not become durable.
    pub(super) fn recover(&mut self) -> Result<bool, String> {
        let recovered = self.leader.submit(Input::Recover { running: BTreeSet::new() });
        let landed = recovered.is_ok() && self.shared.flush() && self.leader.land().is_ok();
        if landed {
            self.follow()?;
            self.check_recovered(&BTreeSet::new())?;
        }
        Ok(landed)
    }

    /// Everything behaves, and an obligation that nobody has touched must get closed.
    pub(super) fn come_to_rest(&mut self, history: &mut Vec<String>) -> Result<(), String> {
        self.shared.leave_space(None);
        history.push(self.behave());
        faults::trust(&mut self.leader);
        self.begin_again()?;
        self.attempt(|space| space.pass(2_000))?;
        let under_way: Vec<_> = self.leader.view().under_way.values().cloned().collect();
        for episode_id in under_way {
            self.finish(&episode_id, history)?;
        }
        self.reconcile_all()?;
        self.attempt(|space| space.event(world::CALM_ENTITY, "price"))?;
        for _ in 0..3 {
            let opened = self.attempt(|space| match space.open(CALM) {
                Err(Broken::Stuck(_)) => Ok(None),
                opened => opened.map(Some),
            })?;
            let Some(Some(episode_id)) = opened else { break };
            self.finish(&episode_id, history)?;
            let calm = self.leader.view().state.obligation(&ObligationId::from(CALM)).cloned();
            if calm.is_none_or(|calm| !calm.status.is_open()) {
                return Ok(());
            }
        }
        Err("everything behaves, and the obligation that nobody has touched is not closed".into())
    }

    /// Every attempt that nobody reads back any more is: where a repetition is safe, that settles it.
    fn reconcile_all(&mut self) -> Result<(), String> {
        self.attempt(|space| space.pass(5_000))?;
        for attempt_id in readback::unreconciled(self.leader.view()) {
            self.attempt(|space| space.read_back(&attempt_id))?;
        }
        self.flush()?;
        self.check()?;
        let unsettled = self
            .leader
            .view()
            .attempts
            .values()
            .find(|attempt| !attempt.status.is_settled() && attempt.action.operation.as_str() != world::ONCE);
        match unsettled {
            Some(attempt) => Err(format!(
                "{} is {} though everything behaves and its target was looked at",
                attempt.intent.attempt_id, attempt.status
            )),
            None => Ok(()),
        }
    }

    /// Takes an episode to its end.
    fn finish(&mut self, episode_id: &EpisodeId, history: &mut Vec<String>) -> Result<(), String> {
        for _ in 0..80 {
            let advanced = self.attempt(|space| space.advance(episode_id))?;
            let (next, reply) = advanced.ok_or("an episode was interrupted though everything behaves")?;
            history.push(format!("at rest: {}", super::steps::told(&next, &reply)));
            self.check_left()?;
            self.flush()?;
            self.check()?;
            if next == Next::Ended {
                return Ok(());
            }
            self.attempt(Space::send)?;
            self.flush()?;
        }
        Err(format!("{episode_id} does not come to an end though everything behaves"))
    }

    /// What the run came to.
    pub(super) fn summary(&self) -> Summary {
        let view = self.leader.view();
        let ids = (1..=self.obligations).map(world::obligation);
        let digests: Vec<Digest> = self.leader.records().iter().map(Record::digest).collect();
        let parts: Vec<&[u8]> = digests.iter().map(|digest| digest.raw().as_slice()).collect();
        Summary {
            records: digests.len(),
            effects: self.leader.world.effects().len(),
            attempts: view.attempts.len(),
            refusals: view.refusals,
            closed: ids.filter(|id| view.state.obligation(id).is_none_or(|known| !known.status.is_open())).count(),
            restarts: self.restarts,
            digest: hash_parts("simulation", &parts),
        }
    }

    /// Whether the clock is out of doubt.
    pub(super) fn is_certain_of_time(&self) -> bool {
        self.leader.moment().clock == ClockStanding::Reliable
    }
}

fn process(seed: u64, stored: Stored, view: View) -> Result<Space, String> {
    let mut space = Space::on(Box::new(stored), view, world::participant(seed)).map_err(|broken| broken.to_string())?;
    space.sends_at_once = false;
    Ok(space)
}
