//! What was observed, by tool, and the narrowest grants under which it would not have been asked about.

use super::{Foreseen, beside_authority};
use crate::call::{self, Fate, Known};
use crate::input::Moment;
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::id::{Key, OperationId};
use closer_contracts::refs::{Plain, Target, TargetPattern};
use closer_contracts::refusal::RefusalCode as Code;
use closer_contracts::time::Timestamp;
use closer_contracts::work::ActionProposal;
use std::collections::BTreeMap;

/// How many calls would have passed, been asked about, been refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Would have run.
    pub pass: u64,
    /// A person would have been asked.
    pub ask: u64,
    /// Would have been refused.
    pub refuse: u64,
}

impl Tally {
    const fn count(&mut self, foreseen: Foreseen) {
        match foreseen {
            Foreseen::Pass => self.pass += 1,
            Foreseen::Ask => self.ask += 1,
            Foreseen::Refuse => self.refuse += 1,
        }
    }
}

/// The calls of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// As they were observed.
    pub observed: Tally,
    /// As the same calls come out under the proposed grants beside those that there are.
    pub promised: Tally,
}

/// A grant that is proposed: exactly these targets and values of parameters, and no combination that was not observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    /// For which operation.
    pub operation: OperationId,
    /// On which targets.
    pub targets: Vec<Target>,
    /// With which values. A parameter that the target is made of is bound by the target.
    pub values: BTreeMap<Key, Vec<Plain>>,
}

/// What was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// When observing began and when it ends.
    pub period: Option<(Timestamp, Timestamp)>,
    /// The counts, by operation.
    pub counted: BTreeMap<OperationId, Counted>,
    /// The grants that are proposed.
    pub proposed: Vec<Proposed>,
}

/// One call, ungoverned or governed, that was made since observing began.
struct Seen<'a> {
    proposal: &'a ActionProposal,
    foreseen: Foreseen,
    lacks_only_a_grant: bool,
}

/// Counts what was observed and proposes grants.
#[must_use]
pub fn report(view: &View, at: &Moment) -> Report {
    let seen = seen(view, at);
    let grantable = seen.iter().filter(|seen| branch!("observe.only_a_grant_lacks", seen.lacks_only_a_grant));
    let exact: Vec<Proposed> = grantable.filter_map(|seen| exactly(view, seen.proposal)).collect();
    let mut counted: BTreeMap<OperationId, Counted> = BTreeMap::new();
    for seen in &seen {
        let counts = counted.entry(seen.proposal.operation.clone()).or_default();
        let granted = seen.lacks_only_a_grant && exactly(view, seen.proposal).is_some();
        counts.observed.count(seen.foreseen);
        counts.promised.count(if granted { Foreseen::Pass } else { seen.foreseen });
    }
    Report { period: view.ungoverned.period().cloned(), counted, proposed: merged(exact) }
}

fn seen<'a>(view: &'a View, at: &Moment) -> Vec<Seen<'a>> {
    let Some((began_at, _)) = view.ungoverned.period() else { return Vec::new() };
    let ungoverned = view.ungoverned.calls.values().map(|call| Seen {
        proposal: &call.proposal,
        foreseen: call.foreseen,
        lacks_only_a_grant: call.foreseen == Foreseen::Ask && call.code == Some(Code::MissingAuthority),
    });
    let governed = view.calls.since(began_at).filter_map(|known| {
        let foreseen = became(view, known)?;
        let (call, asks) = (&known.call, foreseen == Foreseen::Ask);
        let others = || beside_authority(view, &call.caller, (&call.obligation_id, &call.proposal), at);
        Some(Seen { proposal: &call.proposal, foreseen, lacks_only_a_grant: asks && others().is_empty() })
    });
    ungoverned.chain(governed).collect()
}

/// What became of a governed call; nothing while it is under way.
fn became(view: &View, known: &Known) -> Option<Foreseen> {
    Some(match call::fate(view, &known.call.call_id)? {
        Fate::UnderWay => return None,
        Fate::Done { .. } | Fate::Unknown { .. } | Fate::NoEffect { .. } => Foreseen::Pass,
        Fate::OnTheBench(_) | Fate::Refused { code: Code::MissingAuthority, .. } => Foreseen::Ask,
        Fate::Refused { .. } => Foreseen::Refuse,
    })
}

/// The grant of exactly this action. None where a grant cannot say so: an address that would be read as a beginning, a
/// value that no file can write.
fn exactly(view: &View, proposal: &ActionProposal) -> Option<Proposed> {
    let exact = TargetPattern::exactly(&proposal.target).is_exact();
    if branch!("observe.address_reads_as_beginning", !exact) {
        return None;
    }
    if branch!("observe.value_not_writable", proposal.parameters.values().any(|value| holds_null(&value.0))) {
        return None;
    }
    let entry = view.state.operation(&proposal.operation)?;
    let address = entry.contract.0.get("address").and_then(serde_json::Value::as_str).unwrap_or_default();
    let named_by = |name: &Key, value: &Plain| {
        address == format!("{{{name}}}") && value.as_text() == Some(proposal.target.address.as_str())
    };
    let bound = proposal.parameters.iter().filter(|(name, value)| !named_by(name, value));
    Some(Proposed {
        operation: proposal.operation.clone(),
        targets: vec![proposal.target.clone()],
        values: bound.map(|(name, value)| (name.clone(), vec![value.clone()])).collect(),
    })
}

/// A deployment file has no word for `null`.
fn holds_null(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(members) => members.values().any(holds_null),
    }
}

/// Fewer grants that allow the same and nothing more: two become one where they differ in one respect alone.
fn merged(exact: Vec<Proposed>) -> Vec<Proposed> {
    let mut merged: Vec<Proposed> = Vec::new();
    for mut next in exact {
        if merged.iter().any(|known| known.holds(&next)) {
            continue;
        }
        while let Some((index, joined)) =
            merged.iter().enumerate().find_map(|(index, known)| Some((index, joined(known, &next)?)))
        {
            merged.remove(index);
            next = joined;
        }
        merged.retain(|known| !next.holds(known));
        merged.push(next);
    }
    merged
}

impl Proposed {
    /// Whether it allows everything that another one allows.
    fn holds(&self, other: &Self) -> bool {
        let values = || self.values.iter().zip(other.values.values());
        self.operation == other.operation
            && self.values.keys().eq(other.values.keys())
            && other.targets.iter().all(|target| self.targets.contains(target))
            && values().all(|((_, own), other)| other.iter().all(|value| own.contains(value)))
    }
}

fn joined(known: &Proposed, next: &Proposed) -> Option<Proposed> {
    let alike = known.operation == next.operation && known.values.keys().eq(next.values.keys());
    if !alike {
        return None;
    }
    let targets_differ = !same(&known.targets, &next.targets);
    let values = known.values.iter().zip(next.values.values());
    let differing = values.filter(|((_, own), other)| !same(own, other)).count() + usize::from(targets_differ);
    if branch!("observe.joined_would_widen", differing > 1) {
        return None;
    }
    let mut joined = known.clone();
    add(&mut joined.targets, &next.targets);
    for (own, other) in joined.values.values_mut().zip(next.values.values()) {
        add(own, other);
    }
    Some(joined)
}

fn same<T: PartialEq>(one: &[T], other: &[T]) -> bool {
    one.len() == other.len() && one.iter().all(|value| other.contains(value))
}

fn add<T: PartialEq + Clone>(to: &mut Vec<T>, more: &[T]) {
    for value in more {
        if !to.contains(value) {
            to.push(value.clone());
        }
    }
}
