//! The world: a map of targets, and ports that can misbehave.

use super::target;
use closer_actors::Endorser;
use closer_contracts::action::Action;
use closer_contracts::canonical;
use closer_contracts::delta::Delta;
use closer_contracts::id::{AttemptId, Key};
use closer_contracts::refs::{Plain, Target, TypedValue};
use closer_contracts::time::Timestamp;
use closer_contracts::work::*;
use closer_monitor::{ClockStanding, Permit};
use closer_protocol::port::*;
use closer_scenarios::founding::BEGINNING;
use closer_scenarios::worker;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of these tests: it passes as the system's does and begins when the scenarios' deployment begins, so that nothing
/// in it has expired.
pub(crate) fn now() -> Timestamp {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let elapsed_ms = u64::try_from(BEGUN.elapsed().as_millis()).unwrap();
    Timestamp::parse(BEGINNING).unwrap().plus_ms(elapsed_ms)
}

/// The clock that says [`now`].
pub(crate) struct Wall;

impl Clock for Wall {
    fn now(&self) -> (Timestamp, ClockStanding) {
        (now(), ClockStanding::Reliable)
    }
}

/// Ids that no other instance gives.
pub(crate) struct Counted {
    run: u128,
    next: AtomicU64,
}

impl Default for Counted {
    fn default() -> Self {
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        Self { run, next: AtomicU64::new(0) }
    }
}

impl Ids for Counted {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}-{:x}.{}", self.run, self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn nonce(&self) -> String {
        format!("{:016x}{:016x}", self.run as u64, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// How the world answers effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// They take place and are answered.
    #[default]
    Answers,
    /// They take place and the answer is lost.
    AppliesUnanswered,
    /// They do not take place and the answer is lost.
    LosesIt,
}

/// Targets with their plan, and every effect that really took place. It outlives the runtimes that act on it.
#[derive(Default)]
pub(crate) struct World {
    plans: Mutex<BTreeMap<Target, String>>,
    effects: Mutex<Vec<Action>>,
    pub(crate) mode: Mutex<Mode>,
    /// How long an effect takes.
    pub(crate) effect_ms: AtomicU64,
    /// How often any target was looked at.
    pub(crate) looks: AtomicU64,
}

impl World {
    pub(crate) fn plan(&self, service: &str) -> Option<String> {
        self.plans.lock().unwrap().get(&target(service)).cloned()
    }

    pub(crate) fn effects(&self) -> Vec<Action> {
        self.effects.lock().unwrap().clone()
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    fn apply(&self, action: &Action) {
        let plan = action.parameters.get(&Key::from("plan")).and_then(Plain::as_text).unwrap().to_owned();
        self.plans.lock().unwrap().insert(action.target.clone(), plan);
        self.effects.lock().unwrap().push(action.clone());
    }
}

/// The world as operations see it.
pub(crate) struct Acts(pub(crate) Arc<World>);

impl Operations for Acts {
    fn perform<'a>(&'a self, permit: Permit, order: &'a Order) -> Pending<'a, Performed> {
        Box::pin(async move {
            assert_eq!(permit.logical_digest(), order.action.logical_digest, "a permit is for one exact action");
            let sent_at = now();
            tokio::time::sleep(Duration::from_millis(self.0.effect_ms.load(Ordering::Relaxed))).await;
            let mode = *self.0.mode.lock().unwrap();
            if mode != Mode::LosesIt {
                self.0.apply(&order.action);
            }
            match mode {
                Mode::Answers => Performed::Responded { sent_at, responded_at: now(), response: Plain(json!("done")) },
                Mode::AppliesUnanswered | Mode::LosesIt => {
                    Performed::Unknown { sent_at, reason: "the answer was lost".into() }
                }
            }
        })
    }

    fn cancel<'a>(&'a self, _: &'a AttemptId, _: &'a Order) -> Pending<'a, ()> {
        Box::pin(async {})
    }
}

/// The world as observers see it.
pub(crate) struct Sees(pub(crate) Arc<World>);

impl Observer for Sees {
    fn observe<'a>(&'a self, order: &'a ReadbackOrder) -> Pending<'a, Observed> {
        Box::pin(async move {
            self.0.looks.fetch_add(1, Ordering::Relaxed);
            let plan = self.0.plans.lock().unwrap().get(&order.target).cloned();
            Observed::Seen {
                target: order.target.clone(),
                observed_at: now(),
                target_version: TargetVersion::Unknown,
                observation: TypedValue { r#type: Key::from("plan"), value: Plain(json!({ "plan": plan })) },
                limitations: Vec::new(),
            }
        })
    }
}

/// What a worker answers.
pub(crate) type Answer = Box<dyn Fn(&Work) -> Result<WorkResult, NoAnswer> + Send + Sync>;

/// A worker that answers by a script.
pub(crate) struct Scripted(pub(crate) Answer);

impl Participant for Scripted {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move { Ok(canonical::to_bytes(&(self.0)(work)?).unwrap().into()) })
    }
}

/// Proposes for every obligation to change the plan of the service that its packet is about.
pub(crate) fn proposes(plan: &'static str) -> Answer {
    Box::new(move |work| {
        let proposition = work.question.subject_refs[0].as_str();
        let service = work.context_items[0].content.0["dependencies"][0]["watch"]["entity_ref"].as_str().unwrap();
        let proposal = ActionProposal { target: target(service), ..worker::proposal(proposition, plan) };
        Ok(WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) })
    })
}

/// Considers each delta for a while, and counts how often it was asked about each proposal.
pub(crate) struct Slow {
    pub(crate) asked: Mutex<BTreeMap<String, u32>>,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
}

impl Slow {
    pub(crate) fn new(from_ms: u64, to_ms: u64) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), from_ms, to_ms })
    }

    /// How often it was asked, in all.
    pub(crate) fn count(&self) -> u32 {
        self.asked.lock().unwrap().values().sum()
    }
}

impl Endorser for Slow {
    fn consider<'a>(&'a self, delta: &'a Delta) -> Pending<'a, ()> {
        let asked = self.count();
        *self.asked.lock().unwrap().entry(delta.delta_id.to_string()).or_default() += 1;
        let span = self.to_ms.saturating_sub(self.from_ms).max(1);
        let takes = self.from_ms + u64::from(asked) * 97 % span;
        Box::pin(tokio::time::sleep(Duration::from_millis(takes)))
    }
}
