//! The distributions the rest needs, from `statrs`, total over their arguments.

use super::Unfit;
use statrs::distribution::{Binomial, ContinuousCDF, Discrete, DiscreteCDF, Normal, StudentsT};

fn standard() -> Result<Normal, Unfit> {
    Normal::new(0.0, 1.0).map_err(|_| Unfit::Level)
}

/// P(Z ≤ z).
///
/// # Errors
/// None in practice; [`Unfit::Level`].
pub fn normal_below(z: f64) -> Result<f64, Unfit> {
    Ok(standard()?.cdf(z))
}

/// The z below which a share of the normal distribution lies.
///
/// # Errors
/// [`Unfit::Level`] for a share outside (0, 1).
pub fn normal_quantile(share: f64) -> Result<f64, Unfit> {
    match share > 0.0 && share < 1.0 {
        true => Ok(standard()?.inverse_cdf(share)),
        false => Err(Unfit::Level),
    }
}

/// The z of a two-sided confidence.
///
/// # Errors
/// [`Unfit::Level`] for a confidence outside (0, 1).
pub fn normal_two_sided(confidence: f64) -> Result<f64, Unfit> {
    normal_quantile((1.0 + confidence) / 2.0)
}

/// P(T > t) with so many degrees of freedom.
///
/// # Errors
/// [`Unfit::TooFewPairs`] without a degree of freedom.
pub fn t_above(t: f64, freedom: f64) -> Result<f64, Unfit> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).map_err(|_| Unfit::TooFewPairs)?;
    Ok(distribution.sf(t))
}

/// The t of a two-sided confidence with so many degrees of freedom.
///
/// # Errors
/// [`Unfit::Level`], [`Unfit::TooFewPairs`].
pub fn t_two_sided(confidence: f64, freedom: f64) -> Result<f64, Unfit> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Unfit::Level);
    }
    let distribution = StudentsT::new(0.0, 1.0, freedom).map_err(|_| Unfit::TooFewPairs)?;
    Ok(distribution.inverse_cdf((1.0 + confidence) / 2.0))
}

/// P(X ≥ k) and P(X = k) for the number of heads in n throws of a coin that shows heads with this probability.
///
/// # Errors
/// [`Unfit::Level`] for a probability outside `[0, 1]`.
pub fn heads(k: u64, n: u64, probability: f64) -> Result<(f64, f64), Unfit> {
    let coin = Binomial::new(probability, n).map_err(|_| Unfit::Level)?;
    let above = k.checked_sub(1).map_or(1.0, |below| coin.sf(below));
    Ok((above, coin.pmf(k)))
}
