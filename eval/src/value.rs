//! The value ledger: what was estimated, assumed, measured, realized and spent, each in entries of its own. Spec: §11.
//!
//! Five kinds of entries and five kinds of outcomes, never added across kinds. A saving that was projected is none before bill
//! and service are verified, and capacity that a subscription leaves unused is no cash.

use closer_contracts::id::{EvidenceId, Key};
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

word_enum! {
    /// What an outcome is; one is never counted as another.
    pub enum OutcomeKind {
        /// Money that came in.
        Revenue = "revenue",
        /// Money that was verifiably not spent.
        AvoidedCost = "avoided_cost",
        /// Service that was kept.
        ServicePreserved = "service_preserved",
        /// Time from event to closure.
        CycleTime = "cycle_time",
        /// Explaining that was not needed.
        ExplanationSaved = "explanation_saved",
    }
}

word_enum! {
    /// What something costs to have.
    pub enum CostLine {
        /// Setting up.
        Setup = "setup",
        /// Keeping up.
        Maintenance = "maintenance",
        /// Running.
        Runtime = "runtime",
        /// Reviewing the system's own records.
        Review = "review",
    }
}

/// One entry. The member `kind` says which of the five it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ValueEntry {
    /// What something might come to.
    CandidateEstimate {
        /// As what.
        outcome: OutcomeKind,
        /// How much, in the unit of its kind.
        amount: i64,
        /// From what.
        basis: Key,
    },
    /// What is taken to be so.
    Assumption {
        /// What.
        text: Key,
    },
    /// Something measured on the way, which is no outcome.
    MeasuredIntermediate {
        /// What.
        measure: Key,
        /// How much.
        amount: i64,
        /// By what.
        evidence: EvidenceId,
    },
    /// What came true.
    RealizedEffect {
        /// As what.
        outcome: OutcomeKind,
        /// How much.
        amount: i64,
        /// The bill, or what else shows the amount.
        billing: EvidenceId,
        /// What shows that the service is still there.
        service: EvidenceId,
    },
    /// What it costs.
    OperatingCost {
        /// Of what.
        line: CostLine,
        /// How much, in millionths of the currency.
        amount_micros: u64,
    },
}

/// What does not go into the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotEntered {
    /// The evidence of a realized effect is not on record, or one item is to show both.
    #[error("bill and service are not both verified")]
    NotVerified,
    /// Unused capacity has no cash in it.
    #[error("capacity that was not used is no cash")]
    UnusedCapacity,
    /// It is another kind of entry.
    #[error("it is not an entry of this kind")]
    OtherKind,
}

/// The ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueLedger {
    entries: Vec<ValueEntry>,
}

/// The name under which a subscription's unused part is measured.
pub const UNUSED_CAPACITY: &str = "unused_capacity";

impl ValueLedger {
    /// Enters something; `is_verified` says of an evidence item whether it is on record and bears out what it is cited for.
    ///
    /// # Errors
    /// [`NotEntered`].
    pub fn enter(&mut self, entry: ValueEntry, is_verified: impl Fn(&EvidenceId) -> bool) -> Result<(), NotEntered> {
        match &entry {
            ValueEntry::RealizedEffect { billing, service, .. }
                if billing == service || !is_verified(billing) || !is_verified(service) =>
            {
                return Err(NotEntered::NotVerified);
            }
            ValueEntry::CandidateEstimate { basis, .. } if basis.as_str() == UNUSED_CAPACITY => {
                return Err(NotEntered::UnusedCapacity);
            }
            ValueEntry::RealizedEffect { .. }
            | ValueEntry::CandidateEstimate { .. }
            | ValueEntry::Assumption { .. }
            | ValueEntry::MeasuredIntermediate { .. }
            | ValueEntry::OperatingCost { .. } => {}
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Every entry, in order.
    #[must_use]
    pub fn entries(&self) -> &[ValueEntry] {
        &self.entries
    }

    /// What was realized, kind by kind. There is no sum over them.
    #[must_use]
    pub fn realized(&self) -> BTreeMap<OutcomeKind, i64> {
        let mut realized = BTreeMap::new();
        for entry in &self.entries {
            if let ValueEntry::RealizedEffect { outcome, amount, .. } = entry {
                *realized.entry(*outcome).or_default() += amount;
            }
        }
        realized
    }

    /// What it cost, line by line; a line that nobody entered is unknown.
    #[must_use]
    pub fn costs(&self) -> BTreeMap<CostLine, Option<u64>> {
        let mut costs: BTreeMap<CostLine, Option<u64>> = CostLine::ALL.iter().map(|line| (*line, None)).collect();
        for entry in &self.entries {
            if let ValueEntry::OperatingCost { line, amount_micros } = entry {
                let sum = costs.entry(*line).or_default();
                *sum = Some(sum.unwrap_or(0).saturating_add(*amount_micros));
            }
        }
        costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    fn realized(billing: &str, service: &str) -> ValueEntry {
        ValueEntry::RealizedEffect {
            outcome: OutcomeKind::AvoidedCost,
            amount: 40,
            billing: billing.into(),
            service: service.into(),
        }
    }

    #[test]
    fn five_kinds_of_entries_stay_what_they_are() {
        shows!("CP-11-01");
        let estimate = serde_json::json!({ "kind": "candidate_estimate", "outcome": "avoided_cost", "amount": 40, "basis": "page" });
        assert!(serde_json::from_value::<ValueEntry>(estimate.clone()).is_ok());
        for kind in ["assumption", "measured_intermediate", "realized_effect", "operating_cost"] {
            let mut written_as = estimate.clone();
            written_as["kind"] = kind.into();
            assert!(serde_json::from_value::<ValueEntry>(written_as).is_err(), "an estimate is no {kind}");
        }
    }

    #[test]
    fn outcomes_of_five_kinds_have_no_sum_and_costs_four_lines() {
        shows!("CP-11-02", "CP-11-13");
        assert_eq!(OutcomeKind::ALL.len(), 5);
        let mut ledger = ValueLedger::default();
        for outcome in OutcomeKind::ALL {
            let entry = ValueEntry::RealizedEffect {
                outcome: *outcome,
                amount: 7,
                billing: "bill".into(),
                service: "service".into(),
            };
            ledger.enter(entry, |_| true).unwrap();
        }
        assert_eq!(ledger.realized().len(), 5);
        assert!(ledger.realized().values().all(|amount| *amount == 7));
        ledger.enter(ValueEntry::OperatingCost { line: CostLine::Review, amount_micros: 9 }, |_| true).unwrap();
        let costs = ledger.costs();
        assert_eq!(costs.len(), 4);
        assert_eq!((costs[&CostLine::Review], costs[&CostLine::Setup]), (Some(9), None));
    }

    #[test]
    fn however_much_was_done_nothing_is_realized_by_it() {
        shows!("CP-9-10");
        let mut ledger = ValueLedger::default();
        for number in 0..1_000 {
            let episode = ValueEntry::MeasuredIntermediate {
                measure: "episodes".into(),
                amount: 1,
                evidence: format!("evidence-{number}").as_str().into(),
            };
            ledger.enter(episode, |_| true).unwrap();
            let hoped =
                ValueEntry::CandidateEstimate { outcome: OutcomeKind::Revenue, amount: 40, basis: "page".into() };
            ledger.enter(hoped, |_| true).unwrap();
        }
        assert_eq!(ledger.entries().len(), 2_000);
        assert!(ledger.realized().is_empty());
    }

    #[test]
    fn unused_capacity_is_no_cash_and_a_projection_is_not_realized() {
        shows!("CP-11-03", "CP-11-04");
        let mut ledger = ValueLedger::default();
        let unused = ValueEntry::CandidateEstimate {
            outcome: OutcomeKind::AvoidedCost,
            amount: 12,
            basis: UNUSED_CAPACITY.into(),
        };
        assert_eq!(ledger.enter(unused, |_| true), Err(NotEntered::UnusedCapacity));
        for (entry, verified) in [
            (realized("bill", "service"), vec!["bill"]),
            (realized("bill", "service"), vec!["service"]),
            (realized("bill", "bill"), vec!["bill"]),
        ] {
            let is_verified = |id: &EvidenceId| verified.contains(&id.as_str());
            assert_eq!(ledger.enter(entry, is_verified), Err(NotEntered::NotVerified));
        }
        assert!(ledger.entries().is_empty() && ledger.realized().is_empty());
        ledger.enter(realized("bill", "service"), |_| true).unwrap();
        assert_eq!(ledger.realized()[&OutcomeKind::AvoidedCost], 40);
    }
}
