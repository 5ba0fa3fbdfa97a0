//! A scripted policy: rules written down beforehand, applied to the packet and to nothing else.
//!
//! Every rule whose conditions hold contributes, in the order written; a rule with `last` ends the list. A rule binds
//! names to items of the packet (the newest that fits, so the last in the list), may demand that others are absent, and
//! compares values of bound items. What it contributes are drafts of the contracts' own objects with `{{place}}` in their
//! texts (see [`super::pattern`]).

use super::pattern::{Bindings, Bound, Pattern, Test, each, fill, fits, passes};
use super::{answer, no_answer};
use closer_contracts::canonical;
use closer_contracts::evidence::Evidence;
use closer_contracts::fault::Fault;
use closer_contracts::work::{
    ContextItem, EvidenceRelation, ReferenceStatus, Relation, ScopeMatch, ValidAt, Work, WorkResult,
};
use closer_protocol::port::{NoAnswer, Participant, Pending};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Contract of participant `policy`: ordered rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The rules, in order.
    pub rules: Vec<PolicyRule>,
}

/// One rule. Everything but its name may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// What people call it.
    pub name: String,
    /// The assessment roles it answers in; empty for all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The items it needs, by the names it gives them, bound in the order of the names.
    #[serde(default)]
    pub items: BTreeMap<String, Pattern>,
    /// It applies only where no item fits any of these.
    #[serde(default)]
    pub absent: Vec<Pattern>,
    /// Tests on the bound items.
    #[serde(default)]
    pub when: Vec<Test>,
    /// Applies once to each item that fits the pattern of this name, instead of to the newest alone.
    #[serde(default)]
    pub each: Option<String>,
    /// Whether no later rule is looked at once this one applied.
    #[serde(default)]
    pub last: bool,
    /// What bound evidence says about propositions.
    #[serde(default)]
    pub assess: Vec<Assessment>,
    /// Drafts of proposed claims.
    #[serde(default)]
    pub claims: Vec<Value>,
    /// Drafts of action proposals.
    #[serde(default)]
    pub propose: Vec<Value>,
    /// Drafts of objections.
    #[serde(default)]
    pub objections: Vec<Value>,
    /// Drafts of what is left open.
    #[serde(default)]
    pub unresolved: Vec<Value>,
}

/// What one bound item of evidence says about a proposition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assessment {
    /// The bound item; its content must be an EVIDENCE body.
    pub evidence: String,
    /// The proposition; `{{place}}` may stand in it.
    pub proposition_id: String,
    /// What the item says.
    pub relation: Relation,
    /// Whether it is about the proposition's scope. Default `applicable`.
    #[serde(default = "applicable")]
    pub scope_match: ScopeMatch,
    /// Limits to state besides the evidence's own.
    #[serde(default)]
    pub limitations: Vec<String>,
}

const fn applicable() -> ScopeMatch {
    ScopeMatch::Applicable
}

impl Policy {
    pub(super) fn check(&self) -> Result<(), Fault> {
        each(&self.rules, PolicyRule::check).map_err(|fault| fault.within("rules"))
    }

    /// Answers one unit of work. The same packet always has the same answer.
    ///
    /// # Errors
    /// When a rule that applies cannot be filled from the packet, naming the rule.
    pub fn answer(&self, work: &Work) -> Result<WorkResult, NoAnswer> {
        let mut result = WorkResult {
            work_id: work.work_id.clone(),
            claims: Vec::new(),
            action_proposals: Vec::new(),
            assessments: Vec::new(),
            objections: Vec::new(),
            unresolved: Vec::new(),
            skill_receipts: Vec::new(),
            extensions: None,
        };
        for rule in &self.rules {
            let applied =
                rule.apply(work, &mut result).map_err(|why| no_answer(format!("rule `{}`: {why}", rule.name)))?;
            if applied && rule.last {
                break;
            }
        }
        Ok(result)
    }
}

impl PolicyRule {
    /// Whether it can be followed. A pattern may refer to the names before its own, the one of `each` to all others.
    fn check(&self) -> Result<(), Fault> {
        let (mut before, mut others) = (Vec::new(), Vec::new());
        for (name, pattern) in &self.items {
            if Some(name) == self.each.as_ref() {
                continue;
            }
            Bindings(&before).pattern(pattern).map_err(|fault| fault.within(name).within("items"))?;
            before.push(name);
        }
        others.extend(before);
        if let Some(name) = &self.each {
            let Some(pattern) = self.items.get(name) else {
                return Err(Fault::schema(format!("`each` names no pattern of `items`: `{name}`")).within("each"));
            };
            Bindings(&others).pattern(pattern).map_err(|fault| fault.within(name).within("items"))?;
            others.push(name);
        }
        let bound = Bindings(&others);
        each(&self.absent, |pattern| bound.pattern(pattern)).map_err(|fault| fault.within("absent"))?;
        let when = each(&self.when, |test| {
            bound.place(&test.field).map_err(|fault| fault.within("field"))?;
            bound.value(&test.value).map_err(|fault| fault.within("value"))
        });
        when.map_err(|fault| fault.within("when"))?;
        let assess = each(&self.assess, |assessment| {
            bound.name(&assessment.evidence).map_err(|fault| fault.within("evidence"))?;
            let proposition = Value::String(assessment.proposition_id.clone());
            bound.value(&proposition).map_err(|fault| fault.within("proposition_id"))
        });
        assess.map_err(|fault| fault.within("assess"))?;
        let drafts = [
            ("claims", &self.claims),
            ("propose", &self.propose),
            ("objections", &self.objections),
            ("unresolved", &self.unresolved),
        ];
        drafts
            .iter()
            .try_for_each(|(list, drafts)| each(drafts, |draft| bound.value(draft)).map_err(|fault| fault.within(list)))
    }

    fn apply(&self, work: &Work, result: &mut WorkResult) -> Result<bool, String> {
        if !self.roles.is_empty() && !self.roles.iter().any(|role| role == work.role.as_str()) {
            return Ok(false);
        }
        let mut applied = false;
        for bound in self.bindings(work)? {
            let mut holds = true;
            for pattern in &self.absent {
                holds &= newest(work, pattern, &bound)?.is_none();
            }
            for test in &self.when {
                holds = holds && passes(test, &bound)?;
            }
            if holds {
                self.contribute(&bound, result)?;
                applied = true;
            }
        }
        Ok(applied)
    }

    /// The ways to bind the rule's names: none where an item is missing, one, or one for each item of `each`.
    fn bindings<'a>(&'a self, work: &'a Work) -> Result<Vec<Bound<'a>>, String> {
        let mut first = Bound::new();
        for (name, pattern) in self.items.iter().filter(|(name, _)| Some(*name) != self.each.as_ref()) {
            match newest(work, pattern, &first)? {
                Some(item) => first.insert(name, item),
                None => return Ok(Vec::new()),
            };
        }
        let Some(each) = &self.each else {
            return Ok(vec![first]);
        };
        let pattern = self.items.get(each).ok_or_else(|| format!("`each` names no pattern: `{each}`"))?;
        let mut bindings = Vec::new();
        for item in &work.context_items {
            if fits(item, pattern, &first)? {
                let mut bound = first.clone();
                bound.insert(each, item);
                bindings.push(bound);
            }
        }
        Ok(bindings)
    }

    fn contribute(&self, bound: &Bound<'_>, result: &mut WorkResult) -> Result<(), String> {
        for assessment in &self.assess {
            result.assessments.push(assessment.relation(bound)?);
        }
        draft(&self.claims, bound, &mut result.claims)?;
        draft(&self.propose, bound, &mut result.action_proposals)?;
        draft(&self.objections, bound, &mut result.objections)?;
        draft(&self.unresolved, bound, &mut result.unresolved)
    }
}

impl Assessment {
    fn relation(&self, bound: &Bound<'_>) -> Result<EvidenceRelation, String> {
        let item =
            bound.get(self.evidence.as_str()).ok_or_else(|| format!("no item is bound to `{}`", self.evidence))?;
        let evidence: Evidence = canonical::from_value(item.content.0.clone())
            .map_err(|fault| format!("`{}` is no evidence: {fault}", self.evidence))?;
        let proposition = fill(&Value::String(self.proposition_id.clone()), bound)?;
        let proposition = proposition.as_str().ok_or_else(|| format!("`{}` is no id", self.proposition_id))?;
        let mut limitations = evidence.limitations;
        limitations.extend(self.limitations.iter().map(|text| text.as_str().into()));
        Ok(EvidenceRelation {
            proposition_id: proposition.into(),
            evidence_id: evidence.evidence_id,
            // The packet carries the item's bytes, and they have the cited digest.
            reference_status: ReferenceStatus::Resolved,
            scope_match: self.scope_match,
            relation: self.relation,
            valid_at: ValidAt {
                observed_at: evidence.observed_at,
                observation_sequence_ref: evidence.target_binding.observation_sequence_ref,
                observation_version: evidence.target_binding.observation_version,
                target_version: evidence.target_binding.target_version,
            },
            limitations,
        })
    }
}

/// The newest item that fits: the last in the packet.
pub(super) fn newest<'a>(
    work: &'a Work,
    pattern: &[Test],
    bound: &Bound<'_>,
) -> Result<Option<&'a ContextItem>, String> {
    for item in work.context_items.iter().rev() {
        if fits(item, pattern, bound)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

fn draft<T: Serialize + DeserializeOwned>(
    drafts: &[Value],
    bound: &Bound<'_>,
    into: &mut Vec<T>,
) -> Result<(), String> {
    for value in drafts {
        let filled = canonical::from_value(fill(value, bound)?).map_err(|fault| fault.to_string())?;
        into.push(filled);
    }
    Ok(())
}

impl Participant for Policy {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Vec<u8>, NoAnswer>> {
        Box::pin(async move { answer(&self.answer(work)?) })
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
