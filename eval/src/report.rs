//! The report: one folder that is read from disk, made from the accounts, the artifacts and the truth, and from nothing
//! else; so whoever has the folder makes every figure again. Spec: §10.1, §10.3, §10.4.
//!
//! What a run's chance touches (how long things took, which process answered, attempts that were interrupted) stands in files
//! of its own, [`VOLATILE`]; all others are the same bytes whenever the same answers are in.

mod compared;
mod figures;
mod interpretation;
mod page;
mod pairs;
mod parquet;
mod procedures;
mod svg;
mod tables;

pub use figures::{Arm, Figures, Floors, Flow, Influence, KindFigures};
pub use interpretation::Interpretation;
pub use procedures::{Charged, ProcedureFigures};

use crate::accounts::{AccountError, Accounts};
use crate::artifacts::Artifacts;
use crate::bundle::{self, OnTheWay};
use crate::file::{self, Misfit};
use crate::freeze::{Freeze, NotFrozen};
use crate::item::{self, StudyItem};
use crate::plan::Plan;
use crate::runner::ACCOUNTS;
use crate::score::{self, NotScored, Scores};
use closer_contracts::Digest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of a report that a run's chance touches. Every other file is the same for the same answers.
pub const VOLATILE: [&str; 10] = [
    "attempts.csv",
    "attempts.parquet",
    "calls.csv",
    "calls.parquet",
    "charges.csv",
    "charges.parquet",
    "index.html",
    "resources.csv",
    "resources.parquet",
    "resources.svg",
];

/// The folder of the report in a revision's folder.
pub const FOLDER: &str = "report";
/// Plan, items and truth as they were run, in a revision's folder.
const SOURCES: &str = "sources";

/// The schemas that a revision was run under.
const SCHEMAS: &str = "schemas.json";

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum NotReported {
    /// The outputs could not be scored.
    #[error(transparent)]
    NotScored(#[from] NotScored),
    /// A file does not fit.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The accounts are damaged.
    #[error(transparent)]
    Accounts(#[from] AccountError),
    /// The sources are not what was frozen.
    #[error(transparent)]
    NotFrozen(#[from] NotFrozen),
    /// A figure could not be written down.
    #[error("{0}")]
    Unwritable(String),
    /// The accounts are of another freeze.
    #[error("the accounts are not those of this freeze")]
    OtherFreeze,
    /// A file of the report is not what the outputs give.
    #[error("not what the outputs give: {}", .0.join(", "))]
    Differs(Vec<String>),
}

/// Keeps plan, items, participant files and truth beside what was made of them, once the outputs are sealed.
///
/// # Errors
/// [`Misfit`] where one cannot be copied.
pub fn keep_sources(plan_path: &Path, revision: &Path) -> Result<(), NotReported> {
    let plan = Plan::read(plan_path)?;
    let folder = plan_path.parent().unwrap_or(Path::new("."));
    let to = revision.join(SOURCES);
    let named = plan_path.file_name().map(PathBuf::from).unwrap_or_default();
    let mut files = vec![(folder.join(&named), to.join("plan.toml"))];
    files.extend([&plan.items, &plan.truth].map(|path| (folder.join(path), to.join(path))));
    files.extend(plan.files().map(|path| (folder.join(path), to.join(path))));
    // A later version may have other schemas; what was run stays what it was.
    let schemas = to.join(SCHEMAS);
    let written = serde_json::to_vec(&crate::freeze::schemas()).unwrap_or_default();
    std::fs::create_dir_all(&to)
        .and_then(|()| if schemas.exists() { Ok(()) } else { std::fs::write(&schemas, written) })
        .map_err(|source| Misfit::Unreadable { path: schemas, source })?;
    for (from, to) in files {
        let io = |source| Misfit::Unreadable { path: to.clone(), source };
        to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        std::fs::copy(&from, &to).map_err(|source| Misfit::Unreadable { path: from, source })?;
    }
    Ok(())
}

/// What a report is made of.
pub(crate) struct Material {
    pub(crate) plan: Plan,
    pub(crate) freeze: Freeze,
    pub(crate) digest: Digest,
    pub(crate) items: Vec<StudyItem>,
    pub(crate) accounts: Accounts,
    pub(crate) scores: Scores,
    pub(crate) on_the_way: OnTheWay,
    /// None where they were withheld.
    pub(crate) artifacts: Option<Artifacts>,
}

/// The freeze of a folder, with its digest; its accounts are of this one.
pub(crate) fn freeze_of(folder: &Path, accounts: &Accounts) -> Result<(Freeze, Digest), NotReported> {
    let path = folder.join("freeze.json");
    let freeze: Freeze = serde_json::from_slice(&file::bytes(&path)?)
        .map_err(|error| Misfit::at(&path, error.line(), "freeze", error.to_string()))?;
    let digest = closer_contracts::canonical::digest_of(&freeze).map_err(NotFrozen::from)?;
    match accounts.opened().is_none_or(|(_, _, of)| *of != digest) {
        true => Err(NotReported::OtherFreeze),
        false => Ok((freeze, digest)),
    }
}

/// What the report of a whole revision is made of: its sources are what was frozen, and its outputs are scored.
pub(crate) fn material(revision: &Path) -> Result<Material, NotReported> {
    let sources = revision.join(SOURCES);
    let plan = Plan::read(&sources.join("plan.toml"))?;
    let path = sources.join(SCHEMAS);
    let schemas = serde_json::from_slice(&file::bytes(&path)?)
        .map_err(|error| Misfit::at(&path, error.line(), "schemas", error.to_string()))?;
    let now = crate::freeze::parts(&plan, &sources, &schemas)?;
    let accounts = Accounts::read(&revision.join(ACCOUNTS))?;
    let (freeze, digest) = freeze_of(revision, &accounts)?;
    let changed: Vec<_> = freeze.parts.keys().copied().filter(|part| freeze.parts.get(part) != now.get(part)).collect();
    if !changed.is_empty() {
        return Err(NotFrozen::Changed { revision: freeze.revision, changed }.into());
    }
    let artifacts = Artifacts::at(&revision.join("artifacts"));
    let items = item::read(&sources.join(&plan.items))?;
    let scores = score::score(&plan, &items, &sources.join(&plan.truth), &accounts, &artifacts)?;
    let on_the_way = bundle::on_the_way(&scores, &artifacts)?;
    Ok(Material { plan, freeze, digest, items, accounts, scores, on_the_way, artifacts: Some(artifacts) })
}

/// Every file of the report of a revision or of a redacted bundle, by its name.
///
/// # Errors
/// [`NotReported`].
pub fn make(revision: &Path) -> Result<BTreeMap<String, Vec<u8>>, NotReported> {
    let material = if bundle::is_redacted(revision) { bundle::material(revision) } else { material(revision) }?;
    let Material { plan, accounts, scores, .. } = &material;
    let figures = Figures::of(plan, &material.freeze, material.digest, &material.items, scores);
    let arms = figures::arms(plan, accounts);
    let mut files = tables::files(accounts, scores, &figures, &arms)?;
    files.insert("flow.svg".to_owned(), svg::flow(&figures).into_bytes());
    files.insert("forest.svg".to_owned(), svg::forest(&figures).into_bytes());
    files.insert("slopes.svg".to_owned(), svg::slopes(scores).into_bytes());
    files.insert("resources.svg".to_owned(), svg::resources(&arms).into_bytes());
    let mut read = Vec::new();
    if let Some(artifacts) = &material.artifacts {
        files.extend(pairs::files(scores, artifacts)?);
        read = interpretation::read(revision, artifacts)?;
    }
    let compared = procedures::told(&material, revision)?;
    if let Some(compared) = &compared {
        files.extend(compared.files.clone());
    }
    let index = page::index(plan, &figures, &arms, scores, &files, &read, compared.as_ref());
    files.insert("index.html".to_owned(), index.into_bytes());
    Ok(files)
}

/// Writes the report of a revision.
///
/// # Errors
/// [`NotReported`].
pub fn write(revision: &Path) -> Result<PathBuf, NotReported> {
    let folder = revision.join(FOLDER);
    for (name, bytes) in make(revision)? {
        let path = folder.join(name);
        let io = |source| Misfit::Unreadable { path: path.clone(), source };
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        std::fs::write(&path, bytes).map_err(io)?;
    }
    Ok(folder)
}

/// Makes every figure again from the accounts, artifacts and truth, and compares; needs nothing but the folder.
///
/// # Errors
/// [`NotReported::Differs`] with the files that differ; whatever keeps the figures from being made.
pub fn verify(revision: &Path) -> Result<usize, NotReported> {
    let made = make(revision)?;
    let folder = revision.join(FOLDER);
    let differs = made.iter().filter(|(name, bytes)| std::fs::read(folder.join(name)).ok().as_ref() != Some(bytes));
    let differs: Vec<String> = differs.map(|(name, _)| name.clone()).collect();
    match differs.is_empty() {
        true => Ok(made.len()),
        false => Err(NotReported::Differs(differs)),
    }
}
