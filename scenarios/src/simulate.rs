//! Seeded runs: steps, faults and crashes in an order that a seed decides, with what must always hold checked after each.
//!
//! A run drives the pure core, the sequence and the store's own code. The store writes to a disk in memory that tears,
//! fails, runs full and loses power as a real one does; two sequencers share it, one of which has lost the lease and does
//! not know; targets apply and do not answer, answer late, show what was before or belong to another account; messages
//! arrive twice, late, in another order or not at all; participants, planners, issuers and recipients lie. The same seed
//! makes the same records. At the end everything behaves, and an obligation that nobody has touched must get closed.
//!
//! | file | owns |
//! |---|---|
//! | `plan` | what happens, as text |
//! | `ground` | the store over the simulated disk, beside a model of it |
//! | `world` | what is founded, and who answers |
//! | `machine` | the two processes, and how they die |
//! | `steps` | what each ordinary step does |
//! | `faults` | what each fault does |
//! | `deceit` | what the dishonest try |
//! | `forgery` | what a dishonest planner does to actions |
//! | `distortion` | what a dishonest distiller proposes |
//! | `misreading` | what a dishonest observer reports |
//! | `tampering` | what is bent on the disk |
//! | `books` | a second accounting of budgets |
//! | `invariants` | what must always hold |
//! | `shrink` | a shorter plan that still fails |
//!
//! It does not simulate actors, sockets or the real file system: crash runs and whole-system tests do. Spec: §5, §7, §8.

mod books;
mod deceit;
mod distortion;
mod faults;
mod forgery;
mod ground;
mod invariants;
mod machine;
mod misreading;
pub mod plan;
mod shrink;
mod steps;
mod tampering;
mod world;

pub use plan::Plan;
pub use shrink::shrink;

use closer_contracts::Digest;
use machine::Simulation;

/// How often everything is folded anew, compared, and walked by the store's own check, in steps.
const THOROUGH_EVERY: usize = 100;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Records in the log.
    pub records: usize,
    /// Effects that really took place.
    pub effects: usize,
    /// Attempts that were admitted.
    pub attempts: usize,
    /// Refusals on record.
    pub refusals: u64,
    /// Obligations that were closed.
    pub closed: usize,
    /// How often a process began again.
    pub restarts: usize,
    /// The digest of every record, in order.
    pub digest: Digest,
}

/// Something that must always hold did not.
#[derive(Debug, Clone, thiserror::Error)]
#[error("seed {seed}, step {step}: {what}\nthe last steps:\n  {}", .history.join("\n  "))]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// After which step.
    pub step: usize,
    /// What did not hold.
    pub what: String,
    /// The last steps, the newest at the end.
    pub history: Vec<String>,
}

/// Runs `steps` steps of a seed.
///
/// # Errors
/// The first [`Violation`]; a runtime that breaks is one too.
pub fn run(seed: u64, steps: usize) -> Result<Summary, Violation> {
    run_plan(&Plan::of(seed, steps))
}

/// Runs a plan.
///
/// # Errors
/// As [`run`].
pub fn run_plan(plan: &Plan) -> Result<Summary, Violation> {
    let mut history = Vec::new();
    let mut step = 0;
    let ended = Simulation::new(plan.seed, plan.obligations).and_then(|mut simulation| {
        for next in &plan.steps {
            step += 1;
            history.push(next.to_string());
            let taken = simulation.take(*next)?;
            history.pop();
            history.push(format!("{next}: {taken}"));
            simulation.check()?;
            if step % THOROUGH_EVERY == 0 {
                simulation.check_thoroughly()?;
            }
        }
        simulation.come_to_rest(&mut history)?;
        simulation.check_thoroughly()?;
        Ok(simulation.summary())
    });
    ended.map_err(|what| {
        let newest = history.split_off(history.len().saturating_sub(25));
        Violation { seed: plan.seed, step, what, history: newest }
    })
}
