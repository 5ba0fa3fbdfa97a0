//! The README's tour, typed as it is printed.

use crate::support::{CLOSER, has_openssl};
use std::path::Path;
use std::process::Command;

/// One block of the tour: what is typed, then what is said to be printed.
#[derive(Debug, Default)]
struct Block {
    typed: Vec<String>,
    printed: Vec<String>,
}

/// The indented blocks between two headings. A command goes on behind a backslash or an open quote.
fn blocks(readme: &str, from: &str, to: &str) -> Vec<Block> {
    let section = readme.split_once(from).unwrap().1.split_once(to).unwrap().0;
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in section.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            inside = false;
            continue;
        };
        if !inside {
            blocks.push(Block::default());
            inside = true;
        }
        let block = blocks.last_mut().unwrap();
        let goes_on = |typed: &String| typed.ends_with('\\') || typed.matches('\'').count() % 2 == 1;
        match block.typed.last_mut().filter(|typed| goes_on(typed)) {
            Some(typed) => *typed = format!("{}{}", typed.trim_end_matches('\\'), line.trim_start()),
            None if ["closer ", "mkdir ", "openssl "].iter().any(|program| line.starts_with(program)) => {
                block.typed.push(line.to_owned());
            }
            None => block.printed.push(line.to_owned()),
        }
    }
    blocks
}

/// What of a word is the same in every run: what stands before its first digit and before anything like a digest.
fn lasting(word: &str) -> &str {
    let hex = |at: usize| word[at..].bytes().take_while(u8::is_ascii_hexdigit).count();
    let varies = word.char_indices().find(|(at, c)| c.is_ascii_digit() || hex(*at) >= 8);
    varies.map_or(word, |(at, _)| &word[..at])
}

/// Whether a printed line is the one in the README, where `...` stands for the rest of a word or of the line.
fn is_line(told: &str, printed: &str) -> bool {
    let told: Vec<&str> = told.split_whitespace().collect();
    let mut printed = printed.split_whitespace();
    for (index, word) in told.iter().enumerate() {
        let (is_last, Some(other)) = (index + 1 == told.len(), printed.next()) else { return false };
        let fits = match word.split_once("...") {
            Some(("", _)) if is_last => return true,
            Some((begun, _)) => lasting(other).starts_with(lasting(begun)),
            None => *word == other || (lasting(word) != *word && lasting(word) == lasting(other)),
        };
        if !fits {
            return false;
        }
        if is_last && word.ends_with("...") {
            return true;
        }
    }
    printed.next().is_none()
}

#[test]
fn the_tour_prints_what_it_says() {
    if !has_openssl() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let elsewhere = |text: &str| text.replace("/tmp/", &format!("{}/", place.path().display()));
    let path = format!("{}:{}", Path::new(CLOSER).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let (mut decision, mut latest) = (String::new(), Vec::<String>::new());
    let mut told_of = String::new();
    for block in blocks(&readme, "## Five-minute tour", "### Another deployment") {
        for typed in &block.typed {
            let typed = elsewhere(&typed.replace("DECISION", &decision));
            let output = Command::new("sh").args(["-c", &typed]).current_dir(root).env("PATH", &path).output().unwrap();
            // A run that waits for a person ends with 6.
            assert!(matches!(output.status.code(), Some(0 | 6)), "{typed}: {output:?}");
            let text = [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
            latest = text.lines().map(str::to_owned).collect();
            let named = text.split_whitespace().find(|word| word.starts_with("decision-episode-"));
            decision = named.map_or(decision, |named| named.trim_end_matches(':').to_owned());
            told_of = typed;
        }
        let told: Vec<String> = block.printed.iter().map(|line| elsewhere(line)).collect();
        for line in told.iter().filter(|line| *line != "...") {
            assert!(
                latest.iter().any(|printed| is_line(line, printed)),
                "{told_of}\ndoes not print\n{line}\n{latest:#?}"
            );
        }
        if !told.is_empty() && !told.iter().any(|line| line == "...") {
            let left_out = latest.iter().find(|printed| !told.iter().any(|line| is_line(line, printed)));
            assert_eq!(left_out, None, "{told_of}\nprints more than the README says");
        }
    }
    assert!(!decision.is_empty() && place.path().join("again").exists());
}

#[test]
fn lines_are_compared_by_what_lasts() {
    for (told, printed) in [
        ("a  b", "a b"),
        ("  at 2026-11-30T19:40:23.642Z", "at 2027-01-01T00:00:00.000Z"),
        ("x - 436d22827b23", "x - abcdefabcdef"),
        ("event-ev... observed", "event-ev-1 observed"),
        ("it waits for ...", "it waits for anything at all"),
    ] {
        assert!(is_line(told, printed), "{told}");
    }
    for (told, printed) in
        [("a b", "a"), ("a", "a b"), ("a b", "a c"), ("event-x... y", "event-ev-1 y"), ("v 1 a", "v 2 b")]
    {
        assert!(!is_line(told, printed), "{told}");
    }
}
