//! The runtime's one clock, guarded never to run backwards (DEC-59).
//!
//! The caller keeps the newest time on record, which the log holds anyway, and hands it in at the start. A step of the
//! wall clock beyond the bounds makes the clock unreliable: it goes on at the pace of the machine's monotonic clock, and
//! nothing that depends on time is permitted until the wall clock is plausible again.

use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;
use closer_protocol::port::Clock;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Which steps of the wall clock are plausible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockBounds {
    /// How far it may fall behind the newest time given, in milliseconds. Default 2 s.
    pub backwards_ms_max: u64,
    /// How far it may run ahead of the machine's monotonic clock between two looks, in milliseconds. A suspended machine
    /// looks the same. Default 1 day.
    pub forwards_ms_max: u64,
    /// How far it may have moved on since the newest time on record when the runtime starts, in milliseconds. Default
    /// 366 days.
    pub forwards_at_start_ms_max: u64,
}

impl Default for ClockBounds {
    fn default() -> Self {
        Self {
            backwards_ms_max: 2_000,
            forwards_ms_max: 24 * 3_600_000,
            forwards_at_start_ms_max: 366 * 24 * 3_600_000,
        }
    }
}

/// The last time given and the reading of the monotonic clock that goes with it.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    given_ms: i64,
    monotonic_ms: u64,
    /// Whether anything has been given since the start; before, the bound for starting holds.
    started: bool,
}

impl Anchor {
    /// The next time to give, from readings of both clocks. Pure.
    fn advance(self, wall_ms: i64, monotonic_ms: u64, bounds: &ClockBounds) -> (Self, ClockStanding) {
        let elapsed_ms = monotonic_ms.saturating_sub(self.monotonic_ms);
        let expected_ms = self.given_ms.saturating_add(i64::try_from(elapsed_ms).unwrap_or(i64::MAX));
        let ahead_max_ms = match self.started {
            true => bounds.forwards_ms_max,
            false => bounds.forwards_at_start_ms_max,
        };
        let behind = self.given_ms > wall_ms && self.given_ms.abs_diff(wall_ms) > bounds.backwards_ms_max;
        let ahead = wall_ms > expected_ms && wall_ms.abs_diff(expected_ms) > ahead_max_ms;
        let (given_ms, standing) = match behind || ahead {
            true => (expected_ms, ClockStanding::Unreliable),
            false => (wall_ms.max(self.given_ms), ClockStanding::Reliable),
        };
        // Until the first plausible reading, the bound for starting goes on to hold.
        let started = self.started || standing == ClockStanding::Reliable;
        let next = Self { given_ms, monotonic_ms, started };
        (next, standing)
    }
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    bounds: ClockBounds,
    origin: Instant,
    anchor: Mutex<Anchor>,
}

impl SystemClock {
    /// Starts from the newest time on record; `None` where nothing is on record yet.
    #[must_use]
    pub fn start(bounds: ClockBounds, last: Option<&Timestamp>) -> Self {
        let given_ms = last.map_or_else(wall_ms, Timestamp::unix_ms);
        let anchor = Anchor { given_ms, monotonic_ms: 0, started: false };
        Self { bounds, origin: Instant::now(), anchor: Mutex::new(anchor) }
    }
}

fn wall_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

impl Clock for SystemClock {
    fn now(&self) -> (Timestamp, ClockStanding) {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let monotonic_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (next, standing) = anchor.advance(wall_ms(), monotonic_ms, &self.bounds);
        *anchor = next;
        (Timestamp::from_unix_ms(next.given_ms), standing)
    }
}

/// A clock that moves only when told to, for tests and rehearsals.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(Timestamp, ClockStanding)>,
}

impl ManualClock {
    /// Stands still at `now`, reliably.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { state: Mutex::new((now, ClockStanding::Reliable)) }
    }

    /// Moves on.
    pub fn advance_ms(&self, duration_ms: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.plus_ms(duration_ms);
    }

    /// Says whether it can be trusted from here on.
    pub fn stand(&self, standing: ClockStanding) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = standing;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> (Timestamp, ClockStanding) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClockStanding::{Reliable, Unreliable};

    const BOUNDS: ClockBounds =
        ClockBounds { backwards_ms_max: 100, forwards_ms_max: 1_000, forwards_at_start_ms_max: 10_000 };

    /// Readings of (wall, monotonic) and what must be given for each, from 50,000 on record.
    fn check(readings: &[(i64, u64, i64, ClockStanding)]) {
        let mut anchor = Anchor { given_ms: 50_000, monotonic_ms: 0, started: false };
        for (step, &(wall_ms, monotonic_ms, given_ms, standing)) in readings.iter().enumerate() {
            let (next, stands) = anchor.advance(wall_ms, monotonic_ms, &BOUNDS);
            assert_eq!((next.given_ms, stands), (given_ms, standing), "step {step}");
            anchor = next;
        }
    }

    #[test]
    fn a_small_step_back_stands_still_and_a_large_one_is_unreliable_until_made_good() {
        check(&[
            (50_500, 0, 50_500, Reliable),
            (50_450, 10, 50_500, Reliable),
            (40_000, 30, 50_520, Unreliable),
            (40_100, 130, 50_620, Unreliable),
            (50_560, 140, 50_620, Reliable),
            (50_700, 150, 50_700, Reliable),
        ]);
    }

    #[test]
    fn an_implausible_step_ahead_is_unreliable_and_does_not_drag_time_along() {
        check(&[
            (50_500, 0, 50_500, Reliable),
            (52_000, 600, 52_000, Reliable),
            (99_000, 700, 52_100, Unreliable),
            (52_200, 800, 52_200, Reliable),
        ]);
    }

    #[test]
    fn a_restart_keeps_the_newest_time_on_record() {
        check(&[(49_950, 0, 50_000, Reliable)]);
        check(&[(59_000, 0, 59_000, Reliable)]);
        check(&[(61_000, 5, 50_005, Unreliable), (60_000, 6, 60_000, Reliable)]);
        check(&[(0, 5, 50_005, Unreliable)]);
    }

    #[test]
    fn the_machines_clock_starts_at_the_record_and_never_runs_back() {
        let recorded = Timestamp::from_unix_ms(wall_ms()).plus_ms(1_500);
        let clock = SystemClock::start(ClockBounds::default(), Some(&recorded));
        let mut last = recorded;
        for _ in 0..1_000 {
            let (now, standing) = clock.now();
            assert!(now >= last);
            assert_eq!(standing, Reliable);
            last = now;
        }
        let far = last.plus_ms(3_600_000);
        let clock = SystemClock::start(ClockBounds::default(), Some(&far));
        let (now, standing) = clock.now();
        assert_eq!(standing, Unreliable);
        assert!(now >= far);
    }
}
