//! The mean difference of any scores: independent pairs by t, dependent ones by cluster-robust spread.

use super::distribution::{t_above, t_two_sided};
use super::{Difference, Interval, Unfit};
use std::collections::BTreeMap;

/// The fewest clusters from which a cluster-robust interval is given. Below it the interval is too short by far
/// (`docs/calibration.md` shows how far).
pub const CLUSTERS_MIN: usize = 10;

/// The mean of the differences; none of no pairs.
#[must_use]
pub fn mean(differences: &[Difference]) -> Option<f64> {
    let sum: f64 = differences.iter().map(|difference| difference.value).sum();
    (!differences.is_empty()).then(|| sum / differences.len() as f64)
}

/// A mean with its standard error and the degrees of freedom of its t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean difference.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Spread {
    /// Of independent pairs.
    ///
    /// # Errors
    /// [`Unfit::TooFewPairs`] below two pairs.
    pub fn plain(differences: &[Difference]) -> Result<Self, Unfit> {
        let mean = mean(differences).filter(|_| differences.len() > 1).ok_or(Unfit::TooFewPairs)?;
        let n = differences.len() as f64;
        let squares: f64 = differences.iter().map(|difference| (difference.value - mean).powi(2)).sum();
        Ok(Self { mean, error: (squares / (n - 1.0) / n).sqrt(), freedom: n - 1.0 })
    }

    /// Of pairs that depend on each other within clusters: the sandwich with the finite correction G / (G - 1), and t on
    /// G - 1.
    ///
    /// # Errors
    /// [`Unfit::TooFewClusters`] below [`CLUSTERS_MIN`].
    pub fn clustered(differences: &[Difference]) -> Result<Self, Unfit> {
        Self::clustered_from(differences, CLUSTERS_MIN)
    }

    /// The same from any number of clusters on; for calibration, which shows why there is a least number.
    pub(crate) fn clustered_from(differences: &[Difference], clusters_min: usize) -> Result<Self, Unfit> {
        let mean = mean(differences).ok_or(Unfit::TooFewPairs)?;
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for difference in differences {
            *sums.entry(difference.cluster).or_default() += difference.value - mean;
        }
        if sums.len() < clusters_min.max(2) {
            return Err(Unfit::TooFewClusters);
        }
        let (n, clusters) = (differences.len() as f64, sums.len() as f64);
        let squares: f64 = sums.values().map(|sum| sum * sum).sum();
        Ok(Self { mean, error: (clusters / (clusters - 1.0) * squares).sqrt() / n, freedom: clusters - 1.0 })
    }

    /// The two-sided t interval.
    ///
    /// # Errors
    /// [`Unfit::Level`].
    pub fn interval(&self, confidence: f64) -> Result<Interval, Unfit> {
        let reach = t_two_sided(confidence, self.freedom)? * self.error;
        Ok(Interval { low: self.mean - reach, high: self.mean + reach })
    }

    /// The two-sided p of no difference.
    ///
    /// # Errors
    /// [`Unfit::TooFewPairs`].
    pub fn p(&self) -> Result<f64, Unfit> {
        match (self.error > 0.0, self.mean == 0.0) {
            (true, _) => Ok((2.0 * t_above((self.mean / self.error).abs(), self.freedom)?).min(1.0)),
            (false, true) => Ok(1.0),
            (false, false) => Ok(0.0),
        }
    }
}

/// The paired t interval.
///
/// # Errors
/// [`Unfit::TooFewPairs`], [`Unfit::Level`].
pub fn t_interval(differences: &[Difference], confidence: f64) -> Result<Interval, Unfit> {
    Spread::plain(differences)?.interval(confidence)
}

/// The cluster-robust interval.
///
/// # Errors
/// [`Unfit::TooFewClusters`], [`Unfit::Level`].
pub fn clustered_interval(differences: &[Difference], confidence: f64) -> Result<Interval, Unfit> {
    Spread::clustered(differences)?.interval(confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student. The probable error of a mean. Biometrika 6 (1908) 1–25: hours of sleep gained under two drugs by ten
    /// patients. t and p are in most textbooks since; the interval by scipy 1.17.1 (`ttest_rel`).
    #[test]
    fn students_own_example() {
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let spread = Spread::plain(&Difference::independent(&gained)).unwrap();
        assert!((spread.mean / spread.error - 4.062_127_683_382_037).abs() < 1e-9);
        assert!((spread.p().unwrap() - 0.002_832_890_197_384_313).abs() < 1e-9);
        let interval = spread.interval(0.95).unwrap();
        assert!((interval.low - 0.700_114_235).abs() < 1e-8 && (interval.high - 2.459_885_765).abs() < 1e-8);
    }

    fn in_clusters(sizes: &[usize]) -> Vec<Difference> {
        let clusters = sizes.iter().enumerate().flat_map(|(cluster, &size)| std::iter::repeat_n(cluster, size));
        // A fixed jumble of values in [-1, 1] that depends on the cluster.
        clusters
            .enumerate()
            .map(|(number, cluster)| Difference {
                value: ((number * 37 + cluster * cluster * 11) % 101) as f64 / 50.0 - 1.0,
                cluster,
            })
            .collect()
    }

    /// By statsmodels 0.15.0: `OLS(y, ones).fit(cov_type="cluster", cov_kwds={"groups": g}, use_t=True)`.
    #[test]
    fn clustered_spread_is_that_of_statsmodels() {
        let spread = Spread::clustered(&in_clusters(&[3, 5, 2, 8, 4, 6, 1, 7, 3, 5, 9, 2])).unwrap();
        let interval = spread.interval(0.95).unwrap();
        let (mean, error, low, high) = (-0.036, 0.041_088_457_47, -0.126_435_09, 0.054_435_09);
        assert!((spread.mean - mean).abs() < 1e-9 && (spread.error - error).abs() < 1e-9, "{spread:?}");
        assert!((interval.low - low).abs() < 1e-8 && (interval.high - high).abs() < 1e-8, "{interval:?}");
    }

    #[test]
    fn one_cluster_per_pair_is_the_plain_value() {
        let differences = in_clusters(&[1; 15]);
        let (plain, clustered) = (Spread::plain(&differences).unwrap(), Spread::clustered(&differences).unwrap());
        assert!((plain.error - clustered.error).abs() < 1e-15 && plain.freedom == clustered.freedom);
    }

    #[test]
    fn too_few_clusters_are_refused() {
        assert_eq!(Spread::clustered(&in_clusters(&[4; 9])), Err(Unfit::TooFewClusters));
        assert_eq!(Spread::plain(&in_clusters(&[1])), Err(Unfit::TooFewPairs));
    }

    #[test]
    fn swapping_the_worlds_flips_the_sign() {
        let differences = in_clusters(&[2; 12]);
        let swapped: Vec<_> = differences.iter().map(|d| Difference { value: -d.value, ..*d }).collect();
        let (one, other) = (t_interval(&differences, 0.9).unwrap(), t_interval(&swapped, 0.9).unwrap());
        assert!((one.low + other.high).abs() < 1e-12 && (one.high + other.low).abs() < 1e-12);
    }
}
