//! Bending bytes, and running a target on what comes of it.

use rand::rngs::Xoshiro256PlusPlus as Rng;
use rand::{RngExt, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that readers stumble over.
const STUMBLES: [&[u8]; 22] = [
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"0",
    b"-0",
    b"-1",
    b"1e400",
    b"9007199254740993",
    b"18446744073709551616",
    b"0.1",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\n",
    b"\"",
    b",",
    b"sha256:",
    b"2026-01-01T00:00:00Z",
    b"[[[[[[[[[[[[",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn found() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/found")
}

/// A place in the bytes.
fn place(rng: &mut Rng, bytes: &[u8]) -> usize {
    rng.random_range(0..=bytes.len())
}

/// Bends bytes once.
fn once(rng: &mut Rng, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let (from, to) = (place(rng, bytes), place(rng, bytes));
    let (from, to) = (from.min(to), from.max(to));
    match rng.random_range(0..9) {
        0 if from < bytes.len() => bytes[from] ^= 1 << rng.random_range(0..8),
        1 => drop(bytes.drain(from..to.min(from + 40))),
        2 => {
            let stumble = STUMBLES[rng.random_range(0..STUMBLES.len())];
            drop(bytes.splice(from..to.min(from + 12), stumble.iter().copied()));
        }
        3 => {
            let piece = bytes[from..to.min(from + 200)].to_vec();
            let at = place(rng, bytes);
            drop(bytes.splice(at..at, piece));
        }
        4 => {
            let other = &corpus[rng.random_range(0..corpus.len())];
            let (a, b) = (place(rng, other), place(rng, other));
            let piece = other[a.min(b)..a.max(b).min(a.min(b) + 400)].to_vec();
            drop(bytes.splice(from..to.min(from + 100), piece));
        }
        5 => bytes.truncate(from),
        6 if from < bytes.len() => bytes[from] = rng.random_range(0..=255),
        7 => {
            let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                bytes[digits[rng.random_range(0..digits.len())]] = b"0123456789"[rng.random_range(0..10)];
            }
        }
        _ => {
            let values: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b':').collect();
            if !values.is_empty() {
                let at = values[rng.random_range(0..values.len())] + 1;
                let end = bytes[at..].iter().position(|byte| b",}".contains(byte)).map_or(bytes.len(), |end| at + end);
                let stumble = STUMBLES[rng.random_range(0..STUMBLES.len())];
                drop(bytes.splice(at..end, stumble.iter().copied()));
            }
        }
    }
}

/// Runs a target on what was found before, on the corpus as it is, and on bent inputs until the time is over.
pub(crate) fn run(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    let mut tried = 0_u64;
    let mut on = |input: &[u8]| {
        tried += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
            let path = found().join(format!("{name}-{}.bin", &closer_contracts::Digest::of(input).to_string()[7..19]));
            std::fs::create_dir_all(found()).and_then(|()| std::fs::write(&path, input)).unwrap();
            eprintln!("kept as {}", path.display());
            resume_unwind(panic);
        }
    };
    for entry in std::fs::read_dir(found()).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with(&format!("{name}-")) {
            on(&std::fs::read(path).unwrap());
        }
    }
    corpus.iter().for_each(|input| on(input));
    let until = Instant::now() + Duration::from_millis(number("CLOSER_FUZZ_MS").unwrap_or(1_000));
    let mut rng = Rng::seed_from_u64(number("CLOSER_FUZZ_SEED").unwrap_or(1));
    while Instant::now() < until {
        let mut input = corpus[rng.random_range(0..corpus.len())].clone();
        for _ in 0..rng.random_range(1..=4) {
            once(&mut rng, &mut input, corpus);
        }
        on(&input);
    }
    println!("{name}: {tried} inputs");
}
