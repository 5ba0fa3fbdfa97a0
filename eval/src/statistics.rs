//! The statistics of paired comparisons: small, deterministic, each checked against published or independent values.
//!
//! Everything is told of **differences**, one per pair: what the first world scored minus what the second did, each in
//! `[0, 1]`. Lost pairs are no differences; [`lost`] says what they may have been. Random numbers come from a seed that is
//! printed beside the result. Deliberately lacks mixed models and priors.

pub mod binary;
pub mod bootstrap;
pub mod distribution;
pub mod equivalence;
pub mod family;
pub mod lost;
pub mod mean;
pub mod none_seen;
pub mod power;
pub mod repeats;

use serde::{Deserialize, Serialize};

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The difference that one pair shows, and which cluster the pair belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// First minus second, in `[-1, 1]`.
    pub value: f64,
    /// The cluster's number; pairs of one cluster are not independent of each other.
    pub cluster: usize,
}

impl Difference {
    /// Differences of pairs that are clusters of their own.
    #[must_use]
    pub fn independent(values: &[f64]) -> Vec<Self> {
        values.iter().enumerate().map(|(cluster, &value)| Self { value, cluster }).collect()
    }
}

/// Why a figure is not given. An absent figure is told with its reason, never as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// No pair, or too few for any spread.
    #[error("there are too few pairs")]
    TooFewPairs,
    /// Fewer clusters than the method bears.
    #[error("there are fewer than {} clusters", mean::CLUSTERS_MIN)]
    TooFewClusters,
    /// The method is for scores of 0 and 1.
    #[error("the scores are not 0 or 1")]
    NotBinary,
    /// A score lies outside `[0, 1]`, or is no number.
    #[error("a score lies outside 0 to 1")]
    OutOfRange,
    /// A confidence, level, margin or probability makes no sense.
    #[error("a level lies outside what makes sense")]
    Level,
}

/// How an interval is made; frozen with the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Tango's score interval, for scores of 0 and 1 of independent pairs.
    Score,
    /// The paired t interval, for any scores of independent pairs.
    T,
    /// Cluster-robust with t on clusters minus one, for any scores.
    Clustered,
}

/// The mean difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean of the differences.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
    /// How many pairs it rests on.
    pub pairs: usize,
}

/// The mean difference with the interval of a method.
///
/// # Errors
/// [`Unfit`].
pub fn estimate(method: Method, differences: &[Difference], confidence: f64) -> Result<Estimate, Unfit> {
    let value = mean::mean(differences).ok_or(Unfit::TooFewPairs)?;
    let interval = match method {
        Method::Score => binary::Discordance::of(differences)?.score_interval(confidence)?,
        Method::T => mean::t_interval(differences, confidence)?,
        Method::Clustered => mean::clustered_interval(differences, confidence)?,
    };
    Ok(Estimate { value, interval, pairs: differences.len() })
}
