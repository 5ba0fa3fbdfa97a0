//! Progress of long work, on stderr and only where a person looks.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A bar over counted work.
pub(super) fn bar(unit: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {unit}, {{eta}} left"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Moves a bar on.
pub(super) fn advance(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

/// A sign of life for work of unknown length.
pub(super) fn spinner(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    spinner.enable_steady_tick(Duration::from_millis(250));
    spinner
}
