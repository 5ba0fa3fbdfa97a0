//! The cells of the table: where the methods hold, and one way at least to break each of them.

use super::study::{Clusters, Loss, Outcome, Study};
use crate::statistics::Method;

/// What is looked at in each study of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analysis {
    /// Intervals and bounds by a method.
    Intervals(Method),
    /// The bootstrap interval over valid pairs.
    Bootstrap,
    /// The cluster-robust interval with fewer clusters than it is given for.
    FewClusters,
    /// Rejections of the exact and the mid-p test.
    Tests,
}

/// One cell.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// What the studies are.
    pub name: &'static str,
    /// How they come about.
    pub study: Study,
    /// How they lose pairs.
    pub loss: Loss,
    /// What is looked at.
    pub analysis: Analysis,
    /// The assumption that the cell breaks, where it does.
    pub breaks: Option<&'static str>,
}

const fn binary(discordance: f64, difference: f64, pairs: usize) -> Study {
    Study { outcome: Outcome::Binary { discordance, difference }, pairs, clusters: None }
}

const fn clustered(count: usize, shift: f64, pairs: usize, unequal: bool) -> Study {
    let outcome = Outcome::Binary { discordance: 0.5, difference: 0.1 };
    Study { outcome, pairs, clusters: Some(Clusters { count, shift, unequal }) }
}

/// Every cell, in the order of the table.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let losses = [Loss::None, Loss::Random, Loss::OneWorld, Loss::Effect, Loss::Failures];
    let graded = Study { outcome: Outcome::Graded, pairs: 60, clusters: None };
    let intervals = [
        ("0 or 1, 50 pairs, no effect", binary(0.3, 0.0, 50), Method::Score),
        ("0 or 1, 50 pairs, effect 0.2", binary(0.4, 0.2, 50), Method::Score),
        ("0 or 1, 200 pairs, no effect", binary(0.3, 0.0, 200), Method::Score),
        ("0 or 1, 200 pairs, effect 0.2", binary(0.4, 0.2, 200), Method::Score),
        ("graded, 60 pairs", graded, Method::T),
        ("0 or 1, 40 clusters of 5", clustered(40, 0.3, 200, false), Method::Clustered),
    ];
    for (name, study, method) in intervals {
        let analysis = Analysis::Intervals(method);
        cells.extend(losses.map(|loss| Cell { name, study, loss, analysis, breaks: None }));
    }
    cells.push(Cell {
        name: "graded, 60 pairs",
        study: graded,
        loss: Loss::None,
        analysis: Analysis::Bootstrap,
        breaks: None,
    });
    let tests = [
        ("A/A, 100 pairs, 3 in 10 disagree", binary(0.3, 0.0, 100)),
        ("A/A, 200 pairs, 2 in 10 disagree", binary(0.2, 0.0, 200)),
        ("A/A, 400 pairs, 1 in 10 disagree", binary(0.1, 0.0, 400)),
    ];
    cells.extend(tests.map(|(name, study)| Cell {
        name,
        study,
        loss: Loss::None,
        analysis: Analysis::Tests,
        breaks: None,
    }));
    cells.extend(breaking());
    cells
}

fn breaking() -> Vec<Cell> {
    let heavy = Study { outcome: Outcome::Rare { share: 0.02 }, pairs: 50, clusters: None };
    let aligned =
        Study { outcome: Outcome::Binary { discordance: 0.4, difference: 0.0 }, ..clustered(20, 0.35, 200, false) };
    let cell = |name, study, loss, analysis, breaks| Cell { name, study, loss, analysis, breaks: Some(breaks) };
    let intervals = Analysis::Intervals;
    vec![
        cell(
            "20 clusters of 10, taken as independent",
            clustered(20, 0.4, 200, false),
            Loss::None,
            intervals(Method::Score),
            "independent pairs",
        ),
        cell("one pair in 50 holds the whole effect", heavy, Loss::None, intervals(Method::T), "no heavy tail"),
        cell("one pair in 50 holds the whole effect", heavy, Loss::None, Analysis::Bootstrap, "no heavy tail"),
        cell(
            "4 clusters, one with half of the pairs",
            clustered(4, 0.3, 100, true),
            Loss::None,
            Analysis::FewClusters,
            "enough clusters",
        ),
        cell(
            "12 clusters, one with half of the pairs",
            clustered(12, 0.4, 240, true),
            Loss::None,
            intervals(Method::Clustered),
            "clusters of like size",
        ),
        cell(
            "lost pairs that were never enrolled",
            binary(0.4, 0.2, 200),
            Loss::Unrecorded,
            intervals(Method::Score),
            "every pair is enrolled",
        ),
        cell("A/A, 20 clusters of 10", aligned, Loss::None, Analysis::Tests, "independent pairs"),
        cell(
            "A/A, 30 pairs, 1 in 10 disagree",
            binary(0.1, 0.0, 30),
            Loss::None,
            Analysis::Tests,
            "enough disagreement (mid-p)",
        ),
    ]
}
