//! The freeze: what a study fixes, by digest, before anything is dispatched. Spec: §10.3.
//!
//! A run needs a freeze that the files still agree with. Whatever changes afterwards is a new revision with a folder and a
//! report of its own; the earlier ones stay as they are.

use crate::file::{self, Misfit};
use crate::plan::Plan;
use closer_contracts::canonical::digest_of;
use closer_contracts::fault::Fault;
use closer_contracts::{Digest, word_enum};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

word_enum! {
    /// What is frozen, part by part.
    pub enum Part {
        /// The items.
        Fixtures = "fixtures",
        /// The participant: its declaration, its prompts, the files it is made of.
        Prompts = "prompts",
        /// The schemas of items, truth and answers.
        Schemas = "schemas",
        /// Seed and repeats.
        ModelControls = "model_controls",
        /// The truth, by digest, and what a lost score counts as.
        Scoring = "scoring",
        /// Resource vector, retries and prices.
        Budgets = "budgets",
        /// Which worlds and which procedures are compared.
        Mappings = "mappings",
        /// How the figures are made.
        AnalysisPlan = "analysis_plan",
    }
}

/// A freeze.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// The study.
    pub study: String,
    /// Its revision, from 1.
    pub revision: u32,
    /// The digest of each part.
    pub parts: BTreeMap<Part, Digest>,
    /// The digest of the freeze before this one.
    pub previous: Option<Digest>,
}

/// Why there is no freeze to run on.
#[derive(Debug, thiserror::Error)]
pub enum NotFrozen {
    /// There is none.
    #[error("nothing is frozen yet; `closer eval freeze` fixes the plan")]
    Never,
    /// Parts have changed since.
    #[error(
        "changed since revision {revision} was frozen: {}; `closer eval freeze` begins a new revision",
        shown(changed)
    )]
    Changed {
        /// The revision.
        revision: u32,
        /// The parts.
        changed: Vec<Part>,
    },
    /// A part is not digested in it.
    #[error("revision {revision} does not fix {}", shown(missing))]
    Incomplete {
        /// The revision.
        revision: u32,
        /// The parts.
        missing: Vec<Part>,
    },
    /// A file does not fit.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// A part has no canonical form.
    #[error("{0}")]
    Fault(#[from] Fault),
}

fn shown(parts: &[Part]) -> String {
    parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(", ")
}

/// The schemas of items, truth and answers, as this version has them.
#[must_use]
pub fn schemas() -> serde_json::Value {
    let schemas = [
        schemars::schema_for!(crate::item::StudyItem),
        schemars::schema_for!(crate::truth::Truth),
        schemars::schema_for!(closer_contracts::work::WorkResult),
    ];
    json!(schemas.map(schemars::Schema::to_value))
}

/// The digests of every part as the files stand now, under these schemas. The truth is digested and not read.
///
/// # Errors
/// [`NotFrozen::Misfit`], [`NotFrozen::Fault`].
pub fn parts(plan: &Plan, folder: &Path, schemas: &serde_json::Value) -> Result<BTreeMap<Part, Digest>, NotFrozen> {
    let files: BTreeMap<String, Digest> = plan
        .participant
        .files()
        .iter()
        .map(|path| Ok((path.display().to_string(), file::digest(&folder.join(path))?)))
        .collect::<Result<_, Misfit>>()?;
    let truth = file::digest(&folder.join(&plan.truth))?;
    let mut mappings = json!({ "study": plan.study, "controls": plan.controls });
    if let (Some(procedures), Some(mappings)) = (&plan.procedures, mappings.as_object_mut()) {
        mappings.insert("comparison".to_owned(), procedures.frozen(folder)?);
    }
    let analysis = &plan.analysis;
    Ok([
        (Part::Fixtures, file::digest(&folder.join(&plan.items))?),
        (Part::Prompts, digest_of(&json!({ "participant": plan.participant, "files": files }))?),
        (Part::Schemas, digest_of(schemas)?),
        (Part::ModelControls, digest_of(&json!({ "seed": plan.seed, "repeats": plan.repeats }))?),
        (Part::Scoring, digest_of(&json!({ "truth": truth, "lost": analysis.lost_score_percent }))?),
        (Part::Budgets, digest_of(&json!([plan.resources, plan.retry, plan.prices]))?),
        (Part::Mappings, digest_of(&mappings)?),
        (Part::AnalysisPlan, digest_of(&json!({ "analysis": analysis, "expected": plan.expected }))?),
    ]
    .into())
}

/// The folder of a revision, beside the plan.
#[must_use]
pub fn folder_of(folder: &Path, plan: &Plan, revision: u32) -> PathBuf {
    folder.join(format!("{}-revision-{revision}", plan.study))
}

const FILE: &str = "freeze.json";

/// The newest freeze of a study, with its folder.
///
/// # Errors
/// [`Misfit`] where it cannot be read.
pub fn newest(folder: &Path, plan: &Plan) -> Result<Option<(Freeze, PathBuf)>, Misfit> {
    let mut found = None;
    for revision in 1.. {
        let of_revision = folder_of(folder, plan, revision);
        let path = of_revision.join(FILE);
        if !path.exists() {
            break;
        }
        let freeze = serde_json::from_slice(&file::bytes(&path)?)
            .map_err(|error| Misfit::at(&path, error.line(), "freeze", error.to_string()))?;
        found = Some((freeze, of_revision));
    }
    Ok(found)
}

/// Freezes a plan: the revision that is frozen already where nothing has changed, else a new one.
///
/// # Errors
/// [`NotFrozen`].
pub fn freeze(plan: &Plan, folder: &Path) -> Result<(Freeze, PathBuf), NotFrozen> {
    let parts = parts(plan, folder, &schemas())?;
    let newest = newest(folder, plan)?;
    if let Some((freeze, path)) = &newest
        && freeze.parts == parts
    {
        return Ok((freeze.clone(), path.clone()));
    }
    let previous = newest.as_ref().map(|(freeze, _)| digest_of(freeze)).transpose()?;
    let revision = newest.map_or(1, |(freeze, _)| freeze.revision + 1);
    let freeze = Freeze { study: plan.study.to_string(), revision, parts, previous };
    let of_revision = folder_of(folder, plan, revision);
    let path = of_revision.join(FILE);
    let written = std::fs::create_dir_all(&of_revision)
        .and_then(|()| std::fs::write(&path, serde_json::to_vec_pretty(&freeze).unwrap_or_default()));
    written.map_err(|source| Misfit::Unreadable { path, source })?;
    Ok((freeze, of_revision))
}

/// The freeze that a run stands on: complete, and what the files still are.
///
/// # Errors
/// [`NotFrozen`].
pub fn held(plan: &Plan, folder: &Path) -> Result<(Freeze, PathBuf), NotFrozen> {
    let (freeze, path) = newest(folder, plan)?.ok_or(NotFrozen::Never)?;
    let revision = freeze.revision;
    let missing: Vec<Part> = Part::ALL.iter().copied().filter(|part| !freeze.parts.contains_key(part)).collect();
    if !missing.is_empty() {
        return Err(NotFrozen::Incomplete { revision, missing });
    }
    let now = parts(plan, folder, &schemas())?;
    let changed: Vec<Part> = Part::ALL.iter().copied().filter(|part| freeze.parts.get(part) != now.get(part)).collect();
    match changed.is_empty() {
        true => Ok((freeze, path)),
        false => Err(NotFrozen::Changed { revision, changed }),
    }
}
