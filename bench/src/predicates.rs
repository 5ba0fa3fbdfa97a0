//! Registered predicates: an event costs what it touches and not what is registered, and each predicate has its price in
//! memory.
//!
//! Every obligation has ten triggers: of evidence, of another item's version, of time, and of several together. One event
//! concerns the triggers of one obligation, however many others there are.

use crate::memory::resident;
use crate::report::{Report, median};
use anyhow::{Context, Result, anyhow, ensure};
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::Event;
use closer_contracts::id::{ArtifactId, DeltaId};
use closer_contracts::obligation::Obligation;
use closer_contracts::reentry::{
    All, Any, DependencyVersionChanged, EvidenceAdded, Reentry, TimeReached, TypedPredicate,
};
use closer_contracts::refs::{ArtifactRef, SourceRef};
use closer_contracts::time::Timestamp;
use closer_protocol::entry::payload_ref;
use closer_protocol::{Entry, Moment, View, matching, timers};
use closer_scenarios::founding::{declaration, obligation, scope};
use closer_scenarios::{Deployment, Space, worker};
use closer_state::{Derivation, State, propose};
use std::sync::Arc;
use std::time::Instant;

/// The triggers of one obligation.
const EACH: usize = 10;
/// How many obligations one commit admits.
const TOGETHER: usize = 500;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many predicates are registered in the smaller space
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// How many predicates are registered in the larger space
    #[arg(long, default_value_t = 1_000_000)]
    many: usize,
    /// How many events are measured in each
    #[arg(long, default_value_t = 400)]
    events: usize,
}

fn source(number: usize) -> String {
    format!("source-{number}")
}

fn evidence(number: usize, after: u64) -> TypedPredicate {
    TypedPredicate::EvidenceAdded(EvidenceAdded {
        scope_ref: scope(),
        permitted_source_refs: vec![source(number).as_str().into()],
        after_cursor: [(format!("stream-{number}").as_str().into(), after)].into(),
    })
}

/// The ten predicates of an obligation, each a little different from every other.
fn predicates(number: usize) -> Vec<TypedPredicate> {
    let time = |offset: usize| {
        let ms = i64::try_from(number * EACH + offset).unwrap_or(0);
        TypedPredicate::TimeReached(TimeReached { at: Timestamp::from_unix_ms(4_000_000_000_000 + ms) })
    };
    let version = |what: &str| {
        TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
            dependency_ref: format!("{what}-{number}").as_str().into(),
            compared_version: Digest::of(b"as it was"),
        })
    };
    let mut all: Vec<_> = (1..=4).map(|after| evidence(number, after)).collect();
    all.extend([time(1), time(2), version("price"), version("terms")]);
    all.push(TypedPredicate::All(All { items: vec![evidence(number, 5), time(3)] }));
    all.push(TypedPredicate::Any(Any { items: vec![evidence(number, 6), version("plan")] }));
    all
}

fn kept(number: usize) -> (Obligation, Vec<Reentry>) {
    let id = format!("kept-{number}");
    let (mut obligation, reentries) = obligation(&id, &format!("entity-{number}"));
    let like = reentries.into_iter().next();
    let triggers = predicates(number).into_iter().enumerate().filter_map(|(at, predicate)| {
        let name = format!("trigger-{number}-{at}");
        Some(Reentry {
            reentry_id: name.as_str().into(),
            deduplication_key: name.as_str().into(),
            predicate,
            ..like.clone()?
        })
    });
    let triggers: Vec<Reentry> = triggers.collect();
    obligation.reentry_refs = triggers.iter().map(|reentry| reentry.reentry_id.clone()).collect();
    (obligation, triggers)
}

fn committed(state: &State, id: &str, changes: Vec<Change>) -> Result<State> {
    let delta = Delta {
        delta_id: DeltaId::from(id),
        parent_state: state.reference(),
        changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: Vec::new(),
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    };
    let delta = delta.sealed().map_err(|fault| anyhow!("{fault}"))?;
    let declared = declaration();
    let digest = closer_contracts::canonical::digest_of(&declared).map_err(|fault| anyhow!("{fault}"))?;
    let origin = ArtifactRef { id: ArtifactId::new(declared.declaration_id.as_str()), digest };
    let derivation = Derivation { origins: vec![origin], ..Derivation::at(Timestamp::from_unix_ms(1_800_000_000_000)) };
    let (_, next) = propose(state, delta, &derivation).map_err(|denied| anyhow!("it is denied: {denied:?}"))?;
    Ok(next)
}

/// A view in which this many predicates are registered.
fn registered(count: usize) -> Result<View> {
    let space = Space::found(&Deployment::default(), worker::proposes("basic"))?;
    let mut view = space.view().clone();
    let obligations = count / EACH;
    for first in (0..obligations).step_by(TOGETHER) {
        let admitted = (first..(first + TOGETHER).min(obligations)).map(|number| {
            let (obligation, reentries) = kept(number);
            Change::AdmitObligation { obligation: Box::new(obligation), reentries }
        });
        view.state = committed(&view.state, &format!("admits-{first}"), admitted.collect())?;
    }
    Ok(view)
}

/// An event of the source that the triggers of one obligation wait for.
fn event(space: &mut Space, number: usize) -> Result<(Event, Arc<Payload>)> {
    let payload = space.event_payload("nothing", "price", Vec::new()).map_err(|fault| anyhow!("{fault}"))?;
    let mut envelope = payload.envelope().clone();
    let Body::Event(body) = &envelope.body else { return Err(anyhow!("no event")) };
    let event = Event { source: SourceRef { source_id: source(number).as_str().into() }, ..(**body).clone() };
    envelope.body = Body::from(event.clone());
    Ok((event, Arc::new(Payload::seal(envelope).map_err(|fault| anyhow!("{fault}"))?)))
}

/// What was measured in one space.
struct Figures {
    matched_us: f64,
    fired_us: f64,
    due_us: f64,
    registered_us: f64,
    bytes_each: f64,
}

fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let started = Instant::now();
    let done = run()?;
    Ok((started.elapsed().as_secs_f64() * 1e6, done))
}

fn measure(count: usize, events: usize) -> Result<Figures> {
    let before = resident()?;
    let view = registered(count)?;
    let bytes_each = resident()?.saturating_sub(before) as f64 / count as f64;
    let mut space = Space::found(&Deployment::default(), worker::proposes("basic"))?;
    let at = Moment { now: Timestamp::from_unix_ms(1_800_000_000_000), ..space.moment() };
    let obligations = count / EACH;
    let (mut matched, mut fired, mut due, mut registering) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..events.max(1) {
        // Spread over everything that is registered, so that no cache makes the larger space look small.
        let number = round * 7_919 % obligations.max(1);
        let (event, payload) = event(&mut space, number)?;
        let reference = payload_ref(&payload);
        let (us, receipt) = timed(|| Ok(matching::match_event(&event, reference, None, &view, &at)))?;
        ensure!(receipt.rationale.len() == 6, "{} triggers were considered", receipt.rationale.len());
        matched.push(us);
        let entry = Entry::Payload(payload);
        fired.push(timed(|| Ok(matching::fired(&view, &at, [&entry])))?.0);
        due.push(timed(|| Ok((timers::due(&view, &at), timers::next_deadline(&view, &at.now))))?.0);
        let (_, mut reentries) = kept(number);
        let added = reentries.first().cloned().context("a trigger")?;
        reentries.push(Reentry { reentry_id: "trigger-more".into(), deduplication_key: "more".into(), ..added });
        let obligation_id = format!("kept-{number}").as_str().into();
        let change = Change::SetTriggers { obligation_id, reentries, trigger_gap: None };
        registering.push(timed(|| committed(&view.state, "registers", vec![change]))?.0);
    }
    Ok(Figures {
        matched_us: median(matched),
        fired_us: median(fired),
        due_us: median(due),
        registered_us: median(registering),
        bytes_each,
    })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { few, many, events } = *options;
    let mut report = Report::default();
    let small = measure(few, events)?;
    let large = measure(many, events)?;
    for (count, figures) in [(few, &small), (many, &large)] {
        report.row(&format!("matched_us_{count}"), figures.matched_us, "an event is compared with what waits for it");
        report.row(&format!("fired_us_{count}"), figures.fired_us, "what fires on the event's record");
        report.row(&format!("due_us_{count}"), figures.due_us, "what is due now, and when to wake next");
        report.row(
            &format!("registered_us_{count}"),
            figures.registered_us,
            "one more trigger, committed, with its root",
        );
    }
    let growths = [
        ("matched", large.matched_us / small.matched_us),
        ("fired", large.fired_us / small.fired_us),
        ("due", large.due_us / small.due_us),
        ("registered", large.registered_us / small.registered_us),
    ];
    for (name, growth) in growths {
        report.row(&format!("{name}_growth"), growth, "the larger space beside the smaller; target at most 1.5");
    }
    report.row("predicate_resident_bytes", large.bytes_each, "with its share of obligation, indexes and root");
    report.finish()
}
