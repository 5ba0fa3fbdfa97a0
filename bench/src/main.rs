//! Benchmarks: every figure beside the raw limit of the same disk and a hand-written baseline, in one run.
//!
//! `store` measures the record log, `action` governed effects and whole actions over real actors, `truth` what it costs to
//! invalidate a premise, `predicates` what an event costs among many registered predicates.

mod action;
mod load;
mod memory;
mod ours;
mod predicates;
mod raw;
mod reopen;
mod report;
mod sqlite;
mod store;
mod truth;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "closer-bench", about = "Measures Closer beside the raw disk and SQLite")]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Raw append, group append, SQLite, the log alone, the log with derived state
    Store(store::Options),
    /// Governed effects and whole actions, from event to receipt, beside SQLite by hand
    Action(action::Options),
    /// Invalidates a premise that many claims rest on, one after another or all at once
    Truth(truth::Options),
    /// Events among few and many registered predicates, and what each predicate costs in memory
    Predicates(predicates::Options),
    /// Fills a store and waits to be killed
    #[command(hide = true)]
    Fill(reopen::Fill),
    /// Opens a space and says how much memory that takes
    #[command(hide = true)]
    Hold(memory::Hold),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().subject {
        Subject::Store(options) => store::run(&options),
        Subject::Action(options) => action::run(&options),
        Subject::Truth(options) => truth::run(&options),
        Subject::Predicates(options) => predicates::run(&options),
        Subject::Fill(fill) => reopen::fill(&fill),
        Subject::Hold(hold) => memory::hold(&hold),
    }
}
