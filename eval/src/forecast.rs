//! What a study will take and what it can see, told before it is run. Spec: §10.3.

use crate::item::StudyItem;
use crate::plan::{PairKind, Plan};
use crate::runner::planned;
use crate::statistics::power::{Expected, exact_power};
use serde::Serialize;

/// What is expected of a study. What the plan does not state stays unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// Pairs of the plan, controls included.
    pub pairs: usize,
    /// Pairs that ask about inheritance.
    pub asked: usize,
    /// Calls, where nothing has to be asked again.
    pub calls: u64,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money in millionths, by the price table: priced, not metered.
    pub priced_micros: Option<u64>,
    /// The power of the exact test at 5 %.
    pub power: Option<f64>,
    /// Whether the calls fit into both arms' vectors.
    pub fits: bool,
}

/// The forecast of a plan.
#[must_use]
pub fn forecast(plan: &Plan, items: &[StudyItem]) -> Forecast {
    let pairs = planned(plan, items);
    let asked = pairs.iter().filter(|pair| pair.kind == PairKind::Inheritance).count();
    let per_arm = pairs.len() as u64 * u64::from(plan.repeats);
    let tokens = plan.expected.as_ref().and_then(|expected| expected.tokens_per_call);
    let tokens = tokens.map(|tokens| tokens.saturating_mul(2 * per_arm));
    // Which tokens go in and which come out is not foretold; the dearer of the two prices is taken.
    let price =
        plan.prices.as_ref().map(|prices| prices.input_micros_per_million.max(prices.output_micros_per_million));
    let power = plan.expected.as_ref().and_then(|expected| {
        let expected = Expected {
            discordance: f64::from(expected.discordance_percent) / 100.0,
            difference: f64::from(expected.difference_percent) / 100.0,
        };
        exact_power(expected, asked as u64, 0.05).ok()
    });
    Forecast {
        pairs: pairs.len(),
        asked,
        calls: 2 * per_arm,
        tokens,
        priced_micros: tokens.zip(price).map(|(tokens, price)| tokens.saturating_mul(price).div_ceil(1_000_000)),
        power,
        fits: per_arm <= plan.resources.calls,
    }
}
