//! Studies: frozen, run, reported and verified. Touches no space; a study has stores of its own.

use super::exit::Exit;
use super::progress;
use super::talk::Talk;
use crate::error::Error;
use crate::request::Answer;
use clap::Subcommand;
use closer_eval::file::Misfit;
use closer_eval::participant::Launch;
use closer_eval::plan::Plan;
use closer_eval::report::NotReported;
use closer_eval::runner::{self, Options, Progress, RunError};
use closer_eval::step::Step;
use closer_eval::suite::{self, Family};
use closer_eval::{bundle, forecast, freeze, item, participant, report, truth, world};
use serde_json::json;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// What can be done with a study.
#[derive(Debug, Subcommand)]
pub(super) enum Eval {
    /// Writes a suite from the templates: items, truth and a plan to begin with.
    #[command(after_help = "Example:\n  closer eval suite my-study --family supported_continuation --items 20")]
    Suite {
        /// A new folder.
        directory: PathBuf,
        /// A family of cases; may be repeated. All twelve without it.
        #[arg(long = "family", value_name = "FAMILY", value_parser = family)]
        families: Vec<Family>,
        /// Items of each family.
        #[arg(long, default_value_t = 4)]
        items: usize,
        /// The seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Checks items of your own and commits each by ordinary admission, to see whether it would be accepted.
    #[command(after_help = "Example:\n  closer eval enroll items.jsonl --truth truth.jsonl")]
    Enroll {
        /// The items, one JSON object a line; the schema is docs/schemas/eval-item.json.
        items: PathBuf,
        /// What is held out about them, checked against the digests that the items declare.
        #[arg(long)]
        truth: Option<PathBuf>,
    },
    /// Fixes a plan by digest; a changed one becomes a new revision.
    Freeze {
        /// The plan.
        plan: PathBuf,
    },
    /// Tells what a study would take, and what it could see.
    Plan {
        /// The plan.
        plan: PathBuf,
    },
    /// Runs a frozen plan, or goes on with it; then scores and reports it.
    #[command(after_help = "Example:\n  closer eval freeze my-study/plan.toml && closer eval run my-study/plan.toml")]
    Run {
        /// The plan.
        plan: PathBuf,
        /// Enrol no pair beyond this much money, in millionths of the plan's currency.
        #[arg(long = "max-cost", value_name = "MICROS")]
        cost_micros_max: Option<u64>,
    },
    /// Makes the report of a revision again.
    Report {
        /// The revision's folder.
        folder: PathBuf,
    },
    /// Makes every figure of a revision again, from its folder alone, and compares.
    Verify {
        /// The folder of a revision or of a bundle.
        folder: PathBuf,
        /// The whole revision that a redacted bundle was made of, to show that nothing but the withheld is missing.
        #[arg(long, value_name = "FOLDER")]
        against: Option<PathBuf>,
    },
    /// Writes a revision into a folder to hand on: whole, or with everything that somebody wrote withheld.
    #[command(after_help = "\
Example:
  closer eval bundle my-study/study-revision-1 to-share --redact
  closer eval verify to-share
  closer eval verify to-share --against my-study/study-revision-1")]
    Bundle {
        /// The revision's folder.
        folder: PathBuf,
        /// A new folder.
        to: PathBuf,
        /// Withhold packets, answers, items, prompts, targets, parameters and reasons; their digests stay.
        #[arg(long)]
        redact: bool,
    },
    /// Asks of a deployment's own record whether one committed claim changes the next step of what it bears on.
    #[command(after_help = "\
Example:
  closer eval item examples/cost-candidate/var/store CLAIM --plan my-study/plan.toml")]
    Item {
        /// The store's folder; it is copied and not touched.
        store: PathBuf,
        /// The claim.
        claim: String,
        /// A plan, for its participant and its seed.
        #[arg(long)]
        plan: PathBuf,
    },
    /// Answers one packet on stdin as a participant of our own.
    #[command(hide = true)]
    Answer {
        /// The participant's declaration.
        declaration: PathBuf,
    },
}

fn family(text: &str) -> Result<Family, String> {
    let known = Family::ALL.iter().find(|family| family.as_str() == text);
    let names = || Family::ALL.iter().map(|family| family.as_str()).collect::<Vec<_>>().join(", ");
    known.copied().ok_or_else(|| format!("no family has this name; there are {}", names()))
}

fn failed(error: impl Display) -> Error {
    Error::World(error.to_string())
}

/// Says why not, for people and as a value where one was asked for.
fn told(talk: Talk, reason: &dyn Display, exit: Exit) -> Exit {
    if talk.json {
        talk.put(&json!({ "error": reason.to_string() }).to_string());
    }
    talk.say(&reason.to_string());
    exit
}

/// Carries a verb out.
pub(super) fn perform(verb: &Eval, talk: Talk) -> Result<Exit, Error> {
    match verb {
        Eval::Suite { directory, families, items, seed } => write_suite(directory, families, *items, *seed, talk),
        Eval::Enroll { items, truth } => enroll(items, truth.as_deref(), talk),
        Eval::Freeze { plan } => fix(plan, talk),
        Eval::Plan { plan } => foretell(plan, talk),
        Eval::Run { plan, cost_micros_max } => run(plan, *cost_micros_max, talk),
        Eval::Report { folder } => {
            let folder = report::write(folder).map_err(failed)?;
            let text = folder.join("index.html").display().to_string();
            Ok(talk.tell(&Answer::done(json!({ "report": folder }), vec![text])))
        }
        Eval::Verify { folder, against } => verify(folder, against.as_deref(), talk),
        Eval::Bundle { folder, to, redact } => {
            let files = bundle::bundle(folder, to, *redact).map_err(failed)?;
            let text = format!("{files} files of the report are in {}, made again from what was kept", to.display());
            Ok(talk.tell(&Answer::done(json!({ "folder": to, "files": files, "redacted": redact }), vec![text])))
        }
        Eval::Item { store, claim, plan } => ask_own(store, claim, plan, talk),
        Eval::Answer { declaration } => {
            participant::serve(declaration).map_err(failed)?;
            Ok(Exit::Ok)
        }
    }
}

const PLAN: &str = include_str!("eval-plan.toml");

fn write_suite(directory: &Path, families: &[Family], items: usize, seed: u64, talk: Talk) -> Result<Exit, Error> {
    let families = if families.is_empty() { Family::ALL } else { families };
    let suite = suite::generate(families, items, seed)?;
    std::fs::create_dir_all(directory).map_err(Error::io(directory.display().to_string()))?;
    let plan = directory.join("plan.toml");
    if plan.exists() {
        return Err(Error::World(format!("{} is there already", plan.display())));
    }
    suite
        .write(&directory.join("items.jsonl"), &directory.join("truth.jsonl"))
        .and_then(|()| std::fs::write(&plan, PLAN))
        .map_err(Error::io(directory.display().to_string()))?;
    let text = format!("{} items in {}", suite.items.len(), directory.display());
    Ok(talk.tell(&Answer::done(json!({ "plan": plan, "items": suite.items.len() }), vec![text])))
}

fn enroll(items: &Path, truth: Option<&Path>, talk: Talk) -> Result<Exit, Error> {
    let read = item::read(items).map_err(failed)?;
    if let Some(truth) = truth {
        truth::read(truth, &read).map_err(failed)?;
    }
    let bar = progress::bar("items");
    let mut refused = Vec::new();
    for (done, item) in read.iter().enumerate() {
        progress::advance(&bar, done as u64, read.len() as u64);
        if let Err(error) = world::commit(item, &item.claim) {
            refused.push((item.item.to_string(), error.to_string()));
        }
    }
    bar.finish_and_clear();
    let mut text = vec![format!("{} of {} items are accepted", read.len() - refused.len(), read.len())];
    text.extend(refused.iter().map(|(item, reason)| format!("{item}: {reason}")));
    Ok(talk.tell(&Answer::done(json!({ "items": read.len(), "refused": refused }), text)))
}

fn folder_of(plan: &Path) -> &Path {
    plan.parent().unwrap_or(Path::new("."))
}

fn fix(path: &Path, talk: Talk) -> Result<Exit, Error> {
    let plan = Plan::read(path).map_err(failed)?;
    // What cannot be run is not fixed either: the items are read, the truth is only digested.
    item::read(&folder_of(path).join(&plan.items)).map_err(failed)?;
    let (freeze, folder) = freeze::freeze(&plan, folder_of(path)).map_err(failed)?;
    let digest = closer_contracts::canonical::digest_of(&freeze)?;
    let text = format!("revision {} of {}: {digest}", freeze.revision, freeze.study);
    Ok(talk.tell(&Answer::done(json!({ "freeze": freeze, "digest": digest, "folder": folder }), vec![text])))
}

fn foretell(path: &Path, talk: Talk) -> Result<Exit, Error> {
    let plan = Plan::read(path).map_err(failed)?;
    let items = item::read(&folder_of(path).join(&plan.items)).map_err(failed)?;
    let forecast = forecast::forecast(&plan, &items);
    let known = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    let text = vec![
        format!("{} pairs, {} of them about inheritance", forecast.pairs, forecast.asked),
        format!("{} calls{}", forecast.calls, if forecast.fits { "" } else { ", more than the arms may take" }),
        format!("tokens: {}", known(forecast.tokens)),
        format!("money in millionths, priced and not metered: {}", known(forecast.priced_micros)),
        match forecast.power {
            Some(power) => format!("power of the exact test at 5 %: {:.0} %", power * 100.0),
            None => "power: unknown; the plan says nothing of what is expected".to_owned(),
        },
    ];
    Ok(talk.tell(&Answer::done(json!(forecast), text)))
}

fn run(path: &Path, cost_micros_max: Option<u64>, talk: Talk) -> Result<Exit, Error> {
    let options = Options { own: own()?, build: build(path)?, cost_micros_max };
    let bar = progress::bar("pairs");
    let moves = |at: Progress| progress::advance(&bar, at.settled as u64, at.planned as u64);
    let ran = match runner::run(path, &options, &moves) {
        Ok(ran) => ran,
        Err(reason @ (RunError::NotFrozen(_) | RunError::NotComparable(_))) => {
            bar.finish_and_clear();
            return Ok(told(talk, &reason, Exit::Refused));
        }
        Err(error) => return Err(failed(error)),
    };
    bar.finish_and_clear();
    report::keep_sources(path, &ran.folder).map_err(failed)?;
    let folder = report::write(&ran.folder).map_err(failed)?;
    let mut text = vec![
        format!("{} of {} pairs were enrolled, all of them have their fate", ran.enrolled, ran.planned),
        folder.join("index.html").display().to_string(),
    ];
    if ran.not_enrolled > 0 {
        text.push(format!(
            "{} pairs were not enrolled: a cap was reached, or the mechanism was not tested",
            ran.not_enrolled
        ));
    }
    let data = json!({ "folder": ran.folder, "planned": ran.planned, "enrolled": ran.enrolled, "report": folder });
    Ok(talk.tell(&Answer::done(data, text)))
}

fn ask_own(store: &Path, claim: &str, path: &Path, talk: Talk) -> Result<Exit, Error> {
    let plan = Plan::read(path).map_err(failed)?;
    let copy = std::env::temp_dir().join(format!("closer-eval-{}", std::process::id()));
    let declaration = copy.join("participant.json");
    let prepared = closer_eval::store::copy(&store.join("log"), &copy.join("log")).map_err(failed).and_then(|()| {
        let declared = serde_json::to_vec(&plan.participant).unwrap_or_default();
        std::fs::write(&declaration, declared).map_err(Error::io("declaring the participant"))
    });
    let asked = prepared.and_then(|()| {
        let records = closer_eval::store::read(&copy.join("log")).map_err(failed)?;
        let launch = Launch { own: own()?, folder: folder_of(path).to_owned(), declaration: declaration.clone() };
        closer_eval::own::ask(&records, &claim.into(), &plan.participant, &launch, plan.seed).map_err(failed)
    });
    if let Err(error) = std::fs::remove_dir_all(&copy) {
        talk.say(&format!("{} is left: {error}", copy.display()));
    }
    let pairs = asked?;
    let taken = |step: &Option<Result<Step, String>>| match step {
        Some(Ok(step)) => step.shown(),
        Some(Err(reason)) => format!("no step: {reason}"),
        None => "not asked".to_owned(),
    };
    let text = pairs.iter().map(|pair| {
        let changes = match (pair.valid, pair.changes) {
            (false, _) => "the packet without it tells it all the same",
            (true, Some(true)) => "another step",
            (true, Some(false)) => "the same step",
            (true, None) => "unknown",
        };
        format!("{}  {changes}: {} / {}", pair.obligation_id, taken(&pair.with_claim), taken(&pair.without_claim))
    });
    Ok(talk.tell(&Answer::done(json!({ "pairs": pairs }), text.collect())))
}

/// The build that runs a study: the digest of this program, where procedures are compared by it.
fn build(plan: &Path) -> Result<closer_contracts::Digest, Error> {
    match Plan::read(plan).map_err(failed)?.procedures {
        None => Ok(closer_contracts::Digest::of(b"")),
        Some(_) => {
            let own = std::env::current_exe().map_err(Error::io("finding the program itself"))?;
            Ok(closer_contracts::Digest::of(&std::fs::read(&own).map_err(Error::io(own.display().to_string()))?))
        }
    }
}

/// What starts a participant of our own: this program.
fn own() -> Result<Vec<std::ffi::OsString>, Error> {
    let own = std::env::current_exe().map_err(Error::io("finding the program itself"))?;
    Ok(vec![own.into(), "eval".into(), "answer".into()])
}

fn verify(folder: &Path, against: Option<&Path>, talk: Talk) -> Result<Exit, Error> {
    let compared = report::verify(folder).and_then(|files| {
        let differs = against.map_or(Ok(Vec::new()), |revision| bundle::differs(revision, folder))?;
        if differs.is_empty() { Ok(files) } else { Err(NotReported::Differs(differs)) }
    });
    match compared {
        Ok(files) => {
            let text = format!("{files} files are what the outputs give");
            Ok(talk.tell(&Answer::done(json!({ "files": files }), vec![text])))
        }
        Err(error @ (NotReported::Differs(_) | NotReported::Accounts(_) | NotReported::NotFrozen(_))) => {
            Ok(told(talk, &error, Exit::Corruption))
        }
        Err(NotReported::Misfit(misfit @ Misfit::Field { .. })) => Ok(told(talk, &misfit, Exit::Corruption)),
        Err(error) => Err(failed(error)),
    }
}
