//! What a run prints: a table for people on the way, one line of JSON at the end.

use anyhow::Result;
use std::collections::BTreeMap;

/// Named figures in the order they were measured.
#[derive(Default)]
pub(crate) struct Report(Vec<(String, f64)>);

impl Report {
    /// Notes a figure and shows it.
    pub(crate) fn row(&mut self, name: &str, value: f64, note: &str) {
        println!("{name:<36} {value:>14.3}  {note}");
        self.0.push((name.to_owned(), value));
    }

    /// Prints the line of JSON.
    pub(crate) fn finish(self) -> Result<()> {
        let figures: BTreeMap<String, f64> = self.0.into_iter().collect();
        println!("{}", serde_json::to_string(&figures)?);
        Ok(())
    }
}

/// The middle one of several measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
