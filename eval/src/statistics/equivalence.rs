//! "No harm" is shown, not left unrejected: two one-sided tests against a frozen margin.

use super::distribution::t_above;
use super::mean::Spread;
use super::{Difference, Unfit};

/// The p of two one-sided t tests that the mean difference lies within the margin either way.
///
/// Schuirmann DJ. A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence
/// of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657–680.
///
/// # Errors
/// [`Unfit::Level`] for a margin that is not positive; those of [`Spread::plain`].
pub fn two_one_sided_p(differences: &[Difference], margin: f64) -> Result<f64, Unfit> {
    let spread = Spread::plain(differences)?;
    if !(margin > 0.0 && margin.is_finite()) {
        return Err(Unfit::Level);
    }
    if spread.error == 0.0 {
        return Ok(if spread.mean.abs() < margin { 0.0 } else { 1.0 });
    }
    let above_low = t_above((spread.mean + margin) / spread.error, spread.freedom)?;
    let below_high = t_above((margin - spread.mean) / spread.error, spread.freedom)?;
    Ok(above_low.max(below_high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// statsmodels 0.15.0, `ttost_paired(x, zeros, -margin, margin)`.
    #[test]
    fn the_p_is_that_of_statsmodels() {
        let differences = Difference::independent(&[0.1, -0.2, 0.05, 0.0, 0.15, -0.1, 0.02, -0.05, 0.08, 0.12]);
        for (margin, p) in [(0.05, 0.180_487_302_285), (0.1, 0.019_284_043_863), (0.2, 0.000_235_118_969)] {
            assert!((two_one_sided_p(&differences, margin).unwrap() - p).abs() < 1e-10, "{margin}");
        }
        assert_eq!(two_one_sided_p(&differences, 0.0), Err(Unfit::Level));
    }
}
