//! Resampling: whole clusters are drawn, so that what depends stays together; a pair without a cluster is one of its own.

use super::distribution::{normal_below, normal_quantile};
use super::{Difference, Interval, Unfit, mean};
use std::collections::BTreeMap;

/// A small generator whose numbers are the same on every machine and in every version: SplitMix64. A library's standard
/// generator may change with a release, and then a printed seed would no longer reproduce its figure.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1).
    pub const fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `bound`; 0 for a bound of 0. The bias is below `bound` / 2^64.
    pub const fn below(&mut self, bound: usize) -> usize {
        ((self.bits() as u128 * bound as u128) >> 64) as usize
    }

    /// Puts a list in random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index + 1));
        }
    }
}

/// Sum and number of the differences of each cluster: all that a mean needs of it.
fn sums(differences: &[Difference]) -> Vec<(f64, f64)> {
    let mut clusters: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for difference in differences {
        let (sum, number) = clusters.entry(difference.cluster).or_default();
        *sum += difference.value;
        *number += 1.0;
    }
    clusters.into_values().collect()
}

/// The bias-corrected and accelerated bootstrap interval (BCa) of the mean difference, over clusters. The seed is part of
/// the result and is printed beside it.
///
/// Efron B. Better bootstrap confidence intervals. Journal of the American Statistical Association 82 (1987) 171–185.
///
/// # Errors
/// [`Unfit::TooFewPairs`] below two clusters or without a resample, [`Unfit::Level`].
pub fn bca(differences: &[Difference], confidence: f64, resamples: usize, seed: u64) -> Result<Interval, Unfit> {
    let clusters = sums(differences);
    let seen = mean::mean(differences).filter(|_| clusters.len() > 1 && resamples > 0).ok_or(Unfit::TooFewPairs)?;
    let mut random = Random::seeded(seed);
    let mut drawn: Vec<f64> = (0..resamples).map(|_| resampled(&clusters, &mut random)).collect();
    drawn.sort_by(f64::total_cmp);
    if drawn.first() == drawn.last() {
        return Ok(Interval { low: seen, high: seen });
    }
    // Where half of the resamples equal what was seen, as with few distinct scores, they count half.
    let below = drawn.iter().filter(|mean| **mean < seen).count() as f64;
    let equal = drawn.iter().filter(|mean| **mean == seen).count() as f64;
    let share = ((below + equal / 2.0) / resamples as f64).clamp(0.5 / resamples as f64, 1.0 - 0.5 / resamples as f64);
    let (bias, acceleration) = (normal_quantile(share)?, acceleration(&clusters));
    let end = |tail: f64| {
        let shifted = bias + normal_quantile(tail)?;
        let at = normal_below(bias + shifted / (1.0 - acceleration * shifted))?;
        Ok::<f64, Unfit>(quantile(&drawn, at))
    };
    Ok(Interval { low: end((1.0 - confidence) / 2.0)?, high: end(f64::midpoint(1.0, confidence))? })
}

fn resampled(clusters: &[(f64, f64)], random: &mut Random) -> f64 {
    let (mut sum, mut number) = (0.0, 0.0);
    for _ in 0..clusters.len() {
        let (of_cluster, size) = clusters.get(random.below(clusters.len())).copied().unwrap_or_default();
        sum += of_cluster;
        number += size;
    }
    sum / number
}

/// From the jackknife over clusters.
fn acceleration(clusters: &[(f64, f64)]) -> f64 {
    let (sum, number) = clusters.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let left_out: Vec<f64> = clusters.iter().map(|one| (sum - one.0) / (number - one.1)).collect();
    let middle = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let (cubes, squares) = left_out
        .iter()
        .map(|mean| middle - mean)
        .fold((0.0, 0.0), |(cubes, squares), off| (cubes + off * off * off, squares + off * off));
    match squares > 0.0 {
        true => cubes / (6.0 * f64::powf(squares, 1.5)),
        false => 0.0,
    }
}

/// The value below which a share of the sorted values lies, interpolated.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().saturating_sub(1)) as f64;
    let (below, part) = (place.floor() as usize, place - place.floor());
    let at = |index: usize| sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN);
    at(below) + part * (at(below + 1) - at(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence that Vigna's reference implementation gives for this seed (prng.di.unimi.it/splitmix64.c).
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random::seeded(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }

    /// scipy 1.17.1, `stats.bootstrap(data, mean, method="BCa", n_resamples=2_000_000)`; ours differs by its own draws.
    #[test]
    fn bca_is_that_of_scipy_within_what_resampling_leaves_open() {
        let (low, high) = (0.088_571, 0.396_429);
        let interval = bca(&Difference::independent(&SKEWED), 0.95, 200_000, 1).unwrap();
        assert!((interval.low - low).abs() < 2e-3 && (interval.high - high).abs() < 2e-3, "{interval:?}");
    }

    const SKEWED: [f64; 14] = [0.01, 0.02, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.13, 0.2, 0.35, 0.6, 0.95];

    #[test]
    fn same_seed_same_interval_and_clusters_of_one_are_pairs() {
        let pairs = Difference::independent(&SKEWED);
        assert_eq!(bca(&pairs, 0.95, 500, 7), bca(&pairs, 0.95, 500, 7));
        assert_ne!(bca(&pairs, 0.95, 500, 7), bca(&pairs, 0.95, 500, 8));
        assert_eq!(bca(&pairs[..1], 0.95, 500, 7), Err(Unfit::TooFewPairs));
    }

    #[test]
    fn dependence_within_clusters_widens_the_interval() {
        let repeated: Vec<f64> = SKEWED.iter().flat_map(|&value| [value; 4]).collect();
        let apart = Difference::independent(&repeated);
        let together: Vec<_> = apart.iter().map(|d| Difference { cluster: d.cluster / 4, ..*d }).collect();
        let width = |interval: Interval| interval.high - interval.low;
        let (apart, together) = (bca(&apart, 0.95, 4_000, 3).unwrap(), bca(&together, 0.95, 4_000, 3).unwrap());
        assert!(width(together) > 1.7 * width(apart), "{apart:?} {together:?}");
    }
}
