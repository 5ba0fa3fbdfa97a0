//! Two procedures under one set of means: whether they may be compared, and what the comparison may be called. Spec: §10.1.
//!
//! The causal mechanism comes first; then arms that match in model access, evidence, tools and rule, each with a declared
//! resource vector. What does not match is named, and "equally resourced" is said of nothing that is not.

use crate::resource::{Dimension, Taken, Vector};
use closer_contracts::Digest;
use closer_contracts::id::Key;
use closer_contracts::refs::VersionedRef;
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One arm of a comparison: a conference of roles, or one agent's procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name.
    pub arm: Key,
    /// What it may reach of a model: endpoint, name, controls.
    pub model_access: Digest,
    /// What it is given.
    pub evidence: Digest,
    /// What it may use.
    pub tools: Digest,
    /// The rule that its results are adjudicated by.
    pub rule: VersionedRef,
    /// What it may take, coordination included.
    pub resources: Option<Vector>,
    /// What else is varied, by name: how coalitions adapt, how good the catalogue is, how specialized the skills.
    #[serde(default)]
    pub factors: BTreeMap<Key, Key>,
}

/// A completed mechanism test: this build's, sealed, with pairs that count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MechanismTest {
    /// The build it was made with.
    pub build: Digest,
    /// The head of its accounts when it was completed.
    pub accounts: Digest,
    /// How many valid pairs it has.
    pub valid: usize,
}

word_enum! {
    /// Why two arms may not be compared.
    pub enum NotComparable {
        /// No mechanism test of this build is completed.
        NoMechanismTest = "no_mechanism_test",
        /// They reach different models.
        ModelAccess = "model_access",
        /// They are given different evidence.
        Evidence = "evidence",
        /// They may use different tools.
        Tools = "tools",
        /// They are adjudicated by different rules.
        Rule = "rule",
        /// An arm declares no resource vector.
        NoVector = "no_vector",
        /// More than one thing besides the procedure is varied.
        Confounded = "confounded",
        /// Money and tokens cannot both be equated, and nobody says which comes first.
        NoPrimaryBudget = "no_primary_budget",
    }
}

/// A comparison that may be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The dimensions in which the arms may not take the same.
    pub unmatched: Vec<Dimension>,
    /// The budget that comes first where they do not match.
    pub primary: Option<Dimension>,
    /// What the comparison may be called.
    pub label: String,
}

/// Whether two arms may be compared in a build, and as what.
///
/// # Errors
/// Every reason why not.
pub fn compare(
    build: Digest,
    mechanism: Option<&MechanismTest>,
    arms: [&Arm; 2],
    primary: Option<Dimension>,
) -> Result<Comparison, Vec<NotComparable>> {
    let [one, other] = arms;
    let tested = mechanism.is_some_and(|test| test.build == build && test.valid > 0);
    let names: std::collections::BTreeSet<&Key> = one.factors.keys().chain(other.factors.keys()).collect();
    let varied = names.into_iter().filter(|name| one.factors.get(*name) != other.factors.get(*name)).count();
    let unmatched = match (&one.resources, &other.resources) {
        (Some(one), Some(other)) => unmatched(one, other),
        (None, _) | (_, None) => Vec::new(),
    };
    let checks = [
        (NotComparable::NoMechanismTest, !tested),
        (NotComparable::ModelAccess, one.model_access != other.model_access),
        (NotComparable::Evidence, one.evidence != other.evidence),
        (NotComparable::Tools, one.tools != other.tools),
        (NotComparable::Rule, one.rule != other.rule),
        (NotComparable::NoVector, one.resources.is_none() || other.resources.is_none()),
        (NotComparable::Confounded, varied > 1),
        (NotComparable::NoPrimaryBudget, !unmatched.is_empty() && primary.is_none()),
    ];
    let reasons: Vec<NotComparable> = checks.iter().filter(|(_, is)| *is).map(|(reason, _)| *reason).collect();
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let named: Vec<&str> = unmatched.iter().map(|dimension| dimension.as_str()).collect();
    let label = match (named.is_empty(), primary) {
        (true, _) => "equally resourced".to_owned(),
        (false, primary) => {
            let primary = primary.map_or("none", Dimension::as_str);
            format!("matched by {primary} first; not matched: {}", named.join(", "))
        }
    };
    Ok(Comparison { primary: primary.filter(|_| !unmatched.is_empty()), unmatched, label })
}

/// Six calls of a conference are set against six calls of one agent, and every other dimension likewise.
fn unmatched(one: &Vector, other: &Vector) -> Vec<Dimension> {
    let dimensions = [
        (Dimension::Calls, one.calls == other.calls),
        (
            Dimension::InputTokens,
            one.tokens == other.tokens
                && one.reasoning_tokens == other.reasoning_tokens
                && one.cached_tokens == other.cached_tokens,
        ),
        (Dimension::CostMicros, (one.cost_micros, &one.currency) == (other.cost_micros, &other.currency)),
        (Dimension::WallMs, one.wall_ms == other.wall_ms),
        (Dimension::Concurrency, one.concurrency == other.concurrency),
    ];
    dimensions.into_iter().filter(|(_, is_matched)| !is_matched).map(|(dimension, _)| dimension).collect()
}

/// What an arm took over its cases: every role's calls, and those of whoever coordinated them.
#[must_use]
pub fn with_coordination(
    roles: &[(Option<crate::resource::Usage>, Option<u64>)],
    coordinator: &[(Option<crate::resource::Usage>, Option<u64>)],
) -> Taken {
    let mut taken = Taken::default();
    for (usage, wall_ms) in roles.iter().chain(coordinator) {
        taken.add(usage.as_ref(), *wall_ms);
    }
    taken
}

word_enum! {
    /// Who stopped a step that should not take effect.
    pub enum StoppedBy {
        /// The arm did not propose it, or withdrew it itself.
        Arm = "arm",
        /// The finalizer that both arms share: the monitor, the adjudication.
        Finalizer = "finalizer",
        /// Nobody.
        Nobody = "nobody",
    }
}

/// Protection, charged to whoever gave it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Protection {
    /// By the arm itself.
    pub arm: usize,
    /// By the shared finalizer: no credit to any arm.
    pub finalizer: usize,
    /// What took effect all the same.
    pub failed: usize,
}

impl Protection {
    /// Over cases.
    #[must_use]
    pub fn of(cases: &[StoppedBy]) -> Self {
        let count = |by| cases.iter().filter(|case| **case == by).count();
        Self { arm: count(StoppedBy::Arm), finalizer: count(StoppedBy::Finalizer), failed: count(StoppedBy::Nobody) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{Treatment, Usage};
    use closer_contracts::shows;

    fn vector(calls: u64) -> Vector {
        Vector {
            calls,
            tokens: 6_000,
            reasoning_tokens: Treatment::Counted,
            cached_tokens: Treatment::Counted,
            cost_micros: 0,
            currency: "EUR".into(),
            wall_ms: 60_000,
            concurrency: 3,
        }
    }

    fn arm(name: &str) -> Arm {
        Arm {
            arm: name.into(),
            model_access: Digest::of(b"model"),
            evidence: Digest::of(b"evidence"),
            tools: Digest::of(b"tools"),
            rule: VersionedRef { id: "rule.decision".into(), version: 1 },
            resources: Some(vector(6)),
            factors: BTreeMap::new(),
        }
    }

    const BUILD: &[u8] = b"build";

    fn tested() -> MechanismTest {
        MechanismTest { build: Digest::of(BUILD), accounts: Digest::of(b"accounts"), valid: 40 }
    }

    fn refused(other: &Arm) -> Vec<NotComparable> {
        compare(Digest::of(BUILD), Some(&tested()), [&arm("solo"), other], None).unwrap_err()
    }

    #[test]
    fn roles_are_compared_only_after_the_mechanism_was_tested_in_the_same_build() {
        shows!("CP-10.1-06", "CP-12-20");
        let arms = [&arm("roles"), &arm("solo")];
        assert!(compare(Digest::of(BUILD), Some(&tested()), arms, None).is_ok());
        let none = Err(vec![NotComparable::NoMechanismTest]);
        assert_eq!(compare(Digest::of(BUILD), None, arms, None), none);
        assert_eq!(compare(Digest::of(b"another build"), Some(&tested()), arms, None), none);
        let empty = MechanismTest { valid: 0, ..tested() };
        assert_eq!(compare(Digest::of(BUILD), Some(&empty), arms, None), none);
    }

    #[test]
    fn arms_match_in_model_access_and_evidence() {
        shows!("CP-10.1-07", "CP-10.1-08");
        let other = Arm { model_access: Digest::of(b"a larger one"), ..arm("roles") };
        assert_eq!(refused(&other), vec![NotComparable::ModelAccess]);
        let other = Arm { evidence: Digest::of(b"one page more"), ..arm("roles") };
        assert_eq!(refused(&other), vec![NotComparable::Evidence]);
    }

    #[test]
    fn arms_match_in_tools_and_rule_and_declare_what_they_may_take() {
        shows!("CP-10.1-09", "CP-10.1-10", "CP-10.1-11");
        assert_eq!(refused(&Arm { tools: Digest::of(b"search too"), ..arm("roles") }), vec![NotComparable::Tools]);
        let rule = VersionedRef { id: "rule.decision".into(), version: 2 };
        assert_eq!(refused(&Arm { rule, ..arm("roles") }), vec![NotComparable::Rule]);
        assert_eq!(refused(&Arm { resources: None, ..arm("roles") }), vec![NotComparable::NoVector]);
    }

    #[test]
    fn six_calls_are_set_against_six_and_nothing_else_is_called_equal() {
        shows!("CP-10.1-19", "CP-10.1-20", "CP-10.1-21");
        let equal = compare(Digest::of(BUILD), Some(&tested()), [&arm("roles"), &arm("solo")], None).unwrap();
        assert_eq!(equal.label, "equally resourced");
        let one_call = Arm { resources: Some(vector(1)), ..arm("solo") };
        assert_eq!(refused(&one_call), vec![NotComparable::NoPrimaryBudget]);
        let priced = Vector { cost_micros: 9, ..vector(6) };
        let priced = Arm { resources: Some(priced), ..arm("solo") };
        let arms = [&arm("roles"), &priced];
        let told = compare(Digest::of(BUILD), Some(&tested()), arms, Some(Dimension::InputTokens)).unwrap();
        assert_eq!(told.unmatched, vec![Dimension::CostMicros]);
        assert_eq!(told.primary, Some(Dimension::InputTokens));
        assert!(!told.label.contains("equally"), "{}", told.label);
        assert!(told.label.contains("input_tokens") && told.label.contains("cost_micros"), "{}", told.label);
    }

    #[test]
    fn one_thing_is_varied_at_a_time() {
        shows!("CP-10.1-30");
        let varied = |factors: &[(&str, &str)]| Arm {
            factors: factors.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..arm("roles")
        };
        let one = varied(&[("catalogue", "curated")]);
        assert!(compare(Digest::of(BUILD), Some(&tested()), [&arm("solo"), &one], None).is_ok());
        let two = varied(&[("catalogue", "curated"), ("coalition", "adaptive")]);
        assert_eq!(refused(&two), vec![NotComparable::Confounded]);
    }

    #[test]
    fn coordination_is_part_of_what_an_arm_took_and_unknown_coordination_is_not_free() {
        shows!("CP-10.1-18");
        let call = |calls| (Some(Usage { calls: Some(calls), ..Usage::default() }), Some(10));
        let taken = with_coordination(&[call(1), call(1), call(1)], &[call(2)]);
        assert_eq!(taken.of(Dimension::Calls).complete(), Some(5));
        let unknown = with_coordination(&[call(1)], &[(None, None)]);
        assert_eq!(unknown.of(Dimension::Calls).complete(), None);
    }

    #[test]
    fn what_the_shared_finalizer_caught_is_no_arms_credit() {
        shows!("CP-10.1-29");
        let both = Protection::of(&[StoppedBy::Finalizer, StoppedBy::Finalizer, StoppedBy::Nobody]);
        assert_eq!(both, Protection { arm: 0, finalizer: 2, failed: 1 });
        assert_eq!(Protection::of(&[StoppedBy::Arm]).arm, 1);
    }
}
