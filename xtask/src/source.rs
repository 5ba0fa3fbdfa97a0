//! The workspace's Rust source as its modules: which files are reached, which functions, marks and rows they hold.
//!
//! Files are lexed, not parsed: tokens are enough for everything asked here, they see into macro calls such as
//! `proptest!`, and comments and strings can never be mistaken for code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::{Metadata, Target, metadata};

mod scan;

pub(crate) use scan::{Function, Scan, scan};

/// One file as one target reaches it. A file that two targets declare appears twice.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the workspace root, with forward slashes.
    pub(crate) path: String,
    pub(crate) package: String,
    pub(crate) target: Target,
    pub(crate) is_test: bool,
    pub(crate) line_count: usize,
    pub(crate) scan: Scan,
}

/// All reached files and the ones nothing reaches.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) dead: Vec<String>,
}

impl Sources {
    /// Every file once, also where several targets reach it.
    pub(crate) fn unique(&self) -> impl Iterator<Item = &SourceFile> {
        let mut seen = BTreeSet::new();
        self.files.iter().filter(move |file| seen.insert(file.path.as_str()))
    }

    /// All branch marks of code that ships, with the places that carry them.
    pub(crate) fn marks(&self) -> BTreeMap<&str, Vec<(&SourceFile, usize)>> {
        let mut marks: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for file in self.unique().filter(|file| !file.is_test) {
            for mark in file.scan.marks.iter().filter(|mark| !mark.is_test) {
                marks.entry(mark.name.as_str()).or_default().push((file, mark.line));
            }
        }
        marks
    }
}

/// Reads every workspace member from its target roots on.
///
/// # Errors
/// When cargo metadata fails or a file is not lexically Rust.
pub(crate) fn load(root: &Path) -> Result<Sources> {
    let metadata = metadata(root)?;
    let mut files = Vec::new();
    for package in &metadata.packages {
        for target in &package.targets {
            follow(root, &package.name, target, &mut files)?;
        }
    }
    let dead = dead_files(root, &metadata, &files)?;
    Ok(Sources { files, dead })
}

/// A module file still to be read.
struct Pending {
    path: PathBuf,
    module: Vec<String>,
    is_test: bool,
    is_root: bool,
}

fn follow(root: &Path, package: &str, target: &Target, files: &mut Vec<SourceFile>) -> Result<()> {
    let mut pending =
        vec![Pending { path: target.src_path.clone(), module: Vec::new(), is_test: target.is_test(), is_root: true }];
    while let Some(next) = pending.pop() {
        let shown = relative(root, &next.path);
        let text = std::fs::read_to_string(&next.path).with_context(|| format!("cannot read {shown}"))?;
        let scan = scan(&text, &next.module, next.is_test).with_context(|| format!("cannot read {shown}"))?;
        for module in &scan.modules {
            // A module without a file is the compiler's to report.
            let Some(path) = module_file(&next, module) else {
                continue;
            };
            let mut names = module.parents.clone();
            names.push(module.name.clone());
            pending.push(Pending { path, module: names, is_test: module.is_test, is_root: false });
        }
        files.push(SourceFile {
            path: shown,
            package: package.to_owned(),
            target: target.clone(),
            is_test: next.is_test,
            line_count: text.lines().count(),
            scan,
        });
    }
    Ok(())
}

/// The file of `mod name;` by the compiler's rules.
fn module_file(declaring: &Pending, module: &scan::Module) -> Option<PathBuf> {
    let folder = declaring.path.parent().unwrap_or(Path::new(""));
    if let Some(path) = &module.path {
        return Some(folder.join(path)).filter(|path| path.is_file());
    }
    let stem = declaring.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut base = if declaring.is_root || stem == "mod" { folder.to_path_buf() } else { folder.join(stem) };
    // Inline modules around the declaration add their names as folders.
    base.extend(module.parents.iter().skip(declaring.module.len()));
    let candidates = [base.join(format!("{}.rs", module.name)), base.join(&module.name).join("mod.rs")];
    candidates.into_iter().find(|path| path.is_file())
}

fn dead_files(root: &Path, metadata: &Metadata, files: &[SourceFile]) -> Result<Vec<String>> {
    let mut reached: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
    for file in files {
        let folder = root.join(&file.path).parent().map(Path::to_path_buf).unwrap_or_default();
        reached.extend(file.scan.includes.iter().map(|include| relative(root, &folder.join(include))));
    }
    let mut dead = BTreeSet::new();
    for package in &metadata.packages {
        let folder = package.manifest_path.parent().unwrap_or(root);
        let members: Vec<&Path> = metadata.packages.iter().filter_map(|other| other.manifest_path.parent()).collect();
        let mut found = Vec::new();
        rust_files(folder, &members, &mut found)?;
        dead.extend(found.iter().map(|path| relative(root, path)).filter(|path| !reached.contains(path)));
    }
    Ok(dead.into_iter().collect())
}

/// Collects `.rs` files below `folder`, leaving out hidden folders, `target` and other members.
fn rust_files(folder: &Path, members: &[&Path], found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && !members.contains(&path.as_path()) {
                rust_files(&path, members, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The path as the reports show it.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}
