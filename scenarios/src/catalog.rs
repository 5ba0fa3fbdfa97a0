//! The catalogue: the protocol's cases as data, each with what must hold at its end and a transcript beside it.
//!
//! A case speaks in the specification's nouns: `event.observed service-a price`, `obligation o-1 resolved`. What `then`
//! demands is written by hand from the specification; the transcript is what the run recorded, line by line, and is
//! compared as text. Nothing here decides anything about the protocol.

mod expect;
mod given;
mod incident;
mod inquiry;
mod step;
mod transcript;
mod words;

pub use transcript::transcript;
pub use words::Unreadable;

use crate::space::Broken;
use closer_contracts::branch;
use serde::Deserialize;

/// One case, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What happens, in one sentence.
    pub name: String,
    /// The requirement rows it shows.
    pub rows: Vec<String>,
    /// The branch that carries them, where one does.
    pub mark: Option<String>,
    /// The clauses of the specification it is about.
    pub clauses: Vec<String>,
    /// What there is before anything happens.
    pub given: Vec<String>,
    /// What happens, in order.
    pub when: Vec<String>,
    /// What must hold at the end.
    pub then: Vec<String>,
}

/// Why a case does not stand.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The file is not a scenario.
    #[error("{0}")]
    File(#[from] toml::de::Error),
    /// A line cannot be read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The run itself broke.
    #[error("`{line}`: {source}")]
    Broken {
        /// The line that was carried out.
        line: String,
        /// What broke.
        source: Broken,
    },
    /// Something that must hold does not.
    #[error("`{line}` does not hold: {found}")]
    Unmet {
        /// The demand.
        line: String,
        /// What there is instead.
        found: String,
    },
    /// The catalogue shows only one side.
    #[error("the catalogue has no case that {0}")]
    OneSided(&'static str),
}

impl Scenario {
    /// Reads a case.
    ///
    /// # Errors
    /// Not TOML, a key that no scenario has, or one that is missing.
    pub fn read(text: &str) -> Result<Self, Failed> {
        Ok(toml::from_str(text)?)
    }

    /// Runs the case, checks everything that must hold at its end, and gives the transcript.
    ///
    /// # Errors
    /// The first line that cannot be read, breaks the run or does not hold.
    pub fn run(&self) -> Result<String, Failed> {
        let mut cast = given::found(&self.given)?;
        for line in &self.when {
            step::take(&mut cast, line)?;
        }
        for line in &self.then {
            expect::check(&cast, line)?;
        }
        transcript(&cast.space).map_err(|source| Failed::Broken { line: "transcript".to_owned(), source })
    }

    /// Whether it demands that something permitted really happens.
    fn succeeds(&self) -> bool {
        self.then.iter().any(|line| line.starts_with("effects ") && line != "effects 0")
    }

    /// Whether it demands that something is refused.
    fn refuses(&self) -> bool {
        self.then.iter().any(|line| line.starts_with("refused "))
    }
}

/// A suite of refusals alone shows no continuation, and one of successes alone no restraint (§10.2).
///
/// # Errors
/// Which side is missing.
pub fn balanced(suite: &[Scenario]) -> Result<(), Failed> {
    if branch!("catalog.shows_no_continuation", !suite.iter().any(Scenario::succeeds)) {
        return Err(Failed::OneSided("demands an effect"));
    }
    if branch!("catalog.shows_no_restraint", !suite.iter().any(Scenario::refuses)) {
        return Err(Failed::OneSided("demands a refusal"));
    }
    Ok(())
}
