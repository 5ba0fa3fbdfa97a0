//! How likely a study is to see an effect, told before it is run.

use super::Unfit;
use super::binary::Discordance;
use super::distribution::heads;

/// What is expected of pairs with scores of 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// The probability that the worlds disagree.
    pub discordance: f64,
    /// The difference of the two proportions; at most the discordance.
    pub difference: f64,
}

/// The power of McNemar's exact test at a level, by summing over every way the study may come out.
///
/// # Errors
/// [`Unfit::Level`] where the expectation cannot be.
pub fn exact_power(expected: Expected, pairs: u64, level: f64) -> Result<f64, Unfit> {
    let Expected { discordance, difference } = expected;
    if !(0.0..=1.0).contains(&discordance) || difference.abs() > discordance || !(level > 0.0 && level < 1.0) {
        return Err(Unfit::Level);
    }
    if discordance == 0.0 {
        return Ok(0.0);
    }
    let first = f64::midpoint(1.0, difference / discordance);
    let mut power = 0.0;
    for disagreeing in 0..=pairs {
        let (_, likely) = heads(disagreeing, pairs, discordance)?;
        // Ways that cannot change the sum are not looked at, so that hundreds of pairs take no time.
        if likely > 1e-12 {
            power += likely * rejecting(disagreeing, pairs, first, level)?;
        }
    }
    Ok(power.min(1.0))
}

fn rejecting(disagreeing: u64, pairs: u64, first: f64, level: f64) -> Result<f64, Unfit> {
    let mut share = 0.0;
    for first_only in 0..=disagreeing {
        let table = Discordance { first_only, second_only: disagreeing - first_only, pairs };
        if table.exact_p()? <= level {
            share += heads(first_only, disagreeing, first)?.1;
        }
    }
    Ok(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: the same sum written with `binom.pmf` and `binomtest`.
    #[test]
    fn power_is_the_sum_over_every_outcome() {
        let known =
            [(40, 0.3, 0.2, 0.567_379_453_7), (100, 0.25, 0.15, 0.836_735_121_2), (60, 0.5, 0.1, 0.142_135_330_6)];
        for (pairs, discordance, difference, power) in known {
            let ours = exact_power(Expected { discordance, difference }, pairs, 0.05).unwrap();
            assert!((ours - power).abs() < 1e-9, "{pairs}: {ours}");
        }
    }

    #[test]
    fn without_an_effect_the_power_stays_below_the_level() {
        let none = Expected { discordance: 0.4, difference: 0.0 };
        assert!(exact_power(none, 80, 0.05).unwrap() <= 0.05);
        assert_eq!(exact_power(Expected { discordance: 0.1, difference: 0.2 }, 10, 0.05), Err(Unfit::Level));
    }
}
