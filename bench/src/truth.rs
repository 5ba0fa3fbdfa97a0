//! Truth maintenance: invalidating one premise suspends everything that rests on it, in one commit, at a cost that grows
//! with what is affected and not with what is accepted.

use crate::report::{Report, median};
use anyhow::{Result, anyhow, ensure};
use closer_contracts::Digest;
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::item::{Claim, Dependency, Item, ItemKind, Standing};
use closer_contracts::refs::{Plain, VersionedRef};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{
    EvidenceRelation, Proposition, ReferenceStatus, Relation, ScopeMatch, TargetVersion, ValidAt,
};
use closer_scenarios::Deployment;
use closer_scenarios::founding::scope;
use closer_state::{Derivation, State, apply, propose};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many claims rest on the premise
    #[arg(long, default_value_t = 10_000)]
    affected: usize,
    /// How many claims have nothing to do with it
    #[arg(long, default_value_t = 50_000)]
    unrelated: usize,
    /// How often each figure is taken
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

fn claim(id: &str) -> Item {
    let proposition_id = format!("p-{id}");
    let relation = EvidenceRelation {
        proposition_id: proposition_id.as_str().into(),
        evidence_id: "evidence-1".into(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation: Relation::Supports,
        valid_at: ValidAt {
            observed_at: Timestamp::from_unix_ms(0),
            observation_sequence_ref: "observations".into(),
            observation_version: 1,
            target_version: TargetVersion::Unknown,
        },
        limitations: Vec::new(),
    };
    Item::Claim(Claim {
        claim_id: id.into(),
        proposition: Proposition {
            proposition_id: proposition_id.as_str().into(),
            subject: "thing".into(),
            predicate: "is".into(),
            object: Plain(serde_json::Value::Bool(true)),
            scope: scope(),
        },
        applicability: vec!["while the target is unchanged".into()],
        relations: vec![relation],
        limitations: Vec::new(),
        exceptions: Vec::new(),
        sufficiency_rule_ref: VersionedRef { id: "rule.sufficiency".into(), version: 1 },
        standing: Standing::Current,
    })
}

fn rests(number: usize, premise: &str, dependent: &str) -> Item {
    Item::Dependency(Dependency {
        dependency_id: format!("dependency-{number}").as_str().into(),
        premise: premise.into(),
        dependent: dependent.into(),
    })
}

/// How what rests on the premise rests on it.
#[derive(Clone, Copy)]
enum Shape {
    /// Each on the one before.
    Chain,
    /// All on the premise itself.
    FanOut,
}

/// A state where `affected` claims rest on the claim `c-0`, and `unrelated` others on nothing.
fn founded(shape: Shape, affected: usize, unrelated: usize) -> Result<State> {
    let founding = Deployment::default().founding;
    let mut items = founding.items;
    items.extend((0..=affected).map(|number| claim(&format!("c-{number}"))));
    items.extend((0..unrelated).map(|number| claim(&format!("u-{number}"))));
    items.extend((1..=affected).map(|number| {
        let premise = match shape {
            Shape::Chain => number - 1,
            Shape::FanOut => 0,
        };
        rests(number, &format!("c-{premise}"), &format!("c-{number}"))
    }));
    items.extend(closer_protocol::services::identities(&founding.profile.user).into_iter().map(Item::Identity));
    let (_, state) = closer_state::genesis(founding.profile, items).map_err(|denied| anyhow!("{denied:?}"))?;
    Ok(state)
}

fn invalidation(state: &State) -> Result<Delta> {
    let delta = Delta {
        delta_id: "delta-1".into(),
        parent_state: state.reference(),
        changes: vec![Change::Retract { kind: ItemKind::Claim, id: "c-0".into(), reason: "It does not hold.".into() }],
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: Vec::new(),
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    };
    delta.sealed().map_err(|fault| anyhow!("{fault}"))
}

/// How long it takes to admit the invalidation with all that follows, and to replay it, in milliseconds.
fn measure(shape: Shape, affected: usize, unrelated: usize, rounds: usize) -> Result<(f64, f64)> {
    let state = founded(shape, affected, unrelated)?;
    let delta = invalidation(&state)?;
    let (mut admitting, mut replaying) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let started = Instant::now();
        let derivation = Derivation::at(Timestamp::from_unix_ms(1_700_000_000_000));
        let (commit, next) =
            propose(&state, delta.clone(), &derivation).map_err(|denied| anyhow!("it is denied: {denied:?}"))?;
        admitting.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(commit.derived.len() == affected, "{} of {affected} were reached", commit.derived.len());
        let started = Instant::now();
        let replayed = apply(&state, &commit)?;
        replaying.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(replayed.root() == next.root(), "the replay differs");
    }
    Ok((median(admitting), median(replaying)))
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report::default();
    let Options { affected, unrelated, rounds } = *options;
    for (name, shape) in [("chain", Shape::Chain), ("fan_out", Shape::FanOut)] {
        let (tenth, _) = measure(shape, affected / 10, 0, rounds)?;
        let (whole, replay) = measure(shape, affected, 0, rounds)?;
        let (beside, _) = measure(shape, affected, unrelated, rounds)?;
        report.row(&format!("{name}_tenth_ms"), tenth, "a tenth as many rest on the premise");
        report.row(&format!("{name}_ms"), whole, "retraction, every suspension and the new root in one commit");
        report.row(&format!("{name}_replay_ms"), replay, "the same commit from its record");
        report.row(&format!("{name}_us_each"), whole * 1e3 / affected as f64, "for each claim that is suspended");
        report.row(
            &format!("{name}_growth"),
            whole / tenth / 10.0,
            "1 is linear in what is affected; target at most 2",
        );
        report.row(&format!("{name}_beside"), beside / whole, "beside many unrelated claims; target at most 2");
    }
    report.finish()
}
