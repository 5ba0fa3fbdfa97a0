//! Writes the table of `docs/calibration.md` to stdout: `closer-calibrate [STUDIES]`.

use closer_eval::calibration::{cells, render, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let studies = std::env::args().nth(1).map_or(Ok(10_000), |number| number.parse());
    let Ok(studies) = studies else {
        eprintln!("usage: closer-calibrate [STUDIES]");
        return ExitCode::from(2);
    };
    let mut rows = Vec::new();
    let cells = cells();
    for (number, cell) in cells.iter().enumerate() {
        eprintln!("{} of {}: {}, loss {}", number + 1, cells.len(), cell.name, cell.loss.name());
        rows.push((*cell, run(cell, studies, number as u64 + 1)));
    }
    print!("{}", render(&rows, studies));
    ExitCode::SUCCESS
}
