//! What can happen in a race, carried out by the core, and what must hold after each move.

use crate::ground::{Delayed, Switch};
use closer_contracts::Timestamp;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::handoff::HandoffConsent;
use closer_contracts::id::{Key, PayloadId};
use closer_contracts::item::{AffectedScope, IdentityKind, Item};
use closer_contracts::record::Record;
use closer_contracts::refs::ProducerRole;
use closer_monitor::OwnershipStanding;
use closer_protocol::View;
use closer_protocol::entry::AttemptStatus;
use closer_protocol::episode::Next;
use closer_protocol::handoff::Terms;
use closer_protocol::input::{Input, Reply};
use closer_protocol::port::Performed;
use closer_scenarios::founding::{identity, plan_target};
use closer_scenarios::space::Broken;
use closer_scenarios::{Deployment, MemoryLog, Space, World, worker};

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    /// The drafted and assessed action is to be admitted.
    Dispatch,
    /// What has been decided becomes durable; until then, where this is a move, nothing is.
    BecomesDurable,
    /// Admitted effects leave.
    Send,
    /// The issuer restricts the action's operation.
    Restrict,
    /// Whoever was offered the responsibility first accepts.
    ConsentOfOne,
    /// And says so twice.
    ConsentOfOneAgain,
    /// Whoever was offered it second accepts.
    ConsentOfOther,
    /// The lease that goes with the offers ends.
    LeaseEnds,
    /// It is told that nothing was sent.
    ToldNotSent,
}

/// What a path came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct CameTo {
    pub(crate) broken: Option<String>,
    pub(crate) effects: usize,
    pub(crate) refused: usize,
}

/// Where every path begins: an action is drafted and assessed, and two are offered the responsibility for it.
pub(crate) struct Begin {
    records: Vec<Record>,
    view: View,
    now: Timestamp,
    payload_id: PayloadId,
    consents: [HandoffConsent; 2],
}

const LEASE_MS: u64 = 5_000;

impl Begin {
    /// With or without a lease that ends.
    pub(crate) fn new(leased: bool) -> Self {
        let rival = |id| Item::Identity(identity(id, IdentityKind::Producer, &[ProducerRole::Observer], &[]));
        let deployment = Deployment::default().with(rival("one")).with(rival("other"));
        let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
        assert!(space.event("service-a", "price").unwrap().refusal().is_none(), "the event is recorded");
        let episode_id = space.open("o-1").unwrap();
        let mut drafted = None;
        for _ in 0..20 {
            if let Next::Dispatch { payload_id } = space.next(&episode_id).unwrap() {
                drafted = Some(payload_id);
                break;
            }
            space.advance(&episode_id).unwrap();
        }
        let payload_id = drafted.expect("the episode comes to a dispatch");
        let lease_expiry = leased.then(|| space.moment().now.plus_ms(LEASE_MS));
        let contract = space.contract(&[], &[], &[]).unwrap();
        let consents = ["one", "other"].map(|rival| {
            let terms = Terms { lease_expiry: lease_expiry.clone(), ..space.terms("o-1", rival, &contract).unwrap() };
            let handoff_id = terms.handoff_id.clone();
            assert!(space.offer(terms).unwrap().refusal().is_none(), "the offer is admissible");
            space.consent_to(&handoff_id).unwrap()
        });
        let view = View::clone(space.view());
        Self { records: space.records().to_vec(), view, now: space.moment().now, payload_id, consents }
    }

    /// Carries the moves out, one after another, and looks after each.
    pub(crate) fn carry_out(&self, moves: &[Move]) -> CameTo {
        let mut run = Run::of(self, moves.contains(&Move::BecomesDurable));
        let mut came_to = CameTo::default();
        for next in moves {
            match run.take(*next) {
                Ok(Some(Reply::Refused(_))) => came_to.refused += 1,
                Ok(Some(Reply::Recorded(_)) | None) => {}
                Err(broken) => came_to.broken = Some(broken.to_string()),
            }
            came_to.broken = came_to.broken.or_else(|| run.objection());
            if came_to.broken.is_some() {
                break;
            }
        }
        came_to.effects = run.space.world.effects().len();
        came_to
    }
}

/// A path under way.
struct Run<'a> {
    begin: &'a Begin,
    space: Space,
    durable: Switch,
    /// Who accepted, in order.
    accepted: Vec<&'static str>,
    /// The epoch under which the attempt was admitted.
    admitted_under: Option<u64>,
    restricted_before_sending: bool,
}

impl<'a> Run<'a> {
    fn of(begin: &'a Begin, delayed: bool) -> Self {
        let durable = Switch::new();
        let log = Delayed { log: MemoryLog::of(begin.records.clone()), durable: durable.clone() };
        let answer = worker::proposes("basic");
        let mut space = Space::on(Box::new(log), begin.view.clone(), answer).unwrap();
        space.set_now(begin.now.clone());
        space.number_ids_from(1_000);
        space.sends_at_once = false;
        space.world = World::default();
        space.world.set(&plan_target(), "plan", "as it was");
        durable.set(!delayed);
        let accepted = Vec::new();
        Self { begin, space, durable, accepted, admitted_under: None, restricted_before_sending: false }
    }

    fn take(&mut self, next: Move) -> Result<Option<Reply>, Broken> {
        let before = self.space.view().attempts.len();
        let reply = match next {
            Move::Dispatch => {
                let payload_id = self.begin.payload_id.clone();
                Some(self.space.submit(Input::Dispatch { payload_id, adjudication_id: None })?)
            }
            Move::BecomesDurable => {
                self.durable.set(true);
                self.space.land()?;
                None
            }
            Move::Send => {
                self.space.send()?;
                None
            }
            Move::Restrict => {
                let scope = AffectedScope::Operation { operation: "plan.change".into() };
                self.restricted_before_sending |= self.space.world.effects().is_empty();
                Some(self.space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(scope))?)
            }
            Move::ConsentOfOne | Move::ConsentOfOneAgain => {
                let [consent, _] = &self.begin.consents;
                Some(self.consent(consent, "one")?)
            }
            Move::ConsentOfOther => {
                let [_, consent] = &self.begin.consents;
                Some(self.consent(consent, "other")?)
            }
            Move::LeaseEnds => {
                self.space.set_now(self.begin.now.plus_ms(LEASE_MS));
                None
            }
            Move::ToldNotSent => self.told_not_sent()?,
        };
        if self.space.view().attempts.len() > before {
            let epoch = self.space.view().ownership(&"o-1".into()).map_or(0, |ownership| ownership.epoch);
            self.admitted_under = Some(epoch);
        }
        Ok(reply)
    }

    fn consent(&mut self, consent: &HandoffConsent, who: &'static str) -> Result<Reply, Broken> {
        let reply = self.space.consent(consent.clone(), who)?;
        if reply.refusal().is_none() {
            self.accepted.push(who);
        }
        Ok(reply)
    }

    fn told_not_sent(&mut self) -> Result<Option<Reply>, Broken> {
        let attempt = self.space.view().attempts.keys().next().cloned();
        let Some(attempt_id) = attempt.filter(|_| self.space.world.effects().is_empty()) else { return Ok(None) };
        // Then the call that was about to be made is not made any more.
        self.space.lose_effects()?;
        let performed = Performed::NotSent { reason: "it did not leave".into() };
        self.space.submit(Input::Performed { attempt_id, performed }).map(Some)
    }

    /// What does not hold.
    fn objection(&self) -> Option<String> {
        let view = self.space.view();
        let world = self.space.world.effects();
        let ownership = view.ownership(&"o-1".into())?;
        if self.accepted.len() > 1 {
            return Some(format!("accepted by {:?}", self.accepted));
        }
        if let Some(winner) = self.accepted.first()
            && (ownership.owner.as_str() != *winner && ownership.standing == OwnershipStanding::Held)
        {
            return Some(format!("{winner} accepted, and {} owns it", ownership.owner));
        }
        if self.admitted_under.is_some_and(|epoch| epoch != 0) {
            return Some("what was drafted for the owner before was admitted for the one after".into());
        }
        if world.len() > 1 {
            return Some(format!("{} effects took place", world.len()));
        }
        let sent_under = self.space.world.effects_and_moments().first();
        for (id, attempt) in &view.attempts {
            if sent_under.is_some_and(|(_, at)| attempt.intent.valid_until <= *at) {
                return Some("the effect left after its time".into());
            }
            let held = view.ledger.held(&Key::new(id.as_str())).is_some();
            if held == attempt.status.is_settled() {
                return Some(format!("held: {held}, and the attempt is {}", attempt.status));
            }
            if attempt.status == AttemptStatus::NoEffectConfirmed && !world.is_empty() {
                return Some("it took place, and it was established that it did not".into());
            }
        }
        if !world.is_empty() && self.space.undurable() > 0 && !self.durable.is_on() {
            return Some("an effect left before its intent was durable".into());
        }
        (!world.is_empty() && self.restricted_before_sending).then(|| "it left under a restriction".into())
    }
}
