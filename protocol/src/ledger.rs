//! The budget ledger: one accounting for every process, as a fold of its movements. Spec: §8.3, DEC-62, DEC-69.
//!
//! Budgets form a path from the narrowest to the deployment's; a reservation debits every budget on the path, whole or not
//! at all. What is uncertain stays reserved.

use crate::entry::{LedgerEntry, LedgerMovement};
use closer_contracts::id::{BudgetId, Key, ObligationId};
use closer_contracts::refs::Amounts;
use closer_monitor::Reservation;
use closer_state::State;
use imbl::OrdMap;

/// What is used and reserved in one budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    used: [u64; 5],
    reserved: [u64; 5],
}

/// The ledger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    deployment: Amounts,
    obligation: Amounts,
    balances: OrdMap<BudgetId, Balance>,
    held: OrdMap<Key, (Vec<BudgetId>, Amounts)>,
}

/// The deployment's budget.
#[must_use]
pub fn deployment_budget() -> BudgetId {
    BudgetId::from("budget.deployment")
}

/// The budget of one obligation.
#[must_use]
pub fn obligation_budget(obligation_id: &ObligationId) -> BudgetId {
    BudgetId::new(crate::derived_id("budget", obligation_id.as_str()))
}

const DIMENSIONS: [&str; 5] = ["calls", "tokens", "cost_micros", "time_ms", "concurrency"];
const CONCURRENCY: usize = 4;

fn figures(amounts: &Amounts) -> [Option<u64>; 5] {
    [amounts.calls, amounts.tokens, amounts.cost_micros, amounts.time_ms, amounts.concurrency]
}

impl Ledger {
    /// Takes the limits from the profile in force.
    pub(crate) fn limit_from(&mut self, state: &State) {
        if let Some(profile) = state.profile() {
            self.deployment = profile.budget.clone();
            self.obligation = profile.obligation_budget.clone();
        }
    }

    /// The budgets that work on an obligation debits, from the narrowest outwards.
    #[must_use]
    pub fn path(obligation_id: &ObligationId) -> Vec<BudgetId> {
        vec![obligation_budget(obligation_id), deployment_budget()]
    }

    fn limit(&self, budget: &BudgetId) -> &Amounts {
        match *budget == deployment_budget() {
            true => &self.deployment,
            false => &self.obligation,
        }
    }

    /// Whether the whole worst case fits every budget on the path.
    #[must_use]
    pub fn room(&self, path: &[BudgetId], worst_case: &Amounts) -> Reservation {
        let none = Balance::default();
        for budget in path {
            let balance = self.balances.get(budget).unwrap_or(&none);
            let limits = figures(self.limit(budget));
            let wanted = figures(worst_case);
            for (i, (limit, wanted)) in limits.into_iter().zip(wanted).enumerate() {
                let name = DIMENSIONS.get(i).copied().unwrap_or_default();
                let taken = |side: &[u64; 5]| side.get(i).copied().unwrap_or_default();
                match (limit, wanted) {
                    (None, Some(_) | None) => {}
                    (Some(_), None) => return Reservation::Uncapped(format!("{budget}: {name}")),
                    (Some(limit), Some(wanted)) => {
                        let total =
                            taken(&balance.used).saturating_add(taken(&balance.reserved)).saturating_add(wanted);
                        if total > limit {
                            return Reservation::Exceeds(format!("{budget}: {name}"));
                        }
                    }
                }
            }
        }
        Reservation::Fits
    }

    /// What is held under a reservation.
    #[must_use]
    pub fn held(&self, reservation: &Key) -> Option<&Amounts> {
        self.held.get(reservation).map(|(_, amounts)| amounts)
    }

    /// What is used and reserved in a budget, by dimension name.
    #[must_use]
    pub fn balance(&self, budget: &BudgetId) -> Vec<(&'static str, u64, u64, Option<u64>)> {
        let none = Balance::default();
        let balance = self.balances.get(budget).unwrap_or(&none);
        let limits = figures(self.limit(budget));
        DIMENSIONS
            .iter()
            .zip(balance.used)
            .zip(balance.reserved)
            .zip(limits)
            .map(|(((name, used), reserved), limit)| (*name, used, reserved, limit))
            .collect()
    }

    /// Folds one movement.
    pub(crate) fn fold(&mut self, entry: &LedgerEntry) {
        match entry.movement {
            LedgerMovement::Reserved => {
                self.move_all(&entry.budgets, &entry.amounts, |balance, i, amount| {
                    if let Some(reserved) = balance.reserved.get_mut(i) {
                        *reserved = reserved.saturating_add(amount);
                    }
                });
                self.held.insert(entry.reservation.clone(), (entry.budgets.clone(), entry.amounts.clone()));
            }
            LedgerMovement::Settled | LedgerMovement::Released => {
                let Some((budgets, held)) = self.held.remove(&entry.reservation) else {
                    return;
                };
                self.move_all(&budgets, &held, |balance, i, amount| {
                    if let Some(reserved) = balance.reserved.get_mut(i) {
                        *reserved = reserved.saturating_sub(amount);
                    }
                });
                if entry.movement == LedgerMovement::Settled {
                    self.move_all(&budgets, &entry.amounts, |balance, i, amount| {
                        if let Some(used) = balance.used.get_mut(i).filter(|_| i != CONCURRENCY) {
                            *used = used.saturating_add(amount);
                        }
                    });
                }
            }
        }
    }

    fn move_all(&mut self, budgets: &[BudgetId], amounts: &Amounts, change: impl Fn(&mut Balance, usize, u64)) {
        for budget in budgets {
            let balance = self.balances.entry(budget.clone()).or_default();
            for (i, amount) in figures(amounts).into_iter().enumerate() {
                change(balance, i, amount.unwrap_or(0));
            }
        }
    }
}
