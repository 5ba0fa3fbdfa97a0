//! A simulated world: targets that show fields, and the ways in which they can misbehave.

use closer_contracts::action::Action;
use closer_contracts::id::{AttemptId, Key, Text};
use closer_contracts::refs::{Plain, Target, TypedValue};
use closer_contracts::time::Timestamp;
use closer_contracts::word_enum;
use closer_contracts::work::TargetVersion;
use closer_protocol::port::{Observed, Performed};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

word_enum! {
    /// How the world answers the next effects and observations.
    pub enum Mode {
        /// Effects take place and are answered.
        Normal = "normal",
        /// Effects take place and the answer is lost.
        AppliedUnanswered = "applied_unanswered",
        /// Effects do not take place and the answer is lost.
        LostUnanswered = "lost_unanswered",
        /// Effects are answered as successful and do not take place.
        AnsweredNotApplied = "answered_not_applied",
        /// Effects do not leave.
        NotSent = "not_sent",
        /// Effects take place and their calls do not return for a while.
        Slow = "slow",
        /// Observations show what the target was before the last effect.
        Stale = "stale",
        /// As `stale`, but for less than any settle time: the target needs a while to show what it is.
        Lagging = "lagging",
        /// Observations come from another account.
        WrongAccount = "wrong_account",
        /// Targets cannot be looked at.
        Unavailable = "unavailable",
    }
}

/// How long a lagging target shows what it was, in milliseconds.
const LAG_MS: u64 = 900;

/// Targets by what they are, with their fields, and how often each was really changed.
#[derive(Debug, Clone)]
pub struct World {
    targets: BTreeMap<Target, Map<String, Value>>,
    before: BTreeMap<Target, Map<String, Value>>,
    changed_at: BTreeMap<Target, Timestamp>,
    effects: Vec<(Action, Timestamp)>,
    slow: VecDeque<Action>,
    /// The attempts whose cancellation was asked for, in order.
    pub cancelled: Vec<AttemptId>,
    /// How effects are answered.
    pub effect_mode: Mode,
    /// How observations are answered.
    pub observe_mode: Mode,
}

impl Default for World {
    fn default() -> Self {
        Self {
            targets: BTreeMap::new(),
            before: BTreeMap::new(),
            changed_at: BTreeMap::new(),
            effects: Vec::new(),
            slow: VecDeque::new(),
            cancelled: Vec::new(),
            effect_mode: Mode::Normal,
            observe_mode: Mode::Normal,
        }
    }
}

impl World {
    /// Sets a field of a target, as somebody else would.
    pub fn set(&mut self, target: &Target, field: &str, value: impl Into<Value>) {
        self.targets.entry(target.clone()).or_default().insert(field.to_owned(), value.into());
    }

    /// The field of a target.
    #[must_use]
    pub fn get(&self, target: &Target, field: &str) -> Option<&Value> {
        self.targets.get(target)?.get(field)
    }

    /// Every effect that really took place, in order.
    #[must_use]
    pub fn effects(&self) -> Vec<&Action> {
        self.effects.iter().map(|(action, _)| action).collect()
    }

    /// Every effect that really took place with its moment, in order.
    #[must_use]
    pub fn effects_and_moments(&self) -> &[(Action, Timestamp)] {
        &self.effects
    }

    fn apply(&mut self, action: &Action, now: &Timestamp) {
        self.before.insert(action.target.clone(), self.targets.get(&action.target).cloned().unwrap_or_default());
        let fields = self.targets.entry(action.target.clone()).or_default();
        for (name, value) in &action.parameters {
            fields.insert(name.to_string(), value.0.clone());
        }
        self.changed_at.insert(action.target.clone(), now.clone());
        self.effects.push((action.clone(), now.clone()));
    }

    /// The effects whose calls have not returned.
    pub fn slow(&self) -> impl Iterator<Item = &Action> {
        self.slow.iter()
    }

    /// Nobody waits any more for the calls that have not returned.
    pub fn forget_slow(&mut self) {
        self.slow.clear();
    }

    /// The oldest call that has not returned does.
    pub fn return_slow(&mut self, now: &Timestamp) -> Option<(AttemptId, Performed)> {
        let action = self.slow.pop_front()?;
        let reason = Text::from("the call took longer than it may");
        Some((action.attempt_id, Performed::Unknown { sent_at: now.clone(), reason }))
    }

    /// Performs an effect: every parameter becomes the field of its name. Nothing is said of a call that does not return.
    pub fn perform(&mut self, action: &Action, now: &Timestamp) -> Option<Performed> {
        let responded = |now: &Timestamp| Performed::Responded {
            sent_at: now.clone(),
            responded_at: now.clone(),
            response: Plain(Value::String("done".into())),
        };
        let unknown =
            |now: &Timestamp| Performed::Unknown { sent_at: now.clone(), reason: Text::from("the answer was lost") };
        Some(match self.effect_mode {
            Mode::Slow => {
                self.apply(action, now);
                self.slow.push_back(action.clone());
                return None;
            }
            Mode::AppliedUnanswered => {
                self.apply(action, now);
                unknown(now)
            }
            Mode::LostUnanswered => unknown(now),
            Mode::AnsweredNotApplied => responded(now),
            Mode::NotSent => Performed::NotSent { reason: Text::from("the connection was refused") },
            Mode::Normal | Mode::Stale | Mode::Lagging | Mode::WrongAccount | Mode::Unavailable => {
                self.apply(action, now);
                responded(now)
            }
        })
    }

    /// Looks at a target.
    #[must_use]
    pub fn observe(&self, target: &Target, now: &Timestamp) -> Observed {
        let mut seen = target.clone();
        let fields = match self.observe_mode {
            Mode::Unavailable => {
                return Observed::Unavailable {
                    observed_at: now.clone(),
                    reason: Text::from("the target does not answer"),
                };
            }
            Mode::Stale => self.before.get(target).or_else(|| self.targets.get(target)),
            Mode::Lagging if self.changed_at.get(target).is_some_and(|at| *now < at.plus_ms(LAG_MS)) => {
                self.before.get(target)
            }
            Mode::WrongAccount => {
                seen.account = Key::from("another-account");
                self.targets.get(target)
            }
            Mode::Normal
            | Mode::Lagging
            | Mode::AppliedUnanswered
            | Mode::LostUnanswered
            | Mode::AnsweredNotApplied
            | Mode::NotSent
            | Mode::Slow => self.targets.get(target),
        };
        Observed::Seen {
            target: seen,
            observed_at: now.clone(),
            target_version: TargetVersion::Unknown,
            observation: TypedValue {
                r#type: Key::from("fields"),
                value: Plain(Value::Object(fields.cloned().unwrap_or_default())),
            },
            limitations: Vec::new(),
        }
    }
}
