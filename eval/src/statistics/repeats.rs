//! Repeats of one pair: averaged within the pair first, so that a pair that was run often counts once.

/// The mean of a world's repeats; none where nothing was scored.
#[must_use]
pub fn mean(scores: &[f64]) -> Option<f64> {
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// pass^k: the probability that k repeats drawn from those that were run all passed. None for k of 0 or beyond the repeats.
///
/// Yao and others. τ-bench: a benchmark for tool-agent-user interaction in real-world domains. arXiv 2406.12045 (2024).
#[must_use]
pub fn pass_all(passed: u64, run: u64, k: u64) -> Option<f64> {
    if k == 0 || k > run || passed > run {
        return None;
    }
    Some((0..k).map(|drawn| passed.saturating_sub(drawn) as f64 / (run - drawn) as f64).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_of_1_is_the_mean() {
        for passed in 0..=7 {
            let scores: Vec<f64> = (0..7).map(|n| f64::from(n < passed)).collect();
            let (one, mean) = (pass_all(passed as u64, 7, 1).unwrap(), mean(&scores).unwrap());
            assert!((one - mean).abs() < 1e-15);
        }
    }

    /// Binomial coefficients by hand: C(4,2) / C(5,2), C(4,3) / C(5,3), and none without enough passes.
    #[test]
    fn pass_all_counts_the_draws() {
        assert!((pass_all(4, 5, 2).unwrap() - 6.0 / 10.0).abs() < 1e-15);
        assert!((pass_all(4, 5, 3).unwrap() - 4.0 / 10.0).abs() < 1e-15);
        assert_eq!(pass_all(2, 5, 3), Some(0.0));
        assert_eq!((pass_all(2, 5, 6), pass_all(2, 5, 0), mean(&[])), (None, None, None));
    }
}
