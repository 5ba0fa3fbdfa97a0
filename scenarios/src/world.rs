//! A simulated world: targets that show fields, and the ways in which they can misbehave.

use closer_contracts::action::Action;
use closer_contracts::id::{AttemptId, Key, Text};
use closer_contracts::refs::{Plain, Target, TypedValue};
use closer_contracts::time::Timestamp;
use closer_contracts::word_enum;
use closer_contracts::work::TargetVersion;
use closer_protocol::port::{Observed, Performed};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
        /// Observations show what the target was before the last effect.
        Stale = "stale",
        /// Observations come from another account.
        WrongAccount = "wrong_account",
        /// Targets cannot be looked at.
        Unavailable = "unavailable",
    }
}

/// Targets by what they are, with their fields, and how often each was really changed.
#[derive(Debug, Clone)]
pub struct World {
    targets: BTreeMap<Target, Map<String, Value>>,
    before: BTreeMap<Target, Map<String, Value>>,
    effects: Vec<Action>,
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
            effects: Vec::new(),
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
    pub fn effects(&self) -> &[Action] {
        &self.effects
    }

    fn apply(&mut self, action: &Action) {
        self.before.insert(action.target.clone(), self.targets.get(&action.target).cloned().unwrap_or_default());
        let fields = self.targets.entry(action.target.clone()).or_default();
        for (name, value) in &action.parameters {
            fields.insert(name.to_string(), value.0.clone());
        }
        self.effects.push(action.clone());
    }

    /// Performs an effect: every parameter becomes the field of its name.
    pub fn perform(&mut self, action: &Action, now: &Timestamp) -> Performed {
        let responded = |now: &Timestamp| Performed::Responded {
            sent_at: now.clone(),
            responded_at: now.clone(),
            response: Plain(Value::String("done".into())),
        };
        let unknown =
            |now: &Timestamp| Performed::Unknown { sent_at: now.clone(), reason: Text::from("the answer was lost") };
        match self.effect_mode {
            Mode::AppliedUnanswered => {
                self.apply(action);
                unknown(now)
            }
            Mode::LostUnanswered => unknown(now),
            Mode::AnsweredNotApplied => responded(now),
            Mode::NotSent => Performed::NotSent { reason: Text::from("the connection was refused") },
            Mode::Normal | Mode::Stale | Mode::WrongAccount | Mode::Unavailable => {
                self.apply(action);
                responded(now)
            }
        }
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
            Mode::WrongAccount => {
                seen.account = Key::from("another-account");
                self.targets.get(target)
            }
            Mode::Normal
            | Mode::AppliedUnanswered
            | Mode::LostUnanswered
            | Mode::AnsweredNotApplied
            | Mode::NotSent => self.targets.get(target),
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
