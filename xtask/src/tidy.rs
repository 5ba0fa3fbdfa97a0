//! What prose cannot keep: dead files, leftovers, function length, refusal pages, marks, the core's forbidden words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::arch::CORE;
use crate::cargo::Findings;
use crate::source::{self, SourceFile, Sources};

mod links;
mod ratchet;
mod refusals;

pub(crate) use ratchet::lower;

/// Files longer than this are listed; the remedy is a thought, not a cut.
const FILE_LINES_ASK: usize = 600;

/// Macros that must not stay.
const LEFTOVERS: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Paths that core code must not name, apart from its tests. Clippy bans the calls; this also sees what is only imported.
const CORE_FORBIDDEN: [&str; 11] = [
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand",
    "std::fs",
    "std::env",
    "std::net",
    "std::thread",
    "tokio",
    "ractor",
];

/// The one exception: a proof build has to read which branch it inverts.
const CORE_EXCEPTIONS: [(&str, &str); 1] = [("contracts/src/mark.rs", "std::env")];

/// Checks the tree.
///
/// # Errors
/// When the sources cannot be read.
pub(crate) fn check(root: &Path) -> Result<Findings> {
    let sources = source::load(root)?;
    let mut findings = Findings::default();
    findings.errors.extend(sources.dead.iter().map(|path| format!("{path}: no module reaches this file")));
    for file in sources.unique() {
        findings.errors.extend(leftovers(file));
        findings.errors.extend(forbidden_in_core(file));
        if file.line_count > FILE_LINES_ASK {
            findings.notices.push(format!("{}: {} lines", file.path, file.line_count));
        }
    }
    findings.errors.extend(repeated_marks(&sources));
    findings.errors.extend(ratchet::check(root, &sources)?);
    findings.errors.extend(refusals::check(root)?);
    findings.errors.extend(core_lints(root)?);
    findings.errors.extend(links::check(root)?);
    findings.errors.extend(crate::sim::guards::complaints(root, &sources)?);
    findings.summary = format!("{} files, {} marks", sources.unique().count(), sources.marks().len());
    Ok(findings)
}

fn leftovers(file: &SourceFile) -> Vec<String> {
    let macros = file.scan.macros.iter().filter(|word| LEFTOVERS.contains(&word.text.as_str()));
    let macros = macros.map(|word| format!("{}:{}: `{}!` must not stay", file.path, word.line, word.text));
    let attributes = file.scan.attributes.iter().filter(|word| {
        let name = word.text.split(['(', '=']).next().unwrap_or_default();
        matches!(name, "ignore" | "should_panic")
    });
    let attributes = attributes.map(|word| {
        format!("{}:{}: `#[{}]`: assert what happens today and say why it is wrong", file.path, word.line, word.text)
    });
    macros.chain(attributes).collect()
}

fn forbidden_in_core(file: &SourceFile) -> Vec<String> {
    if file.is_test || !CORE.iter().any(|name| file.path.starts_with(&format!("{name}/src/"))) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for word in file.scan.paths.iter().filter(|word| !word.is_test) {
        let path = format!("::{}::", word.text);
        for forbidden in CORE_FORBIDDEN {
            let is_named = if forbidden.contains("::") {
                path.contains(&format!("::{forbidden}::"))
            } else {
                // A bare crate name counts at the head of a path only; elsewhere it is an ordinary word.
                path.starts_with(&format!("::{forbidden}::"))
            };
            if is_named && !CORE_EXCEPTIONS.contains(&(file.path.as_str(), forbidden)) {
                found.push(format!("{}:{}: the pure core must not name `{}`", file.path, word.line, word.text));
            }
        }
    }
    found
}

/// A mark may repeat within one file, where one guard stands on two paths, and nowhere else.
fn repeated_marks(sources: &Sources) -> Vec<String> {
    let marks = sources.marks();
    let spread = marks.iter().filter_map(|(mark, places)| {
        let files: BTreeSet<&str> = places.iter().map(|(file, _)| file.path.as_str()).collect();
        (files.len() > 1).then(|| {
            let files: Vec<&str> = files.into_iter().collect();
            format!("mark `{mark}` stands in several files: {}", files.join(", "))
        })
    });
    spread.collect()
}

/// A crate's `clippy.toml` replaces the root's, so the four core files must repeat its lines and agree with each other.
fn core_lints(root: &Path) -> Result<Vec<String>> {
    let read = |path: String| -> Result<toml::Table> {
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        toml::from_str(&text).with_context(|| format!("cannot read {path}"))
    };
    let shared = read("clippy.toml".to_owned())?;
    let files: BTreeMap<&str, toml::Table> =
        CORE.iter().map(|name| Ok((*name, read(format!("{name}/clippy.toml"))?))).collect::<Result<_>>()?;
    Ok(disagreeing_lints(&shared, &files))
}

fn disagreeing_lints(shared: &toml::Table, files: &BTreeMap<&str, toml::Table>) -> Vec<String> {
    let mut errors = Vec::new();
    let first = files.values().next();
    for (name, lints) in files {
        if let Some((key, _)) = shared.iter().find(|(key, value)| lints.get(*key) != Some(*value)) {
            errors.push(format!("{name}/clippy.toml does not repeat `{key}` of the root file"));
        }
        if Some(lints) != first {
            errors.push(format!("{name}/clippy.toml differs from that of the other core crates"));
        }
    }
    errors
}

#[cfg(test)]
#[path = "tidy_tests.rs"]
mod tests;
