//! Faults of targets, clock, disk and processes.

use super::machine::Simulation;
use super::world::{one_of, target_of};
use crate::space::{Broken, Space};
use crate::world::Mode;
use closer_contracts::record::Conflict;
use closer_monitor::ClockStanding;
use closer_protocol::episode;
use closer_store::Declined;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// The clock is out of doubt, and every target behaves.
pub(super) fn trust(space: &mut Space) {
    (space.world.effect_mode, space.world.observe_mode) = (Mode::Normal, Mode::Normal);
    space.set_clock(ClockStanding::Reliable);
}

impl Simulation {
    pub(super) fn misbehave(&mut self, rng: &mut Rng) -> String {
        let effects = [
            Mode::AppliedUnanswered,
            Mode::LostUnanswered,
            Mode::AnsweredNotApplied,
            Mode::NotSent,
            Mode::Slow,
            Mode::Slow,
        ];
        let looks = [Mode::Lagging, Mode::Lagging, Mode::WrongAccount, Mode::Unavailable];
        let world = &mut self.leader.world;
        match rng.random_range(0..3) {
            0 => world.effect_mode = one_of(rng, &effects).unwrap_or(Mode::Normal),
            1 => world.observe_mode = one_of(rng, &looks).unwrap_or(Mode::Normal),
            _ => (world.effect_mode, world.observe_mode) = (Mode::AppliedUnanswered, Mode::Lagging),
        }
        format!("effects {}, looks {}", world.effect_mode, world.observe_mode)
    }

    pub(super) fn behave(&mut self) -> String {
        trust(&mut self.leader);
        "everything behaves".into()
    }

    pub(super) fn doubt(&mut self) -> String {
        self.leader.set_clock(ClockStanding::Unreliable);
        "the clock is in doubt".into()
    }

    /// Somebody else changes a target; often the observer sees it, and what it shows is on record.
    pub(super) fn meddle(&mut self, rng: &mut Rng) -> Result<String, String> {
        let number = self.number(rng);
        let target = target_of(&format!("p-o-{number}"));
        self.leader.world.set(&target, "plan", "somebody else's");
        self.meddled.insert(target.clone(), self.leader.moment().now);
        let seen = rng.random_bool(0.6);
        if seen {
            self.attempt(|space| space.observe(&target, Some(&format!("o-{number}"))))?;
        }
        Ok(format!("somebody else changed target {number}{}", if seen { ", and it is seen" } else { "" }))
    }

    pub(super) fn lose_effects(&mut self, rng: &mut Rng) -> Result<String, String> {
        if rng.random_bool(0.5) {
            self.leader.world.effect_mode = Mode::Slow;
            self.until(rng, |space| space.world.slow().next().is_some())?;
        }
        self.flush()?;
        let running = self.leader.world.slow().map(|action| action.attempt_id.clone()).collect();
        let lost = self.attempt(Space::lose_effects)?;
        if lost.is_some() {
            self.check_recovered(&running)?;
        }
        Ok("what had not left is forgotten".into())
    }

    /// Takes episodes on until something is so, but not for long.
    pub(super) fn until(&mut self, rng: &mut Rng, reached: impl Fn(&Space) -> bool) -> Result<(), String> {
        for _ in 0..12 {
            if reached(&self.leader) {
                return Ok(());
            }
            self.advance(rng)?;
            self.check_left()?;
            self.flush()?;
            self.check()?;
        }
        Ok(())
    }

    pub(super) fn fill(&mut self, rng: &mut Rng) -> String {
        self.shared.leave_space(Some(rng.random_range(0..3_000_000)));
        "the disk runs full".into()
    }

    pub(super) fn free(&mut self) -> String {
        self.shared.leave_space(None);
        "the disk has space".into()
    }

    /// One of the next flushes fails. What it should have made durable may be readable, and never will be durable.
    pub(super) fn fail_flush(&mut self, rng: &mut Rng) -> Result<String, String> {
        self.shared.fail_sync_after(rng.random_range(0..2));
        self.flush()?;
        Ok("a flush fails".into())
    }

    /// The power goes in the middle of a flush, before one, or after.
    pub(super) fn cut_power(&mut self, rng: &mut Rng) -> Result<String, String> {
        let when = rng.random_range(0..3);
        if when == 1 {
            self.shared.fail_sync_after(rng.random_range(0..2));
        }
        if when > 0 {
            self.shared.flush();
        }
        let (torn, kept) = (rng.random_bool(0.5), rng.random_range(0..100));
        let mut mix = rng.clone();
        self.shared.cut_power(&mut |index, count| match torn {
            true => index * 100 < count * kept,
            false => mix.random_range(0..100) < kept,
        });
        self.begin_again()?;
        Ok(format!("{} records were there", self.followed))
    }

    pub(super) fn kill(&mut self) -> Result<String, String> {
        self.begin_again()?;
        Ok(format!("{} records were there", self.followed))
    }

    /// Another sequencer reads the log and takes the lease. What its predecessor had submitted becomes durable first.
    pub(super) fn take_over(&mut self, rng: &mut Rng) -> Result<String, String> {
        // Best while an effect is about to leave.
        self.until(rng, |space| !space.running().is_empty())?;
        self.flush()?;
        match self.lead()? {
            Some(before) => self.stale = Some(before),
            None => return Ok("the lease cannot be taken".into()),
        }
        if !self.recover()? {
            self.begin_again()?;
        }
        Ok("another sequencer leads".into())
    }

    /// The sequencer that has lost the lease goes on as if it had not. Nothing of that may land, and no effect leave.
    pub(super) fn go_on_stale(&mut self, rng: &mut Rng) -> Result<String, String> {
        let Some(mut stale) = self.stale.take() else { return Ok("no sequencer is stale".into()) };
        std::mem::swap(&mut stale.world, &mut self.leader.world);
        let before = stale.world.effects().len();
        let under_way: Vec<_> = stale.view().under_way.values().cloned().collect();
        let openable = episode::openable(stale.view());
        let drawn = if stale.running().is_empty() { rng.random_range(0..4) } else { 0 };
        let done = match drawn {
            0 => stale.send(),
            1 => stale.event("entity-1", "price").map(|_| ()),
            2 => one_of(rng, &openable).map_or(Ok(()), |id| stale.open(id.as_str()).map(|_| ())),
            _ => one_of(rng, &under_way).map_or(Ok(()), |id| stale.advance(&id).map(|_| ())),
        };
        let left = stale.world.effects().len() - before;
        std::mem::swap(&mut stale.world, &mut self.leader.world);
        if left > 0 {
            return Err(format!("{left} effects left a sequencer that had lost the lease"));
        }
        match done {
            Ok(()) => {
                self.stale = Some(stale);
                Ok("it still believes that it leads".into())
            }
            Err(Broken::Declined(Declined::Conflict(Conflict::Epoch { .. }))) => {
                Ok("it learns that it is fenced".into())
            }
            Err(broken) => Ok(format!("it is gone: {broken}")),
        }
    }
}
