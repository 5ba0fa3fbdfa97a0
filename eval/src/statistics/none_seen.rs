//! What was seen in none of n: never "0 %", always how much it may still be.

use super::Unfit;

/// The exact one-sided upper limit of a rate that was seen 0 times in n.
///
/// # Errors
/// [`Unfit::TooFewPairs`] for none tried, [`Unfit::Level`].
pub fn upper_limit(n: u64, confidence: f64) -> Result<f64, Unfit> {
    match (n > 0, confidence > 0.0 && confidence < 1.0) {
        (false, _) => Err(Unfit::TooFewPairs),
        (true, false) => Err(Unfit::Level),
        (true, true) => Ok(1.0 - (1.0 - confidence).powf(1.0 / n as f64)),
    }
}

/// The rule of three: about 3 in n, at 95 %.
///
/// Hanley, Lippman-Hand. If nothing goes wrong, is everything all right? JAMA 249 (1983) 1743–1745.
///
/// # Errors
/// [`Unfit::TooFewPairs`] for none tried.
pub fn rule_of_three(n: u64) -> Result<f64, Unfit> {
    if n == 0 { Err(Unfit::TooFewPairs) } else { Ok((3.0 / n as f64).min(1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact limit solves (1 - p)^n = 0.05; the rule of three is a little above it.
    #[test]
    fn none_in_n_may_still_be_three_in_n() {
        for n in [10, 60, 300] {
            let limit = upper_limit(n, 0.95).unwrap();
            assert!(((1.0 - limit).powf(n as f64) - 0.05).abs() < 1e-12);
            let rule = rule_of_three(n).unwrap();
            assert!(limit < rule && rule - limit < 0.5 / n as f64, "{n}: {limit} {rule}");
        }
        assert_eq!(upper_limit(0, 0.95), Err(Unfit::TooFewPairs));
        assert_eq!(rule_of_three(1), Ok(1.0));
    }
}
