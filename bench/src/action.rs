//! Governed effects and whole actions over real actors, beside SQLite by hand on the same disk in the same run.
//!
//! A *governed effect* is the monitor's judgment with its durable intent, the effect, and its durable outcome. A *whole
//! action* goes from an event to the receipt of the commit that closes its obligation. The world is in memory and answers at
//! once, so that what is measured is the runtime and the disk.

use crate::load::Load;
use crate::memory;
use crate::report::{Report, median};
use crate::sqlite;
use anyhow::{Context, Result, ensure};
use closer_actors::{Handle, Options as RuntimeOptions, Ports, Runtime};
use closer_contracts::auth::{Credential, Session, SigningScope, key_id, sign};
use closer_contracts::envelope::{Body, Envelope};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::{ActorId, Key, ObligationId, PayloadId};
use closer_contracts::item::{Identity, IdentityKind, Item, Mechanism, SigningKeyEntry};
use closer_contracts::payload_type::PayloadType;
use closer_contracts::refs::{ActorRef, ProducerRole, SourceRef, Target};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Work, WorkResult};
use closer_contracts::{Digest, Payload};
use closer_monitor::{ClockStanding, Permit};
use closer_protocol::port::{
    Clock, Ids, NoAnswer, Observed, Observer, Operations, Order, Participant, Pending, Performed, ReadbackOrder, Said,
};
use closer_protocol::{Input, Moment, Reply, View, action, adjudicate, services, work};
use closer_scenarios::founding::{BEGINNING, Deployment, grant, identity, obligation};
use closer_scenarios::{World, worker};
use closer_store::{Log, RecordLog};
use ed25519_dalek::SigningKey;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Obligations, each of which is one action on a target of its own
    #[arg(long, default_value_t = 2000)]
    actions: usize,
    /// Seconds of the SQLite measurement
    #[arg(long, default_value_t = 5)]
    short_seconds: u64,
    /// Rounds of the SQLite measurement, of which the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Open obligations in one space, for their memory
    #[arg(long, default_value_t = 4_000)]
    obligations: usize,
    /// Where to measure; a temporary folder inside it is used and removed
    #[arg(long, default_value = ".")]
    folder: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    memory::run(&options.folder, options.obligations, &mut report)?;
    let mut folders = Vec::new();
    for in_flight in [1, 64] {
        let mut rates = Vec::new();
        for _ in 0..options.rounds {
            let folder = tempfile::tempdir_in(&options.folder)?;
            let load = Load { in_flight, duration: Duration::from_secs(options.short_seconds) };
            rates.push(sqlite::run(folder.path(), load)? / 2.0);
            folders.push(folder);
        }
        let baseline = median(rates);
        report.row(&format!("sqlite_{in_flight}_effects_per_s"), baseline, "an intent and its result by hand, durable");
        let count = if in_flight == 1 { options.actions / 10 } else { options.actions };
        for signed in [false, true] {
            let how = if signed { "ed25519" } else { "session" };
            let folder = tempfile::tempdir_in(&options.folder)?;
            let spent = runtime.block_on(whole(folder.path(), count, in_flight, signed))?;
            spent.report(&mut report, &format!("actions_{how}_{in_flight}"), (baseline, 0.8));
            folders.push(folder);
        }
        let folder = tempfile::tempdir_in(&options.folder)?;
        let spent = runtime.block_on(effects(folder.path(), count, in_flight))?;
        spent.report(&mut report, &format!("effects_{in_flight}"), (baseline, 2.5));
        folders.push(folder);
    }
    report.finish()
}

/// What a run took, for each of its actions.
struct Spent {
    /// Actions per second.
    rate: f64,
    /// Processor time of the whole process.
    processor_ms: f64,
    records: f64,
    flushes: f64,
}

impl Spent {
    fn report(&self, report: &mut Report, name: &str, (baseline, target): (f64, f64)) {
        report.row(&format!("{name}_per_s"), self.rate, "durable");
        report.row(&format!("{name}_of_sqlite"), self.rate / baseline, &format!("target with 64: at least {target}"));
        report.row(&format!("{name}_processor_ms"), self.processor_ms, "each");
        report.row(&format!("{name}_records"), self.records, "each");
        report.row(&format!("{name}_flushes"), self.flushes, "each");
    }
}

/// The processor time that this process has used.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Begins when the scenarios' deployment begins, so that nothing in it has expired.
struct BenchClock;

impl Clock for BenchClock {
    fn now(&self) -> (Timestamp, ClockStanding) {
        static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        let beginning = Timestamp::parse(BEGINNING).unwrap_or_else(|_| Timestamp::from_unix_ms(0));
        let elapsed_ms = u64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(u64::MAX);
        (beginning.plus_ms(elapsed_ms), ClockStanding::Reliable)
    }
}

#[derive(Default)]
struct Counter(AtomicU64);

impl Ids for Counter {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn nonce(&self) -> String {
        format!("{:032x}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The world in memory, behind the ports.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<World>>);

impl Memory {
    fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Operations for Memory {
    fn perform<'a>(&'a self, _permit: Permit, order: &'a Order) -> Pending<'a, Performed> {
        let (now, _) = BenchClock.now();
        let reason = "the call does not return";
        let performed = self.with(|world| world.perform(&order.action, &now));
        let performed = performed.unwrap_or_else(|| Performed::Unknown { sent_at: now, reason: reason.into() });
        Box::pin(std::future::ready(performed))
    }

    fn cancel<'a>(&'a self, _: &'a closer_contracts::id::AttemptId, _: &'a Order) -> Pending<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Observer for Memory {
    fn observe<'a>(&'a self, order: &'a ReadbackOrder) -> Pending<'a, Observed> {
        let (now, _) = BenchClock.now();
        let observed = self.with(|world| world.observe(&order.target, &now));
        Box::pin(std::future::ready(observed))
    }
}

/// The target of the obligation whose proposition this is.
fn target_of(proposition: &str) -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: proposition.trim_start_matches("p-").into() }
}

fn result_of(work: &Work) -> WorkResult {
    let proposition = work.question.subject_refs.first().map_or("p", |id| id.as_str());
    let mut proposal = worker::proposal(proposition, "basic");
    proposal.target = target_of(proposition);
    WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
}

/// Proposes the change at once.
struct Proposes;

impl Participant for Proposes {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        let bytes = closer_contracts::canonical::to_bytes(&result_of(work));
        let answer = bytes.map(Said::from).map_err(|fault| NoAnswer::new(fault.code, fault.reason.into_owned()));
        Box::pin(std::future::ready(answer))
    }
}

/// Never answers, so that the bench itself brings the result in.
struct Silent;

impl Participant for Silent {
    fn work<'a>(&'a self, _: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(std::future::pending())
    }
}

pub(crate) struct Space {
    runtime: Runtime,
    handle: Handle,
    log: Arc<Log>,
    observer: Session,
    key: Option<SigningKey>,
}

/// The deployment with `count` obligations.
fn deployment(count: usize, key: Option<&SigningKey>) -> Deployment {
    let mut deployment = Deployment::default();
    deployment.founding.obligations =
        (0..count).map(|number| obligation(&format!("o-{number}"), &format!("entity-{number}"))).collect();
    let mut wide = grant("grant-1", "plan.change", &["basic"]);
    for targets in &mut wide.targets {
        targets.address = "*".into();
    }
    let deployment = deployment.with(Item::Grant(wide)).with_profile(|profile| {
        profile.mechanisms = vec![Mechanism::Session, Mechanism::Ed25519];
        profile.signing_policy.rotation = Some("Yearly.".into());
        profile.signing_policy.revocation = Some("By the user.".into());
        profile.signing_policy.scope = Some("Events.".into());
        profile.limits.fan_out_max = 100_000;
    });
    deployment.with(Item::Identity(observer(key)))
}

async fn start(folder: &Path, count: usize, signed: bool, participant: Arc<dyn Participant>) -> Result<Arc<Space>> {
    let key = signed.then(|| SigningKey::from_bytes(&[7; 32]));
    let log = Arc::new(Log::open(folder, None)?);
    let (now, clock) = BenchClock.now();
    closer_actors::found(&log, &deployment(count, key.as_ref()).founding, &Moment { now, clock }).await?;
    serve(log, key, participant).await
}

async fn serve(log: Arc<Log>, key: Option<SigningKey>, participant: Arc<dyn Participant>) -> Result<Arc<Space>> {
    let memory = Memory::default();
    let ports = Ports {
        clock: Arc::new(BenchClock),
        ids: Arc::new(Counter::default()),
        operations: Arc::new(memory.clone()),
        observer: Arc::new(memory),
        participants: [(ActorId::from("worker"), participant)].into(),
    };
    let runtime = Runtime::start(Arc::clone(&log), ports, RuntimeOptions::default()).await?;
    let handle = runtime.handle();
    let observer = handle.session(&"observer-1".into())?;
    Ok(Arc::new(Space { runtime, handle, log, observer, key }))
}

/// Founds a space of `count` obligations in a folder, and closes it.
pub(crate) fn found(folder: &Path, count: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let space = runtime.block_on(start(folder, count, false, Arc::new(Silent)))?;
    runtime.block_on(close(space))
}

/// Opens the space in a folder, with its derived state.
pub(crate) async fn open(folder: &Path) -> Result<Arc<Space>> {
    let space = serve(Arc::new(Log::open(folder, None)?), None, Arc::new(Silent)).await?;
    let derived = space.log.derived().context("the derived state")?;
    ensure!(derived.wait_for(space.log.durable(), Duration::from_secs(300)), "the derived state does not catch up");
    Ok(space)
}

/// Stops a space and verifies its log.
pub(crate) async fn close(space: Arc<Space>) -> Result<()> {
    space.finish().await.map(|_| ())
}

fn observer(key: Option<&SigningKey>) -> Identity {
    let mut observer = identity("observer-1", IdentityKind::Producer, &[ProducerRole::Observer], &[]);
    if let Some(key) = key {
        observer.mechanisms.push(Mechanism::Ed25519);
        observer.keys.push(SigningKeyEntry {
            key_id: key_id(&key.verifying_key()),
            public_key: Key::new(
                key.verifying_key().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            ),
            not_before: Timestamp::from_unix_ms(0),
            not_after: Timestamp::from_unix_ms(4_000_000_000_000),
            signing_scope: vec![SigningScope::Event],
            revoked_at: None,
            compromised: false,
        });
    }
    observer
}

impl Space {
    fn event(&self, number: usize) -> Result<Payload> {
        let view = self.handle.view();
        let disclosure =
            view.disclosure(&services::intake_disclosure("feed")).context("the feed is registered")?.clone();
        let (now, _) = BenchClock.now();
        Ok(Payload::seal(Envelope {
            protocol_version: Key::from("closer-draft-4"),
            payload_id: PayloadId::new(format!("pl.event-{number}")),
            r#type: PayloadType::Event,
            created_at: now.clone(),
            producer: ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer },
            parents: Vec::new(),
            obligation_ids: Vec::new(),
            episode_id: None,
            semantic_basis: None,
            disclosure,
            budget_ref: None,
            causation_event_id: None,
            body: Body::from(Event {
                event_id: format!("event-{number}").into(),
                source: SourceRef { source_id: "feed".into() },
                observed_at: now.clone(),
                received_at: now,
                entity_ref: format!("entity-{number}").into(),
                change_kind: "price".into(),
                evidence_refs: Vec::new(),
                deduplication_key: format!("event-{number}").into(),
                certainty: Certainty::Observed,
                extensions: None,
            }),
            content_digest: Digest::of(b""),
            extensions: None,
        })?)
    }

    async fn send_event(&self, number: usize) -> Result<()> {
        let payload = self.event(number)?;
        let submission = match &self.key {
            None => self.handle.authenticate_payload(payload, Credential::Session(&self.observer))?,
            Some(key) => {
                let signature = sign(key, payload.content_digest(), SigningScope::Event, &"observer-1".into())?;
                let key_id = key_id(&key.verifying_key());
                self.handle
                    .authenticate_payload(payload, Credential::Ed25519 { key_id: &key_id, signature: &signature })?
            }
        };
        recorded(self.handle.submit(Input::Payload(submission)).await?)
    }

    /// Keeps `in_flight` under way until all `count` are done, as `done` sees in the view.
    async fn pump<B: Future<Output = Result<()>> + Send + 'static>(
        self: &Arc<Self>,
        count: usize,
        in_flight: usize,
        begin: impl Fn(Arc<Self>, usize) -> B,
        done: impl Fn(&View, usize) -> bool,
    ) -> Result<Spent> {
        let (begun_at, processor, records, flushes) =
            (Instant::now(), processor_time(), self.log.durable().0, self.log.flushes());
        let mut beginning = tokio::task::JoinSet::new();
        let mut under_way = BTreeSet::new();
        let mut next = 0;
        let mut views = self.handle.subscribe();
        loop {
            while next < count && under_way.len() < in_flight {
                beginning.spawn(begin(Arc::clone(self), next));
                under_way.insert(next);
                next += 1;
            }
            if under_way.is_empty() {
                break;
            }
            tokio::select! {
                Some(begun) = beginning.join_next() => begun??,
                changed = tokio::time::timeout(Duration::from_secs(60), views.changed()) => {
                    changed.context("nothing moves")??;
                    let view = views.borrow_and_update().clone();
                    under_way.retain(|number| !done(&view, *number));
                }
            }
        }
        let each = |total: u64| total as f64 / count as f64;
        Ok(Spent {
            rate: count as f64 / begun_at.elapsed().as_secs_f64(),
            processor_ms: (processor_time() - processor).as_secs_f64() * 1e3 / count as f64,
            records: each(self.log.durable().0 - records),
            flushes: each(self.log.flushes() - flushes),
        })
    }

    async fn finish(self: Arc<Self>) -> Result<u64> {
        let Self { runtime, log, handle, .. } = Arc::into_inner(self).context("everybody else is done")?;
        drop(handle);
        runtime.stop().await?;
        let verified = log.verify(&mut |_| {})?;
        Ok(verified.records)
    }
}

fn recorded(reply: Reply) -> Result<()> {
    match reply {
        Reply::Recorded(_) => Ok(()),
        Reply::Refused(denials) => anyhow::bail!("refused: {denials:?}"),
    }
}

fn is_closed(view: &View, number: usize) -> bool {
    let id = ObligationId::new(format!("o-{number}"));
    view.state.obligation(&id).is_some_and(|obligation| !obligation.status.is_open())
}

async fn whole(folder: &Path, count: usize, in_flight: usize, signed: bool) -> Result<Spent> {
    let space = start(folder, count, signed, Arc::new(Proposes)).await?;
    let begin = async |space: Arc<Space>, number: usize| space.send_event(number).await;
    let spent = space.pump(count, in_flight, begin, is_closed).await?;
    let in_log = space.finish().await?;
    ensure!(in_log as f64 >= spent.records * count as f64, "{in_log} records verified");
    Ok(spent)
}

/// Dispatch to durable outcome only: results, actions and assessments are brought in beforehand.
async fn effects(folder: &Path, count: usize, in_flight: usize) -> Result<Spent> {
    let space = start(folder, count, false, Arc::new(Silent)).await?;
    let sessions = (
        space.handle.session(&"worker".into())?,
        space.handle.session(&services::actor(ProducerRole::Planner))?,
        space.handle.session(&services::actor(ProducerRole::Assessor))?,
    );
    let mut attempts = Vec::new();
    for number in 0..count {
        space.send_event(number).await?;
        attempts.push(assessed(&space, number, &sessions).await?);
    }
    let payloads: Vec<PayloadId> = attempts.iter().map(|(payload_id, _)| payload_id.clone()).collect();
    let begin = |space: Arc<Space>, number: usize| {
        let payload_id = payloads.get(number).cloned();
        async move {
            let payload_id = payload_id.context("an attempt")?;
            recorded(space.handle.submit(Input::Dispatch { payload_id, adjudication_id: None }).await?)
        }
    };
    let settled = |view: &View, number: usize| {
        let attempt = attempts.get(number).and_then(|(_, attempt_id)| view.attempts.get(attempt_id));
        attempt.is_some_and(|attempt| attempt.outcome.is_some())
    };
    let spent = space.pump(count, in_flight, begin, settled).await?;
    space.finish().await?;
    Ok(spent)
}

type Sessions = (Session, Session, Session);

/// Brings an obligation's action to the point where it may be dispatched.
async fn assessed(
    space: &Space,
    number: usize,
    sessions: &Sessions,
) -> Result<(PayloadId, closer_contracts::id::AttemptId)> {
    let obligation_id = ObligationId::new(format!("o-{number}"));
    let mut views = space.handle.subscribe();
    let view = views
        .wait_for(|view| {
            let episode = view.under_way.get(&obligation_id).and_then(|id| view.episodes.get(id));
            episode.is_some_and(|episode| !episode.work.is_empty())
        })
        .await?
        .clone();
    let episode = view.under_way.get(&obligation_id).and_then(|id| view.episodes.get(id)).context("an episode")?;
    let work_id = episode.work.last().context("work")?;
    let result = result_of(&view.works.get(work_id).context("the work")?.body);
    let proposal = result.action_proposals.first().context("a proposal")?.clone();
    let (now, _) = BenchClock.now();
    let (worker, planner, assessor) = sessions;
    let answer = work::draft_result(&view, episode, &"worker".into(), work_id, result, &now)?;
    let result_id = answer.id().clone();
    bring(space, answer, worker).await?;
    let view = space.handle.view();
    let grant = action::covering_grant(&view, &proposal, &now).context("a grant")?;
    let planned = action::draft(&view, episode, &result_id, &proposal, &grant, 1, &now)?;
    let payload_id = planned.id().clone();
    bring(space, planned, planner).await?;
    let view = space.handle.view();
    let on_record = view.actions.get(&payload_id).context("the action")?;
    let assessment = adjudicate::pre_action(&view, episode, on_record, &now)?;
    bring(space, assessment, assessor).await?;
    Ok((payload_id, on_record.body.attempt_id.clone()))
}

async fn bring(space: &Space, payload: Payload, session: &Session) -> Result<()> {
    let submission = space.handle.authenticate_payload(payload, Credential::Session(session))?;
    recorded(space.handle.submit(Input::Payload(submission)).await?)
}
