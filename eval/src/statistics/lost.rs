//! Lost pairs: what the study says when they count as declared, when they are left out, and what they may have been.

use super::{Difference, Estimate, Interval, Method, Unfit, estimate};
use serde::{Deserialize, Serialize};

/// What one enrolled pair scored; `None` where a world's score was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The first world's score in `[0, 1]`.
    pub first: Option<f64>,
    /// The second world's score in `[0, 1]`.
    pub second: Option<f64>,
    /// The cluster's number.
    pub cluster: usize,
}

/// The three answers to lost pairs, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreeAnswers {
    /// Over everything enrolled, each lost score taken as the plan declares.
    pub all_enrolled: Result<Estimate, Unfit>,
    /// Over pairs with both scores.
    pub valid: Result<Estimate, Unfit>,
    /// What the mean over everything enrolled may be, whatever the lost scores were.
    pub bounds: Interval,
    /// From the low end of the interval at the worst to the high end at the best.
    pub over_bounds: Result<Interval, Unfit>,
    /// How many were enrolled.
    pub enrolled: usize,
}

/// The three answers. `lost_score` is what the plan declares a lost score to count as.
///
/// # Errors
/// [`Unfit::OutOfRange`] for a score outside `[0, 1]`, [`Unfit::TooFewPairs`] where nothing was enrolled.
pub fn three_answers(
    method: Method,
    pairs: &[Scored],
    lost_score: f64,
    confidence: f64,
) -> Result<ThreeAnswers, Unfit> {
    let scores = pairs.iter().flat_map(|pair| [pair.first, pair.second]).flatten().chain([lost_score]);
    if scores.into_iter().any(|score| !(0.0..=1.0).contains(&score)) {
        return Err(Unfit::OutOfRange);
    }
    let worst = filled(pairs, 0.0, 1.0);
    let best = filled(pairs, 1.0, 0.0);
    let (low, high) = (mean_of(&worst)?, mean_of(&best)?);
    let over_bounds = estimate(method, &worst, confidence).and_then(|at_worst| {
        let at_best = estimate(method, &best, confidence)?;
        Ok(Interval { low: at_worst.interval.low, high: at_best.interval.high })
    });
    Ok(ThreeAnswers {
        all_enrolled: estimate(method, &filled(pairs, lost_score, lost_score), confidence),
        valid: estimate(method, &valid(pairs), confidence),
        bounds: Interval { low, high },
        over_bounds,
        enrolled: pairs.len(),
    })
}

fn mean_of(differences: &[Difference]) -> Result<f64, Unfit> {
    super::mean::mean(differences).ok_or(Unfit::TooFewPairs)
}

/// Every pair's difference, lost scores put in.
#[must_use]
pub fn filled(pairs: &[Scored], first: f64, second: f64) -> Vec<Difference> {
    let difference = |pair: &Scored| Difference {
        value: pair.first.unwrap_or(first) - pair.second.unwrap_or(second),
        cluster: pair.cluster,
    };
    pairs.iter().map(difference).collect()
}

/// The differences of the pairs with both scores.
#[must_use]
pub fn valid(pairs: &[Scored]) -> Vec<Difference> {
    let both = |pair: &Scored| Some(Difference { value: pair.first? - pair.second?, cluster: pair.cluster });
    pairs.iter().filter_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn pair(first: Option<f64>, second: Option<f64>) -> Scored {
        Scored { first, second, cluster: 0 }
    }

    #[test]
    fn where_all_are_lost_everything_is_possible() {
        let answers = three_answers(Method::Score, &[pair(None, None); 12], 0.0, 0.95).unwrap();
        assert_eq!(answers.bounds, Interval { low: -1.0, high: 1.0 });
        assert_eq!(answers.valid, Err(Unfit::TooFewPairs));
        assert_eq!(answers.all_enrolled.unwrap().value, 0.0);
        assert_eq!(answers.over_bounds.unwrap(), Interval { low: -1.0, high: 1.0 });
    }

    #[test]
    fn where_none_is_lost_the_three_agree() {
        let pairs: Vec<_> = (0..30).map(|n| pair(Some(f64::from(n % 3 != 0)), Some(f64::from(n % 2)))).collect();
        let answers = three_answers(Method::Score, &pairs, 0.0, 0.95).unwrap();
        let valid = answers.valid.unwrap();
        assert_eq!((answers.bounds.low, answers.bounds.high), (valid.value, valid.value));
        assert_eq!(answers.over_bounds.unwrap(), valid.interval);
        assert_eq!(answers.all_enrolled.unwrap(), valid);
    }

    /// Four pairs by hand: +1, 0, first lost beside 1, second lost beside 1.
    #[test]
    fn half_a_pair_narrows_the_bounds() {
        let pairs =
            [pair(Some(1.0), Some(0.0)), pair(Some(1.0), Some(1.0)), pair(None, Some(1.0)), pair(Some(1.0), None)];
        let answers = three_answers(Method::T, &pairs, 0.0, 0.95).unwrap();
        // Worst: 1 + 0 - 1 + 0; best: 1 + 0 + 0 + 1; as declared, lost is 0: 1 + 0 - 1 + 1.
        assert_eq!(answers.bounds, Interval { low: 0.0, high: 0.5 });
        assert_eq!(answers.all_enrolled.unwrap().value, 0.25);
        assert_eq!(answers.valid.unwrap().value, 0.5);
        assert_eq!(answers.enrolled, 4);
    }

    #[test]
    fn a_score_outside_its_range_is_refused() {
        for wrong in [1.5, -0.1, f64::NAN] {
            let answers = three_answers(Method::T, &[pair(Some(wrong), Some(0.0))], 0.0, 0.95);
            assert_eq!(answers, Err(Unfit::OutOfRange));
        }
    }
}
