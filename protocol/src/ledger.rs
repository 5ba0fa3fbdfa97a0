//! The budget ledger: one accounting for every process, as a fold of its movements. Spec: §8.3, DEC-62, DEC-69.
//!
//! Budgets form a path from the narrowest to the deployment's; a reservation debits every budget on the path, whole or not
//! at all. What is uncertain stays reserved. What was used and nobody measured is booked as the whole reservation, and what
//! was used beyond it is an incident. Ordinary work leaves the profile's reserved lane to reconciliation (DEC-106).

use crate::entry::{Entry, LedgerEntry, LedgerMovement, Notice, NoticeKind};
use crate::sequence::Deciding;
use crate::view::View;
use crate::{streams, urgent};
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::{BudgetId, Key, ObligationId, Text};
use closer_contracts::record::Lane;
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
    lane: Amounts,
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
            self.lane = profile.reserved_budget.clone();
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

    /// Whether the whole worst case fits every budget on the path. What the reserved lane holds of the deployment's budget is
    /// there for `Lane::Reserved` alone.
    #[must_use]
    pub fn room(&self, path: &[BudgetId], worst_case: &Amounts, lane: Lane) -> Reservation {
        let none = Balance::default();
        for budget in path {
            let balance = self.balances.get(budget).unwrap_or(&none);
            let limits = self.limit(budget);
            let differs = limits.cost_micros.is_some() && limits.currency != worst_case.currency;
            if branch!("ledger.currency_differs", differs && worst_case.cost_micros != Some(0)) {
                return Reservation::Uncapped(format!("{budget}: currency"));
            }
            let kept = match lane == Lane::Ordinary && *budget == deployment_budget() {
                true => figures(&self.lane),
                false => figures(&Amounts::default()),
            };
            let wanted = figures(worst_case);
            for (i, ((limit, wanted), kept)) in figures(limits).into_iter().zip(wanted).zip(kept).enumerate() {
                let name = DIMENSIONS.get(i).copied().unwrap_or_default();
                let taken = |side: &[u64; 5]| side.get(i).copied().unwrap_or_default();
                let Some(limit) = limit else { continue };
                let Some(wanted) = wanted else {
                    return Reservation::Uncapped(format!("{budget}: {name}"));
                };
                let total = [taken(&balance.used), taken(&balance.reserved), wanted, kept.unwrap_or(0)];
                let total = total.into_iter().fold(0_u64, u64::saturating_add);
                if branch!("ledger.exceeds", total > limit) {
                    return Reservation::Exceeds(format!("{budget}: {name}"));
                }
            }
        }
        Reservation::Fits
    }

    /// The first dimension in which more was used than is held under a reservation, with both figures.
    fn overshoot(&self, reservation: &Key, used: &Amounts) -> Option<(&'static str, u64, u64)> {
        let held = figures(self.held(reservation)?);
        let sides = DIMENSIONS.into_iter().zip(figures(used)).zip(held);
        let over = |((name, used), held): ((_, Option<u64>), Option<u64>)| Some((name, used?, held?));
        sides.filter_map(over).find(|(_, used, held)| branch!("ledger.overshoot", used > held))
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
                    self.move_all(&budgets, &measured(&entry.amounts, &held), |balance, i, amount| {
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

/// What is booked as used: what was measured, else the whole reservation (DEC-70).
fn measured(used: &Amounts, held: &Amounts) -> Amounts {
    let or_held = |used: Option<u64>, held: Option<u64>| match branch!("ledger.unmeasured", used.is_none()) {
        true => held,
        false => used,
    };
    Amounts {
        calls: or_held(used.calls, held.calls),
        tokens: or_held(used.tokens, held.tokens),
        cost_micros: or_held(used.cost_micros, held.cost_micros),
        currency: held.currency.clone(),
        time_ms: or_held(used.time_ms, held.time_ms),
        concurrency: None,
    }
}

/// The lane that work on an obligation draws on: what reconciles a restriction may use what is kept free for it (DEC-106).
#[must_use]
pub fn lane_of(view: &View, obligation_id: &ObligationId) -> Lane {
    let reconciles = |version: &u64| {
        let receipt = view.commits.get(version).and_then(|committed| committed.receipt.as_ref());
        let details = receipt.and_then(|receipt| receipt.urgent_details.as_ref());
        details.is_some_and(|details| details.reconciliation_obligation_id == *obligation_id)
    };
    match branch!("ledger.reconciles", view.outstanding.keys().any(reconciles)) {
        true => Lane::Reserved,
        false => Lane::Ordinary,
    }
}

/// Records a reservation of the whole unit on every budget of an obligation's path.
pub(crate) fn reserve(
    deciding: &mut Deciding<'_>,
    reservation: Key,
    obligation_id: &ObligationId,
    amounts: Amounts,
) -> Result<(), Fault> {
    let budgets = Ledger::path(obligation_id);
    record(deciding, LedgerEntry { reservation, budgets, movement: LedgerMovement::Reserved, amounts })
}

/// Gives a reservation back of which certainly nothing was used.
pub(crate) fn release(deciding: &mut Deciding<'_>, reservation: Key) -> Result<(), Fault> {
    let (budgets, amounts) = (Vec::new(), Amounts::default());
    record(deciding, LedgerEntry { reservation, budgets, movement: LedgerMovement::Released, amounts })
}

/// Settles a reservation with what was used, `None` where nobody measured it. More than was reserved is an incident on
/// record, never absorbed (§8.3).
pub(crate) fn settle(deciding: &mut Deciding<'_>, reservation: Key, used: Amounts) -> Result<(), Fault> {
    if let Some((dimension, used, held)) = deciding.view.ledger.overshoot(&reservation, &used) {
        let notice = Notice {
            kind: NoticeKind::BudgetIncident,
            key: Key::new(format!("overshoot.{reservation}")),
            owner: deciding.view.state.profile().map(|profile| profile.user.clone()),
            subjects: vec![reservation.clone()],
            text: Text::new(format!("{used} {dimension} were used where {held} were reserved")),
        };
        urgent::record_notice(deciding, notice)?;
    }
    record(deciding, LedgerEntry { reservation, budgets: Vec::new(), movement: LedgerMovement::Settled, amounts: used })
}

fn record(deciding: &mut Deciding<'_>, entry: LedgerEntry) -> Result<(), Fault> {
    let name = entry.reservation.as_str().replace(' ', "_");
    let id = crate::derived_id(&format!("ledger.{}", entry.movement), &name);
    deciding.batch.push(&id, Entry::Ledger(entry), vec![streams::ledger()], Vec::new())?;
    Ok(())
}
