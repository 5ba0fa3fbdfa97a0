//! Several questions of one study: Holm over the frozen list. Whatever is not on the list is exploratory.

/// The p of each question, adjusted for all of them, in the order given.
///
/// Holm S. A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6 (1979) 65–70.
#[must_use]
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = ps.iter().copied().enumerate().collect();
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut adjusted = vec![1.0; ps.len()];
    let mut least = 0.0_f64;
    for (rank, (index, p)) in order.into_iter().enumerate() {
        least = least.max((p * (ps.len() - rank) as f64).min(1.0));
        if let Some(slot) = adjusted.get_mut(index) {
            *slot = least;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// statsmodels 0.15.0, `multipletests(ps, method="holm")`.
    #[test]
    fn holm_is_that_of_statsmodels() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005, 0.2]);
        for (ours, theirs) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.2]) {
            assert!((ours - theirs).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.3]), vec![0.3]);
        assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
    }
}
