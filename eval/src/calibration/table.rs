//! Runs the cells and writes the table.

use super::cells::{Analysis, Cell};
use crate::statistics::binary::Discordance;
use crate::statistics::bootstrap::{Random, bca};
use crate::statistics::lost::{Scored, three_answers, valid};
use crate::statistics::mean::{Spread, mean};
use crate::statistics::{Interval, Method, Unfit};
use std::fmt::Write;

const CONFIDENCE: f64 = 0.95;
const LEVEL: f64 = 0.05;
const RESAMPLES: usize = 1_000;

/// How often something held among the studies in which it could be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// How often it held.
    pub held: u64,
    /// In how many studies it could be told.
    pub told: u64,
}

impl Share {
    fn count(&mut self, held: Result<bool, Unfit>) {
        if let Ok(held) = held {
            self.told += 1;
            self.held += u64::from(held);
        }
    }

    /// In percent; none where it could not be told.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        (self.told > 0).then(|| 100.0 * self.held as f64 / self.told as f64)
    }
}

/// What was found in the studies of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// The bounds contain the estimate of the same study's full data.
    pub bounds_contain: Share,
    /// The interval over the bounds covers the truth.
    pub over_bounds: Share,
    /// The interval over everything enrolled, lost scores as 0, covers the truth.
    pub all_enrolled: Share,
    /// The interval over valid pairs covers the truth.
    pub valid: Share,
    /// The exact test rejects.
    pub exact: Share,
    /// The mid-p test rejects.
    pub mid_p: Share,
}

/// Runs a cell. The same seed and number give the same shares.
#[must_use]
pub fn run(cell: &Cell, studies: u64, seed: u64) -> Shares {
    let mut random = Random::seeded(seed);
    let mut shares = Shares::default();
    for _ in 0..studies {
        let full = cell.study.draw(&mut random);
        let left = cell.loss.lose(&full, &mut random);
        look(cell, &full, &left, random.bits(), &mut shares);
    }
    shares
}

fn look(cell: &Cell, full: &[Scored], left: &[Scored], seed: u64, shares: &mut Shares) {
    let truth = cell.study.truth();
    let covers = |interval: Interval| interval.contains(truth);
    match cell.analysis {
        Analysis::Intervals(method) => intervals(method, full, left, truth, shares),
        Analysis::Bootstrap => shares.valid.count(bca(&valid(left), CONFIDENCE, RESAMPLES, seed).map(covers)),
        Analysis::FewClusters => {
            let spread = Spread::clustered_from(&valid(left), 2);
            shares.valid.count(spread.and_then(|spread| spread.interval(CONFIDENCE)).map(covers));
        }
        Analysis::Tests => {
            let table = Discordance::of(&valid(left));
            shares.exact.count(table.and_then(|table| table.exact_p()).map(|p| p <= LEVEL));
            shares.mid_p.count(table.and_then(|table| table.mid_p()).map(|p| p <= LEVEL));
        }
    }
}

fn intervals(method: Method, full: &[Scored], left: &[Scored], truth: f64, shares: &mut Shares) {
    let covers = |interval: Interval| interval.contains(truth);
    let answers = three_answers(method, left, 0.0, CONFIDENCE);
    // Sums of the same numbers in another order may differ in their last digit.
    let near = |bounds: Interval| Interval { low: bounds.low - 1e-12, high: bounds.high + 1e-12 };
    let contains = |seen: f64| answers.map(|answers| near(answers.bounds).contains(seen));
    shares.bounds_contain.count(mean(&valid(full)).ok_or(Unfit::TooFewPairs).and_then(contains));
    shares.over_bounds.count(answers.and_then(|answers| answers.over_bounds).map(covers));
    shares.all_enrolled.count(answers.and_then(|answers| answers.all_enrolled).map(|all| covers(all.interval)));
    shares.valid.count(answers.and_then(|answers| answers.valid).map(|valid| covers(valid.interval)));
}

/// The table, in Markdown.
#[must_use]
pub fn render(rows: &[(Cell, Shares)], studies: u64) -> String {
    let mut page = format!(
        "# Calibration\n\nWritten by `cargo xtask eval calibrate`; {studies} simulated studies per cell, seeds fixed. Shares are in percent; the standard\nerror of a share of 95 is {:.2}.\n\n",
        100.0 * (0.95_f64 * 0.05 / studies as f64).sqrt()
    );
    page.push_str(HOLDS);
    page.push_str(INTERVALS_HEAD);
    for (cell, shares) in rows.iter().filter(|(cell, _)| cell.breaks.is_none() && cell.analysis != Analysis::Tests) {
        let _ = writeln!(page, "| {} | {} | {} | {} |", cell.name, cell.loss.name(), method(cell), covered(shares));
    }
    page.push_str(TESTS);
    for (cell, shares) in rows.iter().filter(|(cell, _)| cell.breaks.is_none() && cell.analysis == Analysis::Tests) {
        let _ = writeln!(page, "| {} | {} | {} |", cell.name, told(shares.exact), told(shares.mid_p));
    }
    page.push_str(BREAKS);
    for (cell, shares) in rows {
        if let Some(assumption) = cell.breaks {
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {} |",
                assumption,
                cell.name,
                method(cell),
                covered(shares),
                told(shares.exact),
                told(shares.mid_p)
            );
        }
    }
    page
}

const HOLDS: &str = "\
## Intervals and bounds

The bounds hold every value that the full data of the same study may have, so they contain its estimate always. The interval over
the bounds runs from the low end of the interval at the worst to the high end at the best. Under informative loss the interval over
valid pairs is about another quantity than the one asked for; how far it misses is in its column. Lost scores count as 0 in the
column of everything enrolled, as most plans declare; that is an answer to another question too.

";
const INTERVALS_HEAD: &str = "\
| studies | loss | method | bounds contain the full data's estimate | interval over the bounds covers the truth | all enrolled | valid pairs |
|---|---|---|---|---|---|---|
";
const TESTS: &str = "\n\
## Tests of two equal worlds

How often the worlds are found to differ at the level of 5 % although they do not.

| studies | exact | mid-p |
|---|---|---|
";
const BREAKS: &str = "\n\
## What breaks them

Each row breaks one assumption. Where a method is not given in such a case (fewer than 10 clusters), the guard was lifted for the
table alone.

| assumption | studies | method | bounds contain | over the bounds | all enrolled | valid pairs | exact rejects | mid-p rejects |
|---|---|---|---|---|---|---|---|---|
";

const fn method(cell: &Cell) -> &'static str {
    match cell.analysis {
        Analysis::Intervals(Method::Score) => "score",
        Analysis::Intervals(Method::T) => "t",
        Analysis::Intervals(Method::Clustered) | Analysis::FewClusters => "clustered",
        Analysis::Bootstrap => "BCa",
        Analysis::Tests => "tests",
    }
}

fn covered(shares: &Shares) -> String {
    [shares.bounds_contain, shares.over_bounds, shares.all_enrolled, shares.valid].map(told).join(" | ")
}

fn told(share: Share) -> String {
    share.percent().map_or_else(|| "–".to_owned(), |percent| format!("{percent:.2}"))
}

#[cfg(test)]
mod tests {
    use super::super::cells;
    use super::*;

    #[test]
    fn bounds_contain_the_full_data_in_every_study_that_enrols_its_pairs() {
        for cell in cells().iter().filter(|cell| cell.breaks.is_none()) {
            let shares = run(cell, 60, 5);
            assert_eq!(shares.bounds_contain.held, shares.bounds_contain.told, "{} {:?}", cell.name, cell.loss);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_shares() {
        let cells = cells();
        let cell = cells.iter().find(|cell| cell.analysis == Analysis::Bootstrap).unwrap();
        assert_eq!(run(cell, 5, 3), run(cell, 5, 3));
    }

    /// What the committed table promises of each of its cells; a change of a method that breaks it shows here when the
    /// table is written anew.
    #[test]
    fn the_committed_table_keeps_its_promises() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/calibration.md")).unwrap();
        let rows: Vec<Vec<&str>> =
            page.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
        let number = |text: &str| text.parse::<f64>().ok();
        let mut looked_at = 0;
        for cell in cells().iter().filter(|cell| cell.breaks.is_none()) {
            let is_of = |row: &&Vec<&str>| match cell.analysis {
                Analysis::Tests => row.len() == 3 && row[0] == cell.name,
                Analysis::Intervals(_) | Analysis::Bootstrap | Analysis::FewClusters => {
                    row.len() == 7 && row[..3] == [cell.name, cell.loss.name(), method(cell)]
                }
            };
            let row = rows.iter().find(is_of).unwrap_or_else(|| panic!("no row for {cell:?}"));
            looked_at += 1;
            match cell.analysis {
                Analysis::Tests => {
                    assert!(number(row[1]).unwrap() <= 5.5, "{row:?}");
                    assert!((4.0..=6.0).contains(&number(row[2]).unwrap()), "{row:?}");
                }
                Analysis::Intervals(_) => {
                    assert_eq!(number(row[3]), Some(100.0), "{row:?}");
                    assert!(number(row[4]).unwrap() >= 94.5, "{row:?}");
                    let valid = number(row[6]).unwrap();
                    assert!(cell.loss.is_informative() || (94.0..=96.0).contains(&valid), "{row:?}");
                }
                Analysis::Bootstrap | Analysis::FewClusters => {
                    assert!((93.0..=96.5).contains(&number(row[6]).unwrap()), "{row:?}");
                }
            }
        }
        assert_eq!(looked_at, 34);
    }
}
