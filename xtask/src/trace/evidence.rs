//! Claims that a test or a scenario shows rows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::source::{Sources, relative};

/// The folder of scenario files, relative to the workspace root.
pub(crate) const CATALOG: &str = "scenarios/catalog";

/// One claim: these rows, by these marks.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) rows: Vec<String>,
    /// Empty for rows that no branch carries.
    pub(crate) marks: Vec<String>,
    /// `file:line`, for messages.
    pub(crate) place: String,
    /// How to run it; `None` when the claim is not a test's first statement.
    pub(crate) runner: Option<Runner>,
}

/// Something that turns red when a guard it relies on is inverted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Runner {
    /// A test function of the target whose root file is `target`.
    Test { package: String, target: PathBuf, path: String },
    /// A scenario, by its path below the catalogue without `.toml`.
    Scenario { name: String },
}

impl Runner {
    /// How the generated pages name it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Test { package, path, .. } => {
                let package = package.strip_prefix("closer-").unwrap_or(package);
                format!("{package} {path}")
            }
            Self::Scenario { name } => format!("scenario {name}"),
        }
    }
}

/// All `shows!` calls of the workspace.
pub(crate) fn of_tests(sources: &Sources) -> Vec<Evidence> {
    let mut found = Vec::new();
    for file in &sources.files {
        for shows in &file.scan.shows {
            let runner = shows.test.as_ref().map(|path| Runner::Test {
                package: file.package.clone(),
                target: file.target.src_path.clone(),
                path: path.clone(),
            });
            found.push(Evidence {
                rows: shows.rows.clone(),
                marks: shows.marks.clone(),
                place: format!("{}:{}", file.path, shows.line),
                runner,
            });
        }
    }
    found
}

/// The keys of a scenario file that tie it to rows; the scenarios crate owns and checks all others.
#[derive(Debug, Deserialize)]
struct Head {
    #[serde(default)]
    rows: Vec<String>,
    mark: Option<String>,
}

/// All scenario files that name rows.
///
/// # Errors
/// When a scenario cannot be read or is not TOML.
pub(crate) fn of_scenarios(root: &Path) -> Result<Vec<Evidence>> {
    let mut found = Vec::new();
    for name in scenario_names(root)? {
        let place = format!("{CATALOG}/{name}.toml");
        let text = std::fs::read_to_string(root.join(&place)).with_context(|| format!("cannot read {place}"))?;
        let head: Head = toml::from_str(&text).with_context(|| format!("cannot read {place}"))?;
        if !head.rows.is_empty() {
            let runner = Some(Runner::Scenario { name });
            found.push(Evidence { rows: head.rows, marks: head.mark.into_iter().collect(), place, runner });
        }
    }
    Ok(found)
}

/// The scenarios by path below the catalogue without `.toml`, sorted.
///
/// # Errors
/// When the catalogue cannot be listed.
pub(crate) fn scenario_names(root: &Path) -> Result<Vec<String>> {
    let catalog = root.join(CATALOG);
    let mut folders = vec![catalog.clone()];
    let mut names = Vec::new();
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                names.push(relative(&catalog, &path.with_extension("")));
            }
        }
    }
    names.sort();
    Ok(names)
}
