//! A shorter plan that still fails: steps are left out, many at a time and then few, for as long as what remains still
//! breaks the same thing.

use super::plan::Plan;
use super::{Violation, run_plan};

/// The most runs that shrinking may take.
const RUNS_MAX: usize = 2_000;

/// What was broken, without the ids and figures in it.
fn kind_of(violation: &Violation) -> String {
    let words = violation.what.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// Shortens a plan that fails; gives it as it is if it does not.
#[must_use]
pub fn shrink(plan: &Plan, violation: Violation) -> (Plan, Violation) {
    let mut best = Plan { steps: plan.steps.iter().copied().take(violation.step).collect(), ..plan.clone() };
    let kind = kind_of(&violation);
    let mut found = violation;
    let mut runs = 0;
    let mut chunk = (best.steps.len() / 2).max(1);
    loop {
        let mut start = 0;
        let mut shorter = false;
        while start < best.steps.len() && runs < RUNS_MAX {
            let kept = best.steps.iter().take(start).chain(best.steps.iter().skip(start + chunk));
            let tried = Plan { steps: kept.copied().collect(), ..best.clone() };
            runs += 1;
            match run_plan(&tried) {
                Err(again) if kind_of(&again) == kind => {
                    (best, found, shorter) = (tried, again, true);
                }
                Ok(_) | Err(_) => start += chunk,
            }
        }
        match (chunk, shorter) {
            _ if runs >= RUNS_MAX => return (best, found),
            (1, false) => return (best, found),
            (1, true) => {}
            (_, _) => chunk /= 2,
        }
    }
}
