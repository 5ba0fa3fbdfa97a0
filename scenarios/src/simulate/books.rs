//! A second accounting of budgets, from the movements on the disk: what must stand in the ledger.

use closer_contracts::id::{BudgetId, Key};
use closer_contracts::refs::Amounts;
use closer_protocol::View;
use closer_protocol::entry::{LedgerEntry, LedgerMovement, NoticeKind};
use std::collections::BTreeMap;

/// The dimensions that are added up, in the order of [`figures`].
const DIMENSIONS: [&str; 4] = ["calls", "tokens", "cost_micros", "time_ms"];

fn figures(amounts: &Amounts) -> [Option<u64>; 4] {
    [amounts.calls, amounts.tokens, amounts.cost_micros, amounts.time_ms]
}

/// What was used of each budget, and what is held under each reservation.
#[derive(Debug, Default)]
pub(super) struct Books {
    used: BTreeMap<BudgetId, [u64; 4]>,
    held: BTreeMap<Key, (Vec<BudgetId>, Amounts)>,
    /// Reservations that were overdrawn.
    overdrawn: Vec<Key>,
}

impl Books {
    /// Enters a durable movement. What nobody measured counts as used in full (§8.3).
    pub(super) fn enter(&mut self, entry: &LedgerEntry) {
        match entry.movement {
            LedgerMovement::Reserved => {
                let held = (entry.budgets.clone(), entry.amounts.clone());
                self.held.insert(entry.reservation.clone(), held);
            }
            LedgerMovement::Released => drop(self.held.remove(&entry.reservation)),
            LedgerMovement::Settled => {
                let Some((budgets, reserved)) = self.held.remove(&entry.reservation) else { return };
                let (measured, reserved) = (figures(&entry.amounts), figures(&reserved));
                let over = |(measured, reserved): (&Option<u64>, &Option<u64>)| {
                    measured.zip(*reserved).is_some_and(|(measured, reserved)| measured > reserved)
                };
                if measured.iter().zip(&reserved).any(over) {
                    self.overdrawn.push(entry.reservation.clone());
                }
                for budget in budgets {
                    let sums = self.used.entry(budget).or_default();
                    for ((sum, measured), reserved) in sums.iter_mut().zip(measured).zip(reserved) {
                        *sum += measured.or(reserved).unwrap_or(0);
                    }
                }
            }
        }
    }

    /// What the ledger has otherwise, or does not tell.
    pub(super) fn objection(&self, durable: &View) -> Option<String> {
        for (budget, used) in &self.used {
            for (name, in_ledger, _, _) in durable.ledger.balance(budget) {
                let here = DIMENSIONS.iter().position(|dimension| *dimension == name);
                let here = here.and_then(|index| used.get(index));
                if here.is_some_and(|here| *here != in_ledger) {
                    return Some(format!("{budget}: {in_ledger} {name} are booked where others were used"));
                }
            }
        }
        let told = |key: &Key| {
            let incident = format!("overshoot.{key}");
            let mut notices = durable.notices.values();
            notices.any(|notice| notice.kind == NoticeKind::BudgetIncident && notice.key.as_str() == incident)
        };
        let silent = self.overdrawn.iter().find(|key| !told(key));
        silent.map(|key| format!("more was used than was reserved for {key}, and nobody is told"))
    }
}
