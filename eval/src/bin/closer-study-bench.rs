//! Measures what a study takes: a fresh process for each world, a run of many pairs, and the report of many more.
//!
//! Arguments: pairs of the run, pairs of the report.

use closer_contracts::Digest;
use closer_contracts::canonical::digest_of;
use closer_contracts::id::{ArtifactId, Key};
use closer_eval::accounts::{Accounts, Attempt, AttemptEnd, Entry, World};
use closer_eval::artifacts::Artifacts;
use closer_eval::freeze;
use closer_eval::packet::Difference;
use closer_eval::participant::{Launch, Participant, Synthetic, answer, ask};
use closer_eval::plan::{PairKind, Plan};
use closer_eval::report;
use closer_eval::runner::{self, ACCOUNTS, Options};
use closer_eval::step::Step;
use closer_eval::suite::{Family, Suite, generate};
use closer_eval::world::{OneWorld, commit};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PLAN: &str = "study = \"bench\"\nitems = \"items.jsonl\"\ntruth = \"truth.jsonl\"\nseed = 1\ncontrols = []\n\
[participant]\nkind = \"synthetic\"\nfollows = 90\nguesses = 30\n\
[resources]\ncalls = 1000000\ntokens = 1000000\nreasoning_tokens = \"counted\"\ncached_tokens = \"counted\"\n\
cost_micros = 0\ncurrency = \"EUR\"\nwall_ms = 86400000\nconcurrency = 2\n[analysis]\nmethod = \"t\"\n";

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [run, reported] = numbers.as_slice() else { return Err("pairs of the run, pairs of the report".into()) };
    let folder = std::env::temp_dir().join(format!("closer-study-bench-{}", std::process::id()));
    let measured = overhead(&folder).and_then(|()| running(&folder, *run)).and_then(|()| reporting(&folder, *reported));
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn own() -> Result<PathBuf, Box<dyn Error>> {
    let beside = std::env::current_exe()?.with_file_name("closer-participant");
    match beside.exists() {
        true => Ok(beside),
        false => Err(format!("{} is not built", beside.display()).into()),
    }
}

const SYNTHETIC: Synthetic = Synthetic { follows: 90, guesses: 30 };

/// From the packet at hand to the answer's bytes, against the same answer in this process.
fn overhead(folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let item = generate(&[Family::SupportedContinuation], 1, 1)?.items.swap_remove(0);
    let committed = commit(&item, &item.claim)?;
    let world = OneWorld::begin(&item, &committed, None)?;
    let participant = Participant::Synthetic(SYNTHETIC);
    let declaration = folder.join("participant.json");
    std::fs::write(&declaration, serde_json::to_vec(&participant)?)?;
    let launch = Launch { own: vec![own()?.into()], folder: folder.to_owned(), declaration };
    let (mut fresh, mut within) = (Vec::new(), Vec::new());
    for seed in 0..300 {
        let began = Instant::now();
        ask(&participant, &launch, world.work(), seed).answer.map_err(|(_, reason)| reason)?;
        fresh.push(began.elapsed());
        let began = Instant::now();
        answer(&participant, world.work(), seed).ok_or("no answer")?;
        within.push(began.elapsed());
    }
    let [fresh, within] = [fresh, within].map(|mut times| {
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    });
    println!("fresh process per world, median of 300: {:.2} ms", ms(fresh.saturating_sub(within)));
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// What stays resident of this process, in MiB.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1_024.0
}

fn written(folder: &Path, suite: &Suite) -> Result<PathBuf, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    suite.write(&folder.join("items.jsonl"), &folder.join("truth.jsonl"))?;
    let plan = folder.join("plan.toml");
    std::fs::write(&plan, PLAN)?;
    freeze::freeze(&Plan::read(&plan)?, folder)?;
    Ok(plan)
}

fn running(folder: &Path, pairs: usize) -> Result<(), Box<dyn Error>> {
    let suite = generate(&[Family::SupportedContinuation], pairs, 1)?;
    let plan = written(&folder.join("run"), &suite)?;
    let options = Options { own: vec![own()?.into()], build: Digest::of(b""), cost_micros_max: None };
    let resident = Mutex::new(Vec::new());
    let began = Instant::now();
    let ran = runner::run(&plan, &options, &|at| {
        if at.settled.is_multiple_of((at.planned / 10).max(1))
            && let Ok(mut resident) = resident.lock()
        {
            resident.push(resident_mib());
        }
    })?;
    let took = began.elapsed();
    let resident = resident.into_inner().unwrap_or_default();
    println!(
        "{} pairs in {:.1} s: {:.1} a second",
        ran.enrolled,
        took.as_secs_f64(),
        pairs as f64 / took.as_secs_f64()
    );
    let shown: Vec<String> = resident.iter().map(|mib| format!("{mib:.0}")).collect();
    println!("resident at each tenth, MiB: {}", shown.join(" "));
    let began = Instant::now();
    report::keep_sources(&plan, &ran.folder)?;
    report::write(&ran.folder)?;
    println!("its report: {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// One pair is really run; the accounts say of each of many that it came to the same.
fn reporting(folder: &Path, pairs: usize) -> Result<(), Box<dyn Error>> {
    let folder = folder.join("report");
    let first = generate(&[Family::SupportedContinuation], 1, 1)?;
    let (item, truth) = first.items.first().zip(first.truths.first()).ok_or("the suite is empty")?;
    let mut suite = Suite { items: Vec::new(), truths: Vec::new() };
    for number in 0..pairs {
        let name = Key::new(format!("item-{number:05}"));
        let (mut item, mut truth) = (item.clone(), truth.clone());
        truth.item = name.clone();
        item.truth_digest = digest_of(&truth)?;
        item.cluster = name.clone();
        item.item = name;
        suite.items.push(item);
        suite.truths.push(truth);
    }
    let plan_path = written(&folder, &suite)?;
    let plan = Plan::read(&plan_path)?;
    let (freeze, revision) = freeze::held(&plan, &folder)?;
    let artifacts = Artifacts::at(&revision.join("artifacts"));
    let committed = commit(item, &item.claim)?;
    let withheld = ArtifactId::new(committed.claim.claim_id.as_str());
    let worlds = [OneWorld::begin(item, &committed, None)?, OneWorld::begin(item, &committed, Some(&withheld))?];
    let [a, b] = &worlds;
    let state = a.state_root();
    let difference = artifacts.keep(&Difference::between(a.work(), b.work(), Some(&committed.claim)))?;
    let packets = [artifacts.keep(a.work())?, artifacts.keep(b.work())?];
    let mut ends = Vec::new();
    for world in worlds {
        let answered = answer(&Participant::Synthetic(SYNTHETIC), world.work(), 1).ok_or("no answer")?;
        let kept = artifacts.keep(&answered)?;
        let step = Step::of(&answered.result)?;
        let outcome = artifacts.keep(&world.answer(answered.result, &step)??)?;
        let usage = answered.usage;
        let end =
            AttemptEnd { cause: None, answer: Some(kept), outcome: Some(outcome), usage, ..AttemptEnd::interrupted() };
        ends.push(AttemptEnd { wall_ms: Some(1), ..end });
    }
    let mut accounts = Accounts::open(&revision.join(ACCOUNTS))?;
    let opened = (plan.study.clone(), freeze.revision, digest_of(&freeze)?);
    accounts.enter(Entry::Opened { study: opened.0, revision: opened.1, freeze: opened.2 })?;
    for item in &suite.items {
        let pair = Key::new(format!("{}.inheritance", item.item));
        let (family, cluster) = (item.family.clone(), item.cluster.clone());
        let (kind, of) = (PairKind::Inheritance, item.item.clone());
        accounts.enter(Entry::Enrolled { pair: pair.clone(), item: of, kind, family, cluster })?;
        accounts.enter(Entry::Committed { pair: pair.clone(), store: state })?;
        accounts.enter(Entry::Compared { pair: pair.clone(), a: packets[0], b: packets[1], difference, state })?;
        for (world, end) in [World::A, World::B].into_iter().zip(&ends) {
            let attempt = Attempt { pair: pair.clone(), world, repeat: 1, attempt: 1 };
            accounts.enter(Entry::Began(attempt.clone()))?;
            accounts.enter(Entry::Ended { attempt, end: end.clone() })?;
        }
        accounts.enter(Entry::Settled { pair, cause: None, reason: None })?;
    }
    accounts.enter(Entry::Sealed { enrolled: pairs })?;
    drop(accounts);
    report::keep_sources(&plan_path, &revision)?;
    let began = Instant::now();
    report::write(&revision)?;
    println!("report of {pairs} pairs: {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    report::verify(&revision)?;
    println!("and its verification: {:.1} s; resident {:.0} MiB", began.elapsed().as_secs_f64(), resident_mib());
    Ok(())
}
