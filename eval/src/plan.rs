//! The plan of a study: everything that is fixed before the first packet leaves. Spec: §10.3.

use crate::file::Misfit;
use crate::participant::Participant;
use crate::procedure::Procedures;
use crate::resource::Vector;
use crate::statistics::Method;
use closer_contracts::Check;
use closer_contracts::id::{Id, Key};
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

word_enum! {
    /// What the two worlds of a pair differ in.
    pub enum PairKind {
        /// The item is there, or it is withheld.
        Inheritance = "inheritance",
        /// Nothing: the same world twice. How often they disagree is the noise floor.
        Same = "same",
        /// An irrelevant item of like size is there, or it is withheld.
        Placebo = "placebo",
        /// What the item was before it was superseded is there, or it is withheld.
        Stale = "stale",
        /// Nothing but who answers: one procedure in the one world, another in the other.
        Procedure = "procedure",
    }
}

/// How the figures are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analysis {
    /// The interval.
    pub method: Method,
    /// Its confidence in percent. Default 95.
    #[serde(default = "ninety_five")]
    pub confidence_percent: u8,
    /// What a lost score counts as where everything enrolled is counted, in percent of a score. Default 0.
    #[serde(default)]
    pub lost_score_percent: u8,
    /// What still counts as no harm, in percent of a score.
    #[serde(default)]
    pub margin_percent: Option<u8>,
    /// The families that are asked about by themselves, adjusted for each other; any other figure is exploratory.
    #[serde(default)]
    pub families: Vec<Key>,
    /// How many resamples the bootstrap interval takes. Default 2 000.
    #[serde(default = "resamples")]
    pub resamples: usize,
}

const fn ninety_five() -> u8 {
    95
}

const fn resamples() -> usize {
    2_000
}

/// What is expected, for the power that is told before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// How often the worlds are expected to disagree, in percent.
    pub discordance_percent: u8,
    /// By how much they are expected to differ, in percent.
    pub difference_percent: u8,
    /// Tokens that one call is expected to take.
    #[serde(default)]
    pub tokens_per_call: Option<u64>,
}

/// What tokens cost, as of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day, as written by whoever looked it up.
    pub as_of: Key,
    /// The currency.
    pub currency: Key,
    /// Millionths of it for a million tokens in.
    pub input_micros_per_million: u64,
    /// Millionths of it for a million tokens out.
    pub output_micros_per_million: u64,
}

/// When an attempt that brought no answer is made again. A malformed answer is an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Attempts at most, the first included.
    pub attempts_max: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: 1 }
    }
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The study's name.
    pub study: Key,
    /// The items, relative to the plan's folder.
    pub items: PathBuf,
    /// What is held out about them.
    pub truth: PathBuf,
    /// From which every order and every draw comes.
    pub seed: u64,
    /// How often each world of a pair is run. Default once.
    #[serde(default = "once")]
    pub repeats: u32,
    /// The controls, enrolled with every run. Default all three.
    #[serde(default = "controls")]
    pub controls: Vec<PairKind>,
    /// Who takes the next step.
    pub participant: Participant,
    /// What each world's arm may take, all pairs together.
    pub resources: Vector,
    /// Two procedures that are compared, once the mechanism was tested.
    #[serde(default)]
    pub procedures: Option<Procedures>,
    /// How the figures are made.
    pub analysis: Analysis,
    /// When an attempt is made again.
    #[serde(default)]
    pub retry: Retry,
    /// What is expected.
    #[serde(default)]
    pub expected: Option<Expectation>,
    /// What tokens cost.
    #[serde(default)]
    pub prices: Option<Prices>,
}

const fn once() -> u32 {
    1
}

fn controls() -> Vec<PairKind> {
    vec![PairKind::Same, PairKind::Placebo, PairKind::Stale]
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`Misfit`] with line and field.
    pub fn read(path: &Path) -> Result<Self, Misfit> {
        let bytes = crate::file::bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let plan: Self = toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            Misfit::at(path, before.matches('\n').count() + 1, "plan", error.message())
        })?;
        plan.checked().map_err(|(field, reason)| Misfit::at(path, 1, field, reason))
    }

    fn checked(self) -> Result<Self, (&'static str, String)> {
        let analysis = &self.analysis;
        if let Err(fault) = Id::new(self.study.as_str()).check() {
            return Err(("study", fault.reason.into_owned()));
        }
        if !(50..100).contains(&analysis.confidence_percent) {
            return Err(("analysis.confidence_percent", "a confidence lies between 50 and 99".to_owned()));
        }
        if analysis.lost_score_percent > 100 || analysis.margin_percent.is_some_and(|margin| margin > 100) {
            return Err(("analysis", "a score lies between 0 and 100 percent".to_owned()));
        }
        if self.repeats == 0 || self.retry.attempts_max == 0 || self.resources.concurrency == 0 {
            return Err(("repeats, retry and resources", "at least one".to_owned()));
        }
        if let Some(Err(reason)) = self.procedures.as_ref().map(Procedures::check) {
            return Err(("procedures", reason));
        }
        // What is kept beside a report lies below its folder.
        let lies_below = |path: &PathBuf| path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if ![&self.items, &self.truth].into_iter().chain(self.files()).all(lies_below) {
            return Err((
                "items, truth and participant.files",
                "a file lies in the plan's folder or below it".to_owned(),
            ));
        }
        let is_asked = |kind: &PairKind| matches!(kind, PairKind::Inheritance | PairKind::Procedure);
        match self.controls.iter().any(is_asked) {
            true => Err(("controls", "inheritance and procedures are what is asked, and no control of it".to_owned())),
            false => Ok(self),
        }
    }

    /// The kinds of pairs that every item is enrolled in, as far as it has what they need.
    pub fn kinds(&self) -> impl Iterator<Item = PairKind> {
        let controls = PairKind::ALL.iter().copied().filter(|kind| self.controls.contains(kind));
        let procedures = self.procedures.iter().map(|_| PairKind::Procedure);
        std::iter::once(PairKind::Inheritance).chain(controls).chain(procedures)
    }

    /// The files that its participants are made of.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let of_arms = self.procedures.iter().flat_map(Procedures::files);
        self.participant.files().iter().chain(of_arms)
    }
}
