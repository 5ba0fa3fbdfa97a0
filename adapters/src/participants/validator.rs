//! A deterministic validator: it can only object.
//!
//! For every item of the packet that a rule is about, each of its demands must hold; otherwise the item is objected to.
//! A packet whose items are not what their references name has no answer. More items never make an objection go away.

use super::pattern::{Bindings, Bound, Pattern, Test, each, fits, holds};
use super::{answer, no_answer};
use crate::declared::pointer;
use closer_contracts::Check;
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::work::{ContextItem, Objection, ReasonClass, Work, WorkResult};
use closer_protocol::port::{NoAnswer, Participant, Pending};
use serde::{Deserialize, Serialize};

/// Contract of participant `validator`: demands on the items of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// The rules, in order.
    pub rules: Vec<ValidatorRule>,
}

/// What every item of one sort must show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidatorRule {
    /// What people call it.
    pub name: String,
    /// The items it is about.
    pub items: Pattern,
    /// What each of them must show: JSON pointers into its content, compared with fixed values.
    pub demands: Vec<Test>,
    /// Why it objects otherwise.
    pub reason_class: ReasonClass,
}

impl Validator {
    /// Whether its rules can be followed: they know one item each and no name for it.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let rules = each(&self.rules, |rule| {
            Bindings(&[]).pattern(&rule.items).map_err(|fault| fault.within("items"))?;
            each(&rule.demands, |demand| pointer(&demand.field, "field")).map_err(|fault| fault.within("demands"))
        });
        rules.map_err(|fault| fault.within("rules"))
    }

    /// Answers one unit of work. The same packet always has the same answer.
    ///
    /// # Errors
    /// When an item is not what its reference names, or a rule refers to another item.
    pub fn answer(&self, work: &Work) -> Result<WorkResult, NoAnswer> {
        work.check().map_err(|fault| no_answer(fault.to_string()))?;
        let mut objections = Vec::new();
        for rule in &self.rules {
            for item in &work.context_items {
                if fits(item, &rule.items, &Bound::new()).map_err(no_answer)? {
                    objections.extend(rule.objection(item));
                }
            }
        }
        Ok(WorkResult {
            work_id: work.work_id.clone(),
            claims: Vec::new(),
            action_proposals: Vec::new(),
            assessments: Vec::new(),
            objections,
            unresolved: Vec::new(),
            skill_receipts: Vec::new(),
            extensions: None,
        })
    }
}

impl ValidatorRule {
    fn objection(&self, item: &ContextItem) -> Option<Objection> {
        let unmet = self.demands.iter().find(|demand| {
            let actual = item.content.0.pointer(&demand.field);
            !actual.is_some_and(|actual| holds(actual, demand.comparison, &demand.value))
        });
        match branch!("validator.demand_unmet", unmet.is_some()) {
            true => Some(Objection {
                subject: item.reference.digest,
                reason_class: self.reason_class,
                text: crate::operations::reason(format!(
                    "{}: `{}` is not as demanded",
                    self.name,
                    unmet.map_or("", |demand| demand.field.as_str())
                )),
                evidence_ids: Vec::new(),
            }),
            false => None,
        }
    }
}

impl Participant for Validator {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Vec<u8>, NoAnswer>> {
        Box::pin(async move { answer(&self.answer(work)?) })
    }
}
