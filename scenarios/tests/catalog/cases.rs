//! The files of the catalogue.

use closer_scenarios::catalog::Scenario;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("the crate's folder")).join("catalog")
}

/// Every case below the catalogue with its path, in order.
pub(crate) fn cases() -> Vec<(String, PathBuf)> {
    let root = folder();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.strip_prefix(&root).unwrap().with_extension("");
                found.push((name.to_string_lossy().into_owned(), path));
            }
        }
    }
    found.sort();
    found
}

/// Reads one case.
pub(crate) fn read(path: &Path) -> Scenario {
    Scenario::read(&std::fs::read_to_string(path).unwrap())
        .unwrap_or_else(|failed| panic!("{}: {failed}", path.display()))
}

/// The first line, by number, in which the transcript differs from what is written.
pub(crate) fn differing<'a>(written: &'a str, transcript: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let lines = written.lines().count().max(transcript.lines().count());
    let at = |text: &'a str, number: usize| text.lines().nth(number).unwrap_or("nothing");
    (0..lines)
        .map(|number| (number + 1, (at(written, number), at(transcript, number))))
        .find(|(_, (expected, actual))| expected != actual)
}
