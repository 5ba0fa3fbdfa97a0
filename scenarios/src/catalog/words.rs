//! A line of a case: a word of the vocabulary, what it is about, and named details. Nothing is skipped over.

use std::collections::{BTreeMap, VecDeque};

/// Why a line of a case cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{line}`: {reason}")]
pub struct Unreadable {
    /// The line.
    pub line: String,
    /// Why.
    pub reason: String,
}

/// What a vocabulary has to say about a word.
pub(super) type Meaning<T> = (&'static str, T);

/// The words of a line, taken one after another.
#[derive(Debug)]
pub(super) struct Words<'a> {
    line: &'a str,
    plain: VecDeque<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        let mut words = Self { line, plain: VecDeque::new(), named: BTreeMap::new() };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) => drop(words.named.insert(name, value)),
                None => words.plain.push_back(word),
            }
        }
        words
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> Unreadable {
        Unreadable { line: self.line.to_owned(), reason: reason.into() }
    }

    /// The next word that is not a named detail.
    pub(super) fn next(&mut self) -> Result<&'a str, Unreadable> {
        self.plain.pop_front().ok_or_else(|| self.wrong("the line ends too early"))
    }

    /// The meaning of the next word in a vocabulary.
    pub(super) fn meaning<T: Copy>(&mut self, vocabulary: &[Meaning<T>]) -> Result<T, Unreadable> {
        let word = self.next()?;
        let known = vocabulary.iter().find(|(known, _)| *known == word);
        known.map(|(_, meaning)| *meaning).ok_or_else(|| self.wrong(format!("`{word}` is not in the vocabulary")))
    }

    /// The next word, if there is one.
    pub(super) fn maybe(&mut self) -> Option<&'a str> {
        self.plain.pop_front()
    }

    /// A named detail, if it is given.
    pub(super) fn named(&mut self, name: &str) -> Option<&'a str> {
        self.named.remove(name)
    }

    /// The next word as a number.
    pub(super) fn number(&mut self) -> Result<usize, Unreadable> {
        let word = self.next()?;
        word.parse().map_err(|_| self.wrong(format!("`{word}` is no number")))
    }

    /// A word of a closed set.
    pub(super) fn one_of<T: Copy>(
        &self,
        word: &str,
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<T, Unreadable> {
        let known = all.iter().copied().find(|one| name(*one) == word);
        known.ok_or_else(|| {
            self.wrong(format!("`{word}` is none of {:?}", all.iter().map(|one| name(*one)).collect::<Vec<_>>()))
        })
    }

    /// A duration such as `10s`, `5min`, `2h` or `3d`, in milliseconds.
    pub(super) fn duration(&self, word: &str) -> Result<u64, Unreadable> {
        const UNITS: [(&str, u64); 5] = [("ms", 1), ("min", 60_000), ("s", 1_000), ("h", 3_600_000), ("d", 86_400_000)];
        let split = UNITS.iter().find_map(|(unit, each)| Some((word.strip_suffix(unit)?.parse::<u64>().ok()?, *each)));
        split.map(|(count, each)| count * each).ok_or_else(|| self.wrong(format!("`{word}` is no duration")))
    }

    /// Nothing is left.
    pub(super) fn end(mut self) -> Result<(), Unreadable> {
        if let Some(word) = self.plain.pop_front() {
            return Err(self.wrong(format!("`{word}` is one word too many")));
        }
        match self.named.pop_first() {
            Some((name, _)) => Err(self.wrong(format!("there is no detail `{name}` here"))),
            None => Ok(()),
        }
    }
}
