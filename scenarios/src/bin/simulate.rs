//! Runs the simulator: `cargo xtask sim` calls it, and says which options there are.

use closer_scenarios::simulate::{Plan, Violation, run_plan, shrink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is asked for.
struct Asked {
    from: u64,
    seeds: u64,
    steps: usize,
    threads: u64,
    /// A kept plan to run in place of seeds.
    plan: Option<PathBuf>,
    /// Where a shrunk failing plan is put.
    keep: Option<PathBuf>,
    /// Stop at the first violation.
    first: bool,
}

fn main() -> ExitCode {
    match asked(std::env::args().skip(1)).and_then(|asked| run(&asked)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("simulate: {error}");
            ExitCode::from(2)
        }
    }
}

fn asked(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { from: 0, seeds: 20, steps: 400, threads: 1, plan: None, keep: None, first: false };
    while let Some(word) = words.next() {
        if word == "--first" {
            asked.first = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|error| format!("{word}: {error}"));
        match word.as_str() {
            "--from" => asked.from = number()?,
            "--seeds" => asked.seeds = number()?,
            "--steps" => asked.steps = usize::try_from(number()?).map_err(|error| error.to_string())?,
            "--threads" => asked.threads = number()?.max(1),
            "--plan" => asked.plan = Some(value.into()),
            "--keep" => asked.keep = Some(value.into()),
            _ => return Err(format!("`{word}` is no option")),
        }
    }
    Ok(asked)
}

/// Whether nothing was violated.
fn run(asked: &Asked) -> Result<bool, String> {
    if let Some(path) = &asked.plan {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(told(&Plan::read(&text)?).is_ok());
    }
    let next = AtomicU64::new(asked.from);
    let (failed, found) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..asked.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= asked.from + asked.seeds || (asked.first && failed.load(Ordering::Relaxed)) {
                        return;
                    }
                    let plan = Plan::of(seed, asked.steps);
                    if let Err(violation) = told(&plan) {
                        failed.store(true, Ordering::Relaxed);
                        if let Ok(mut found) = found.lock() {
                            found.push((plan, *violation));
                        }
                    }
                }
            });
        }
    });
    let found = found.into_inner().map_err(|error| error.to_string())?;
    println!("{} of {} seeds with {} steps violate something", found.len(), asked.seeds, asked.steps);
    let holds = found.is_empty();
    if let (Some(folder), Some((plan, violation))) = (&asked.keep, found.into_iter().min_by_key(|(plan, _)| plan.seed))
    {
        keep(folder, &plan, violation)?;
    }
    Ok(holds)
}

/// Runs a plan and says what came of it.
fn told(plan: &Plan) -> Result<(), Box<Violation>> {
    match run_plan(plan) {
        Ok(summary) => {
            println!(
                "seed {}: {} records, {} attempts, {} effects, {} refusals, {} closed, {} restarts, {}",
                plan.seed,
                summary.records,
                summary.attempts,
                summary.effects,
                summary.refusals,
                summary.closed,
                summary.restarts,
                summary.digest
            );
            Ok(())
        }
        Err(violation) => {
            println!("VIOLATION {violation}");
            Err(Box::new(violation))
        }
    }
}

fn keep(folder: &Path, plan: &Plan, violation: Violation) -> Result<(), String> {
    let (shorter, found) = shrink(plan, violation);
    let text = shorter.kept(&found.what);
    let path = folder.join(format!("seed-{}.toml", plan.seed));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, &text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("shrunk to {} steps, kept as {}:\n{text}", shorter.steps.len(), path.display());
    println!("what it does:\n  {}", found.history.join("\n  "));
    Ok(())
}
