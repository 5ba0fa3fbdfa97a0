//! What a runtime is given: the ports to the world, and how much it takes on.

use closer_contracts::delta::Delta;
use closer_contracts::id::ActorId;
use closer_protocol::port::{Clock, Ids, Observer, Operations, Participant, Pending};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The ports to the world. The actors call them; adapters implement them.
#[derive(Clone)]
pub struct Ports {
    /// The one clock.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub ids: Arc<dyn Ids>,
    /// Carries out operations.
    pub operations: Arc<dyn Operations>,
    /// Observes targets.
    pub observer: Arc<dyn Observer>,
    /// The participants that run in this process, by registered identity.
    pub participants: BTreeMap<ActorId, Arc<dyn Participant>>,
}

/// Considers a delta before the assessor's position on it is drafted: a slow reviewer, a second process.
pub trait Endorser: Send + Sync {
    /// Returns when the delta has been considered.
    fn consider<'a>(&'a self, delta: &'a Delta) -> Pending<'a, ()>;
}

/// Called with a name before each stage is attended to: `coordinator`, the desk (`disclosure`, `participants`, `planner`,
/// `assessor`, `monitor`, `observer`, `briefcase`, `distiller`, `semantic`), `dispatcher` before a permit is used, and
/// `sequence` before each decision. It may panic, which tests use.
pub type Probe = Arc<dyn Fn(&'static str) + Send + Sync>;

/// How much a runtime takes on, and for how long.
#[derive(Clone)]
pub struct Options {
    /// The most inputs admitted through handles and not settled; beyond it an ordinary input is `busy`.
    pub admitted_max: usize,
    /// The longest that one effect may take, in milliseconds; after that its outcome is unknown.
    pub effect_ms_max: u64,
    /// The longest that one observation may take, in milliseconds; after that the target is unavailable.
    pub observe_ms_max: u64,
    /// The longest that a graceful stop waits for effects under way, in milliseconds; after that their outcome is unknown.
    pub stop_ms_max: u64,
    /// Considers deltas before they are endorsed.
    pub endorser: Option<Arc<dyn Endorser>>,
    /// Called before each stage.
    pub probe: Option<Probe>,
    /// For crash tests: after this many appends nothing leaves and nothing is decided any more.
    pub halt_after: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            admitted_max: 1024,
            effect_ms_max: 600_000,
            observe_ms_max: 30_000,
            stop_ms_max: 10_000,
            endorser: None,
            probe: None,
            halt_after: None,
        }
    }
}
