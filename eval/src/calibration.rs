//! Whether the statistics keep what they promise, by simulated studies whose truth is known, and what breaks them.
//!
//! A cell is a way in which studies come about, a way in which pairs are lost, and a method. Each study is drawn whole,
//! then loses pairs, then is analysed as a real one would be; so the full data's estimate and the truth are both at hand.
//! `docs/calibration.md` is this module's table.

mod cells;
mod study;
mod table;

pub use cells::{Analysis, Cell, cells};
pub use study::{Clusters, Loss, Outcome, Study};
pub use table::{Share, Shares, render, run};
