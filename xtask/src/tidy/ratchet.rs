//! Function length as a ratchet: what is longer than the limit today may only become shorter.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::source::{Function, SourceFile, Sources};

/// Lines a function may have, from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// The committed lengths of longer functions, relative to the workspace root.
const FILE: &str = "xtask/function-lines.toml";

const PREFACE: &str = "\
# Functions longer than 70 lines and their length today. `cargo xtask tidy` fails when one grows or a new one appears;
# `cargo xtask fix` lowers the figures. A new line is written by hand, with its reason in the commit.
";

/// Functions that are new here or have grown.
///
/// # Errors
/// When the ratchet file cannot be read.
pub(crate) fn check(root: &Path, sources: &Sources) -> Result<Vec<String>> {
    Ok(judge(&long_functions(sources), &read(root)?))
}

/// Lowers the committed figures to today's, and drops functions that are short or gone.
///
/// # Errors
/// When the ratchet file cannot be read or written.
pub(crate) fn lower(root: &Path, sources: &Sources) -> Result<()> {
    let (today, allowed) = (long_functions(sources), read(root)?);
    let lowered: BTreeMap<&String, usize> =
        allowed.iter().filter_map(|(function, lines)| Some((function, (*lines).min(*today.get(function)?)))).collect();
    let text = format!("{PREFACE}{}", toml::to_string(&lowered)?);
    std::fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))
}

fn read(root: &Path) -> Result<BTreeMap<String, usize>> {
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    toml::from_str(&text).with_context(|| format!("cannot read {FILE}"))
}

/// Functions of shipped code beyond the limit; tables in tests may be as long as they need.
fn long_functions(sources: &Sources) -> BTreeMap<String, usize> {
    let is_long = |function: &&Function| !function.is_test && function.line_count > FUNCTION_LINES_MAX;
    let of_file = |file: &'_ SourceFile| {
        let long = file.scan.functions.iter().filter(is_long);
        long.map(|function| (format!("{} {}", file.path, function.path), function.line_count)).collect::<Vec<_>>()
    };
    sources.unique().filter(|file| !file.is_test).flat_map(of_file).collect()
}

fn judge(today: &BTreeMap<String, usize>, allowed: &BTreeMap<String, usize>) -> Vec<String> {
    let mut errors = Vec::new();
    for (function, lines) in today {
        match allowed.get(function) {
            None => errors.push(format!("{function}: {lines} lines, more than {FUNCTION_LINES_MAX}")),
            Some(before) if lines > before => errors.push(format!("{function}: grew from {before} to {lines} lines")),
            Some(_) => {}
        }
    }
    for function in allowed.keys().filter(|function| !today.contains_key(*function)) {
        errors.push(format!("{function}: is short or gone; run `cargo xtask fix` to drop it from {FILE}"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(lengths: &[(&str, usize)]) -> BTreeMap<String, usize> {
        lengths.iter().map(|(function, lines)| ((*function).to_owned(), *lines)).collect()
    }

    #[test]
    fn growth_and_new_long_functions_are_found_and_shrinking_is_not() {
        let today = lengths(&[("a.rs f", 80), ("a.rs g", 71), ("a.rs h", 90)]);
        let allowed = lengths(&[("a.rs f", 85), ("a.rs h", 89), ("a.rs gone", 99)]);
        let found = judge(&today, &allowed);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().any(|error| error == "a.rs g: 71 lines, more than 70"));
        assert!(found.iter().any(|error| error == "a.rs h: grew from 89 to 90 lines"));
        assert!(found.iter().any(|error| error.starts_with("a.rs gone: is short or gone")));
    }

    #[test]
    fn lowering_takes_the_smaller_figure_and_drops_what_is_short() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(folder.path().join("xtask")).expect("folder");
        std::fs::write(folder.path().join(FILE), "\"a.rs f\" = 90\n\"a.rs g\" = 75\n").expect("written");
        let text = format!("fn f() {{{}}}\nfn g() {{}}\n", "\n".repeat(79));
        let file = SourceFile {
            path: "a.rs".into(),
            package: "p".into(),
            target: crate::cargo::Target { name: "p".into(), kind: vec!["lib".into()], src_path: "a.rs".into() },
            is_test: false,
            line_count: 81,
            scan: crate::source::scan(&text, &[], false).expect("lexes"),
        };
        let sources = Sources { files: vec![file], dead: Vec::new() };
        lower(folder.path(), &sources).expect("lowered");
        assert_eq!(read(folder.path()).expect("read"), lengths(&[("a.rs f", 80)]));
        assert_eq!(check(folder.path(), &sources).expect("checked"), Vec::<String>::new());
    }
}
