//! What an arm may take and what it took: a vector, in which the unknown stays unknown. Spec: §10.1.

use closer_contracts::id::Key;
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one call took, as far as whoever made it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Calls of a model or program.
    pub calls: Option<u64>,
    /// Tokens in.
    pub input_tokens: Option<u64>,
    /// Tokens out, those of reasoning included.
    pub output_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Tokens in that came from a cache.
    pub cached_tokens: Option<u64>,
    /// Money, in millionths of the plan's currency.
    pub cost_micros: Option<u64>,
    /// The model that served, as it names itself.
    pub served_model: Option<Key>,
    /// The back end's fingerprint.
    pub fingerprint: Option<Key>,
    /// Why the answer ended.
    pub finish_reason: Option<Key>,
}

word_enum! {
    /// The dimensions of a resource vector.
    pub enum Dimension {
        /// Calls.
        Calls = "calls",
        /// Tokens in.
        InputTokens = "input_tokens",
        /// Tokens out, those of reasoning included.
        OutputTokens = "output_tokens",
        /// Tokens of reasoning.
        ReasoningTokens = "reasoning_tokens",
        /// Tokens that came from a cache.
        CachedTokens = "cached_tokens",
        /// Money in millionths.
        CostMicros = "cost_micros",
        /// Wall time in milliseconds.
        WallMs = "wall_ms",
        /// How many ran at once.
        Concurrency = "concurrency",
    }
}

/// A sum of which parts may be unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// The sum of what is known.
    pub known: u64,
    /// How many parts are known.
    pub told: u64,
    /// How many parts are unknown.
    pub unknown: u64,
}

impl Total {
    /// Adds a part.
    pub const fn add(&mut self, part: Option<u64>) {
        match part {
            Some(part) => {
                self.known = self.known.saturating_add(part);
                self.told += 1;
            }
            None => self.unknown += 1,
        }
    }

    /// The sum where all of it is known. Never 0 for what nobody knows.
    #[must_use]
    pub const fn complete(&self) -> Option<u64> {
        if self.unknown == 0 && self.told > 0 { Some(self.known) } else { None }
    }

    /// For people.
    #[must_use]
    pub fn shown(&self) -> String {
        match (self.told, self.unknown) {
            (0, _) => "unknown".to_owned(),
            (_, 0) => self.known.to_string(),
            (_, unknown) => format!("at least {} (incomplete: {unknown} unknown)", self.known),
        }
    }
}

/// What an arm took, in every dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken(BTreeMap<Dimension, Total>);

impl Taken {
    /// Adds one call, coordination included: whoever made it, it is the arm's.
    pub fn add(&mut self, usage: Option<&Usage>, wall_ms: Option<u64>) {
        let of = |part: fn(&Usage) -> Option<u64>| usage.and_then(part);
        let parts = [
            // A call was made, whether or not anybody says so; what it took inside is another matter.
            (Dimension::Calls, of(|usage| usage.calls)),
            (Dimension::InputTokens, of(|usage| usage.input_tokens)),
            (Dimension::OutputTokens, of(|usage| usage.output_tokens)),
            (Dimension::ReasoningTokens, of(|usage| usage.reasoning_tokens)),
            (Dimension::CachedTokens, of(|usage| usage.cached_tokens)),
            (Dimension::CostMicros, of(|usage| usage.cost_micros)),
            (Dimension::WallMs, wall_ms),
        ];
        for (dimension, part) in parts {
            self.0.entry(dimension).or_default().add(part);
        }
    }

    /// What was taken in a dimension.
    #[must_use]
    pub fn of(&self, dimension: Dimension) -> Total {
        self.0.get(&dimension).copied().unwrap_or_default()
    }
}

word_enum! {
    /// How a kind of tokens is counted against the cap.
    pub enum Treatment {
        /// As any other.
        Counted = "counted",
        /// Not at all.
        NotCounted = "not_counted",
    }
}

/// What an arm may take at most. Every dimension is declared; nothing is left to be assumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Calls at most, those of coordination included.
    pub calls: u64,
    /// Tokens in and out at most.
    pub tokens: u64,
    /// How tokens of reasoning are counted.
    pub reasoning_tokens: Treatment,
    /// How tokens that came from a cache are counted.
    pub cached_tokens: Treatment,
    /// Money at most, in millionths of `currency`.
    pub cost_micros: u64,
    /// The currency.
    pub currency: Key,
    /// Wall time at most, in milliseconds.
    pub wall_ms: u64,
    /// How many may run at once.
    pub concurrency: u64,
}

impl Vector {
    /// The dimensions in which more was taken than the vector allows. Unknown is not below a cap, and not above it.
    #[must_use]
    pub fn exceeded(&self, taken: &Taken) -> Vec<Dimension> {
        let tokens = self.tokens_of(taken);
        let over = [
            (Dimension::Calls, taken.of(Dimension::Calls).known > self.calls),
            (Dimension::InputTokens, tokens > self.tokens),
            (Dimension::CostMicros, taken.of(Dimension::CostMicros).known > self.cost_micros),
            (Dimension::WallMs, taken.of(Dimension::WallMs).known > self.wall_ms),
        ];
        over.into_iter().filter(|(_, over)| *over).map(|(dimension, _)| dimension).collect()
    }

    /// Whether nothing more may be begun: a cap is reached.
    #[must_use]
    pub fn is_used_up(&self, taken: &Taken) -> bool {
        let at = |dimension, cap| taken.of(dimension).known >= cap;
        let begun = taken.of(Dimension::Calls);
        // A call of which nobody says how many it was is one at least.
        begun.known.saturating_add(begun.unknown) >= self.calls
            || at(Dimension::WallMs, self.wall_ms)
            || self.tokens_of(taken) > self.tokens
            || taken.of(Dimension::CostMicros).known > self.cost_micros
    }

    fn tokens_of(&self, taken: &Taken) -> u64 {
        let known = |dimension| taken.of(dimension).known;
        let uncounted = |treatment, dimension| match treatment {
            Treatment::Counted => 0,
            Treatment::NotCounted => known(dimension),
        };
        let all = known(Dimension::InputTokens).saturating_add(known(Dimension::OutputTokens));
        all.saturating_sub(uncounted(self.reasoning_tokens, Dimension::ReasoningTokens))
            .saturating_sub(uncounted(self.cached_tokens, Dimension::CachedTokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    fn vector() -> Vector {
        Vector {
            calls: 2,
            tokens: 100,
            reasoning_tokens: Treatment::Counted,
            cached_tokens: Treatment::NotCounted,
            cost_micros: 10,
            currency: "EUR".into(),
            wall_ms: 1_000,
            concurrency: 1,
        }
    }

    #[test]
    fn what_nobody_knows_is_never_zero_and_marks_every_total_it_is_in() {
        shows!("CP-10.1-22", "CP-10.1-17");
        let mut taken = Taken::default();
        assert_eq!(taken.of(Dimension::Calls).shown(), "unknown");
        taken.add(Some(&Usage { calls: Some(1), input_tokens: Some(40), ..Usage::default() }), Some(5));
        assert_eq!(taken.of(Dimension::InputTokens).complete(), Some(40));
        assert_eq!(taken.of(Dimension::CostMicros).complete(), None);
        taken.add(None, None);
        assert_eq!(taken.of(Dimension::InputTokens).complete(), None);
        assert_eq!(taken.of(Dimension::InputTokens).shown(), "at least 40 (incomplete: 1 unknown)");
        for dimension in Dimension::ALL.iter().filter(|dimension| **dimension != Dimension::Concurrency) {
            assert!(!taken.of(*dimension).shown().is_empty());
            assert_ne!(taken.of(*dimension).complete(), Some(0));
        }
    }

    #[test]
    fn cached_and_reasoning_tokens_count_as_the_vector_declares() {
        shows!("CP-10.1-13");
        let mut taken = Taken::default();
        let usage = Usage {
            calls: Some(1),
            input_tokens: Some(90),
            output_tokens: Some(40),
            reasoning_tokens: Some(20),
            cached_tokens: Some(30),
            ..Usage::default()
        };
        taken.add(Some(&usage), Some(5));
        // 90 + 40 - 30 cached is 100: within the cap; with the cached counted it is not.
        assert_eq!(vector().exceeded(&taken), Vec::new());
        let counted = Vector { cached_tokens: Treatment::Counted, ..vector() };
        assert_eq!(counted.exceeded(&taken), vec![Dimension::InputTokens]);
        assert!(toml::from_str::<Vector>("calls = 1").unwrap_err().to_string().contains("tokens"));
    }

    #[test]
    fn more_calls_money_or_time_than_declared_is_told() {
        shows!("CP-10.1-12", "CP-10.1-14", "CP-10.1-15");
        let mut taken = Taken::default();
        for _ in 0..3 {
            taken.add(Some(&Usage { calls: Some(1), cost_micros: Some(5), ..Usage::default() }), Some(400));
        }
        assert_eq!(vector().exceeded(&taken), vec![Dimension::Calls, Dimension::CostMicros, Dimension::WallMs]);
        // Each of them alone ends the arm.
        let wide = Vector { calls: 100, cost_micros: 100, wall_ms: 100_000, ..vector() };
        assert!(!wide.is_used_up(&taken));
        for one in [
            Vector { calls: 3, ..wide.clone() },
            Vector { cost_micros: 14, ..wide.clone() },
            Vector { wall_ms: 1_200, ..wide.clone() },
        ] {
            assert!(one.is_used_up(&taken), "{one:?}");
        }
    }

    #[test]
    fn a_vector_that_leaves_a_dimension_open_is_refused() {
        shows!("CP-10.1-16");
        let whole = toml::to_string(&vector()).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        assert_eq!(lines.len(), 8);
        for left_out in 0..lines.len() {
            let kept: Vec<&str> =
                lines.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, line)| *line).collect();
            let error = toml::from_str::<Vector>(&kept.join("\n")).unwrap_err().to_string();
            let name = lines[left_out].split(' ').next().unwrap();
            assert!(error.contains(name), "{error}");
        }
    }
}
