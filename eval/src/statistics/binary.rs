//! Scores of 0 and 1: everything is in how often the two worlds disagree.

use super::distribution::{heads, normal_two_sided};
use super::{Difference, Interval, Unfit};

/// How pairs with scores of 0 and 1 came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discordance {
    /// Pairs that the first world alone got right.
    pub first_only: u64,
    /// Pairs that the second world alone got right.
    pub second_only: u64,
    /// All pairs.
    pub pairs: u64,
}

impl Discordance {
    /// Counts differences.
    ///
    /// # Errors
    /// [`Unfit::NotBinary`] where one is not -1, 0 or 1.
    pub fn of(differences: &[Difference]) -> Result<Self, Unfit> {
        let mut counted = Self { first_only: 0, second_only: 0, pairs: 0 };
        for difference in differences {
            counted.pairs += 1;
            match difference.value {
                1.0 => counted.first_only += 1,
                -1.0 => counted.second_only += 1,
                0.0 => {}
                _ => return Err(Unfit::NotBinary),
            }
        }
        Ok(counted)
    }

    /// McNemar's exact two-sided p: the tail doubled. Needs no more than that disagreement falls either way by a fair
    /// coin, independently in every pair.
    ///
    /// # Errors
    /// None in practice; [`Unfit::Level`].
    pub fn exact_p(&self) -> Result<f64, Unfit> {
        let (tail, _) = self.tail()?;
        Ok((2.0 * tail).min(1.0))
    }

    /// The mid-p version: half the probability of what was seen. Less strict than exact, and no guarantee.
    ///
    /// # Errors
    /// None in practice; [`Unfit::Level`].
    pub fn mid_p(&self) -> Result<f64, Unfit> {
        let (tail, point) = self.tail()?;
        Ok((2.0 * (tail - point / 2.0)).min(1.0))
    }

    fn tail(&self) -> Result<(f64, f64), Unfit> {
        heads(self.first_only.max(self.second_only), self.first_only + self.second_only, 0.5)
    }

    /// Tango's score interval for the difference of the two proportions.
    ///
    /// Tango T. Equivalence test and confidence interval for the difference in proportions for the paired-sample design.
    /// Statistics in Medicine 17 (1998) 891–908.
    ///
    /// # Errors
    /// [`Unfit::TooFewPairs`] without a pair, [`Unfit::Level`].
    pub fn score_interval(&self, confidence: f64) -> Result<Interval, Unfit> {
        if self.pairs == 0 {
            return Err(Unfit::TooFewPairs);
        }
        let z = normal_two_sided(confidence)?;
        let seen = (self.first_only as f64 - self.second_only as f64) / self.pairs as f64;
        Ok(Interval { low: self.where_score_is(z, -1.0, seen), high: self.where_score_is(-z, seen, 1.0) })
    }

    /// Where the falling score crosses a value, between two differences.
    fn where_score_is(&self, value: f64, mut low: f64, mut high: f64) -> f64 {
        // Each step halves the interval; after 60 it is below what a double can tell.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            match self.score(middle) > value {
                true => low = middle,
                false => high = middle,
            }
        }
        f64::midpoint(low, high)
    }

    /// The score statistic for a supposed difference, with the probabilities restricted to it.
    fn score(&self, difference: f64) -> f64 {
        let (n, b, c) = (self.pairs as f64, self.first_only as f64, self.second_only as f64);
        let linear = (2.0 * n - b + c) * difference - b - c;
        let constant = -c * difference * (1.0 - difference);
        let restricted = ((linear * linear - 8.0 * n * constant).max(0.0).sqrt() - linear) / (4.0 * n);
        let variance = n * (2.0 * restricted + difference * (1.0 - difference));
        let excess = b - c - n * difference;
        match variance > 0.0 {
            true => excess / variance.sqrt(),
            false if excess == 0.0 => 0.0,
            false => excess.signum() * f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn counted(first_only: u64, second_only: u64, pairs: u64) -> Discordance {
        Discordance { first_only, second_only, pairs }
    }

    /// Fagerland, Lydersen, Laake. The McNemar test for binary matched-pairs data. BMC Medical Research Methodology 13
    /// (2013) 91: airway hyper-responsiveness (1, 7 of 21) and complete response (6, 16 of 161).
    #[test]
    fn exact_and_mid_p_are_the_published_ones() {
        for (table, exact, mid) in [(counted(1, 7, 21), 0.0703, 0.0391), (counted(6, 16, 161), 0.0525, 0.0347)] {
            assert!((table.exact_p().unwrap() - exact).abs() < 5e-5, "{table:?}");
            assert!((table.mid_p().unwrap() - mid).abs() < 5e-5, "{table:?}");
        }
    }

    #[test]
    fn no_disagreement_is_no_evidence_of_difference() {
        assert_eq!(counted(0, 0, 40).exact_p(), Ok(1.0));
        assert!((counted(5, 5, 40).mid_p().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(counted(0, 0, 0).score_interval(0.95), Err(Unfit::TooFewPairs));
    }

    /// Computed apart from this code: the likelihood maximised under each supposed difference by scipy 1.17.1
    /// (`minimize_scalar`), the score's crossings found by `brentq`.
    #[test]
    fn the_score_interval_is_that_of_the_restricted_likelihood() {
        for (table, low, high) in REFERENCE {
            let interval = table.score_interval(0.95).unwrap();
            assert!((interval.low - low).abs() < 2e-6 && (interval.high - high).abs() < 2e-6, "{table:?} {interval:?}");
        }
    }

    const REFERENCE: [(Discordance, f64, f64); 6] = [
        (counted(1, 7, 21), -0.517_232_277, -0.026_003_030),
        (counted(6, 16, 161), -0.124_023_432, -0.005_433_395),
        (counted(12, 2, 50), 0.061_112_407, 0.344_708_748),
        (counted(0, 0, 30), -0.113_513_399, 0.113_513_393),
        (counted(5, 0, 40), 0.026_425_698, 0.261_121_198),
        (counted(14, 14, 100), -0.106_505_930, 0.106_505_931),
    ];

    #[test]
    fn swapping_the_worlds_flips_the_interval() {
        let (one, other) = (counted(12, 3, 50).score_interval(0.95), counted(3, 12, 50).score_interval(0.95));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!((one.low + other.high).abs() < 1e-9 && (one.high + other.low).abs() < 1e-9);
    }

    #[test]
    fn scores_between_0_and_1_are_not_counted_as_agreement() {
        assert_eq!(Discordance::of(&Difference::independent(&[1.0, 0.5])), Err(Unfit::NotBinary));
    }
}
