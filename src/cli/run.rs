//! Running a deployment: to rest, or until it is stopped.

use super::arguments::Run;
use super::exit::Exit;
use super::init::now;
use super::talk::Talk;
use crate::deployment::{Deployment, Until};
use crate::error::Error;
use crate::request::{self, Answer, AnswerDraft, Outcome, Request};
use crate::space::Space;
use crate::wiring::{self, Live};
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::id::{DecisionId, ObligationId};
use closer_contracts::item::{Item, ItemKind};
use closer_protocol::View;
use closer_store::Standing;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How far ahead a deadline may lie for a run to wait for it before it calls itself at rest, in milliseconds.
const HORIZON_MS: u64 = 5_000;

pub(super) async fn run(arguments: &Run, directory: &Path, talk: Talk) -> Result<Exit, Error> {
    let deployment = Deployment::load(directory, &now())?;
    let live = started(&deployment, talk).await?;
    talk.say(&format!("running {}", deployment.directory.display()));
    let until = match (arguments.until_idle, arguments.until_stopped) {
        (true, _) => Until::Idle,
        (_, true) => Until::Stopped,
        (false, false) => deployment.until,
    };
    let mut stop = attending().map_err(Error::io("waiting for a signal"))?;
    let ended = tokio::select! {
        ended = attend(&live, arguments, until, talk) => ended,
        () = stop.asked() => Ok(()),
        () = without_room(&live, until, talk) => Ok(()),
    };
    let view = live.space().view();
    let told = ended.map(|()| tell(&view, arguments, talk));
    let standing = live.space().log().standing();
    live.stop().await?;
    match standing {
        Standing::Writing => told,
        Standing::Full => {
            told?;
            Ok(talk.tell(&Answer::full()))
        }
        Standing::Stopped(error) => Err(error.into()),
    }
}

/// The deployment's space, running; founded first where it is new.
pub(super) async fn started(deployment: &Deployment, talk: Talk) -> Result<Live, Error> {
    if !wiring::is_founded(&deployment.store) {
        wiring::init(deployment, &mut |line| talk.say(line)).await?;
    }
    match Live::start(deployment).await {
        Err(Error::Actors(closer_actors::Error::Unfounded)) => {
            wiring::init(deployment, &mut |line| talk.say(line)).await?;
            Live::start(deployment).await
        }
        started => started,
    }
}

/// From now on somebody attends to requests to end the process, and ends it in good order.
pub(super) fn attending() -> std::io::Result<Stop> {
    let stop = Stop::listen()?;
    ATTENDING.store(true, Ordering::Release);
    Ok(stop)
}

/// Whether a run attends to requests to end itself.
static ATTENDING: AtomicBool = AtomicBool::new(false);

/// What asks the process to end.
pub(super) struct Stop {
    interrupted: Signal,
    terminated: Signal,
}

impl Stop {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupted: signal(SignalKind::interrupt())?, terminated: signal(SignalKind::terminate())? })
    }

    /// Resolves when the process is asked to end.
    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
    }
}

/// Ends the process with an answer where it is asked to end before a run attends to that.
pub(super) async fn end_early(mut stop: Stop, talk: Talk) {
    stop.asked().await;
    if !ATTENDING.load(Ordering::Acquire) {
        closer_adapters::end_all_beside();
        std::process::exit(talk.interrupted() as i32);
    }
}

/// How long a run to rest goes on on a full disk, and how often that is looked at.
const FULL_FOR: Duration = Duration::from_secs(5);
const FULL_EVERY: Duration = Duration::from_millis(250);

/// Says once that the store has no room, or that it stopped; resolves where a run to rest would wait for it in vain.
async fn without_room(live: &Live, until: Until, talk: Talk) {
    let mut since: Option<Instant> = None;
    loop {
        tokio::time::sleep(FULL_EVERY).await;
        match (live.space().log().standing(), since) {
            (Standing::Writing, _) => since = None,
            (Standing::Stopped(error), _) => {
                talk.say(&format!("nothing more is recorded: {error}"));
                return;
            }
            (Standing::Full, None) => {
                talk.say("the disk is full: nothing but restrictions and outcomes is recorded until there is room");
                since = Some(Instant::now());
            }
            (Standing::Full, Some(full)) if full.elapsed() > FULL_FOR && until == Until::Idle => return,
            (Standing::Full, Some(_)) => {}
        }
    }
}

fn waiting(view: &View) -> Vec<DecisionId> {
    let waits = |status: PacketStatus| matches!(status, PacketStatus::Open | PacketStatus::Overdue);
    view.packets.iter().filter(|(_, packet)| waits(packet.status)).map(|(id, _)| id.clone()).collect()
}

/// Answers what is asked, as far as it may, until the run is over.
async fn attend(live: &Live, arguments: &Run, until: Until, talk: Talk) -> Result<(), Error> {
    let mut answered = BTreeSet::new();
    loop {
        match until {
            Until::Idle => live.settled(HORIZON_MS).await,
            Until::Stopped => live.space().handle().idle().await,
        }
        let view = live.space().view();
        let mut open = None;
        for id in waiting(&view).into_iter().filter(|id| answered.insert(id.clone())) {
            match arguments.answer.as_deref().and_then(|option| request::futile(&view, &id, option)) {
                Some(why) => talk.say(&format!("not answered: {id}: {why}")),
                None => {
                    open = Some(id);
                    break;
                }
            }
        }
        match (open, &arguments.answer, until) {
            (Some(decision_id), Some(option), _) => answer(live, &view, decision_id, option, talk).await?,
            (Some(decision_id), None, Until::Stopped) => talk.say(&format!("a packet is on The Bench: {decision_id}")),
            (_, _, Until::Idle) => return Ok(()),
            (None, _, Until::Stopped) => {
                live.space().handle().changed(&view).await;
            }
        }
    }
}

async fn answer(live: &Live, view: &View, decision_id: DecisionId, option: &str, talk: Talk) -> Result<(), Error> {
    let question = view.packets.get(&decision_id).map(|packet| packet.packet.body.question.clone());
    talk.say(&format!("asked: {}", question.as_ref().map_or("", |question| question.as_str())));
    let identity = request::default_identity(view);
    let request = Request::BenchDecide(AnswerDraft {
        decision_id,
        option: option.to_owned(),
        packet_digest: None,
        amend: Default::default(),
        expect: Default::default(),
    });
    let answer = request::answer(&**live.space(), &identity, request).await?;
    match answer.outcome {
        Outcome::Done => talk.say(&format!("answered: {option}")),
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => {
            answer.text.iter().for_each(|line| talk.say(line));
        }
    }
    Ok(())
}

/// Tells how it stands at the end: the traces as data, what is asked as talk.
fn tell(view: &View, arguments: &Run, talk: Talk) -> Exit {
    let of = |verb: &str, rest: &[&str]| talk.command(&[&[verb], rest].concat());
    let obligations = view
        .state
        .items(ItemKind::Obligation)
        .filter_map(|accepted| if let Item::Obligation(obligation) = &accepted.item { Some(obligation) } else { None });
    let (mut told, mut open) = (Vec::new(), 0_usize);
    for obligation in obligations {
        open += usize::from(obligation.status.is_open());
        told.push(tell_one(view, &obligation.obligation_id, &obligation.status.to_string(), arguments, talk));
    }
    let asked = waiting(view);
    if talk.json {
        talk.put(&json!({ "state": view.state.reference(), "obligations": told, "waiting": asked }).to_string());
    }
    for decision_id in &asked {
        let question = view.packets.get(decision_id).map(|packet| packet.packet.body.question.clone());
        talk.say(&format!("The Bench: {}", question.as_ref().map_or("", |question| question.as_str())));
        let id = decision_id.as_str();
        talk.say(&format!("  look:   {}", of("bench", &["show", id])));
        talk.say(&format!("  answer: {}    (or: refuse, investigate)", of("bench", &["decide", id, "allow"])));
        talk.say(&format!("  then:   {}", talk.command(&["run", &talk.directory.to_string_lossy()])));
    }
    match (asked.is_empty(), open) {
        (true, 0) => Exit::Ok,
        (false, _) => Exit::AwaitingUser,
        (true, _) => Exit::Open,
    }
}

fn tell_one(view: &View, id: &ObligationId, status: &str, arguments: &Run, talk: Talk) -> Value {
    let trace = request::trace(view, id);
    if !talk.json {
        talk.put(&format!("{id}: {status}"));
        if arguments.answer.is_some() || arguments.trace {
            trace.text.iter().for_each(|line| talk.put(&format!("  {line}")));
        }
    }
    json!({ "obligation_id": id, "status": status, "trace": trace.data })
}
