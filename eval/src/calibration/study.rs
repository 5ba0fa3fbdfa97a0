//! How simulated studies come about, and how they lose pairs.

use crate::statistics::bootstrap::Random;
use crate::statistics::lost::Scored;

/// How the two scores of a pair come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// 0 and 1: the worlds disagree with this probability, and their proportions differ by this.
    Binary {
        /// How often the worlds disagree.
        discordance: f64,
        /// First proportion minus second.
        difference: f64,
    },
    /// Both worlds share half of their score and draw the other half for themselves, the first as the larger of two.
    Graded,
    /// Both score 0, but rarely the first scores 1: a tail that few studies see.
    Rare {
        /// How rarely.
        share: f64,
    },
}

/// How pairs depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clusters {
    /// How many there are.
    pub count: usize,
    /// How far the difference lies off the truth in a cluster, either way.
    pub shift: f64,
    /// Whether the first cluster holds half of all pairs.
    pub unequal: bool,
}

/// How studies come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Study {
    /// The scores.
    pub outcome: Outcome,
    /// How many pairs.
    pub pairs: usize,
    /// Their clusters, where they are not independent.
    pub clusters: Option<Clusters>,
}

/// How pairs are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// None is.
    None,
    /// One pair in five, whatever it scored.
    Random,
    /// The first world's score in one pair of five.
    OneWorld,
    /// Half of the pairs in which the first world did better; one in twenty of the others.
    Effect,
    /// Two in five of the first world's scores below one half; one in twenty of the others.
    Failures,
    /// As `Effect`, but the lost pairs are not even enrolled.
    Unrecorded,
}

impl Study {
    /// The difference that the study is after.
    #[must_use]
    pub fn truth(&self) -> f64 {
        match self.outcome {
            Outcome::Binary { difference, .. } => difference,
            // Half of the difference between the larger of two uniform draws (2/3) and one (1/2).
            Outcome::Graded => (2.0 / 3.0 - 0.5) / 2.0,
            Outcome::Rare { share } => share,
        }
    }

    /// One study, nothing lost yet.
    pub fn draw(&self, random: &mut Random) -> Vec<Scored> {
        let shifts: Vec<f64> = self.clusters.map_or_else(Vec::new, |clusters| {
            (0..clusters.count).map(|_| if random.unit() < 0.5 { clusters.shift } else { -clusters.shift }).collect()
        });
        (0..self.pairs)
            .map(|pair| {
                let cluster = self.cluster_of(pair);
                let shift = self.clusters.and_then(|_| shifts.get(cluster)).copied().unwrap_or_default();
                let (first, second) = self.outcome.draw(shift, random);
                Scored { first: Some(first), second: Some(second), cluster }
            })
            .collect()
    }

    fn cluster_of(&self, pair: usize) -> usize {
        match self.clusters {
            None => pair,
            Some(Clusters { unequal: true, .. }) if pair < self.pairs / 2 => 0,
            Some(Clusters { count, unequal: true, .. }) => 1 + pair % count.saturating_sub(1).max(1),
            Some(Clusters { count, unequal: false, .. }) => pair % count.max(1),
        }
    }
}

impl Outcome {
    fn draw(self, shift: f64, random: &mut Random) -> (f64, f64) {
        match self {
            Self::Binary { discordance, difference } => {
                let (drawn, difference) = (random.unit(), difference + shift);
                let (first, second) = (f64::midpoint(discordance, difference), (discordance - difference) / 2.0);
                let agreed = f64::from(random.unit() < 0.5);
                match (drawn < first, drawn < first + second) {
                    (true, _) => (1.0, 0.0),
                    (false, true) => (0.0, 1.0),
                    (false, false) => (agreed, agreed),
                }
            }
            Self::Graded => {
                let shared = random.unit();
                let first = random.unit().max(random.unit());
                (f64::midpoint(shared, first), f64::midpoint(shared, random.unit()))
            }
            Self::Rare { share } => (f64::from(random.unit() < share), 0.0),
        }
    }
}

impl Loss {
    /// What is left of a study.
    pub fn lose(self, study: &[Scored], random: &mut Random) -> Vec<Scored> {
        study.iter().filter_map(|pair| self.lose_of(*pair, random.unit())).collect()
    }

    fn lose_of(self, pair: Scored, drawn: f64) -> Option<Scored> {
        let gone = Scored { first: None, second: None, ..pair };
        let better = pair.first > pair.second;
        let failed = pair.first.is_some_and(|score| score < 0.5);
        let likely = |is_likely: bool, high: f64| drawn < if is_likely { high } else { 0.05 };
        Some(match self {
            Self::Random if drawn < 0.2 => gone,
            Self::OneWorld if drawn < 0.2 => Scored { first: None, ..pair },
            Self::Effect if likely(better, 0.5) => gone,
            Self::Failures if likely(failed, 0.4) => Scored { first: None, ..pair },
            Self::Unrecorded if likely(better, 0.5) => return None,
            Self::None | Self::Random | Self::OneWorld | Self::Effect | Self::Failures | Self::Unrecorded => pair,
        })
    }

    /// Whether the scores have a say in what is lost.
    #[must_use]
    pub const fn is_informative(self) -> bool {
        match self {
            Self::None | Self::Random | Self::OneWorld => false,
            Self::Effect | Self::Failures | Self::Unrecorded => true,
        }
    }

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Random => "random",
            Self::OneWorld => "one world, random",
            Self::Effect => "informative: the effect",
            Self::Failures => "informative: failures",
            Self::Unrecorded => "not enrolled",
        }
    }
}
