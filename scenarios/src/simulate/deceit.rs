//! The dishonest besides the planner: an issuer beyond its appointment, a recipient that pries, a distiller, an observer, a
//! writer that asks nobody, somebody who bends what is kept. What they try must never be admitted, released or accepted.

use super::ground::Rogue;
use super::machine::Simulation;
use super::steps::said;
use super::world::{obligation, one_of, target_of};
use crate::space::{Broken, Space};
use closer_contracts::Payload;
use closer_contracts::adjudication::Adjudication;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::envelope::Body;
use closer_contracts::id::Key;
use closer_contracts::item::AffectedScope;
use closer_contracts::refs::{ActorRef, ProducerRole, TargetPattern};
use closer_protocol::input::Reply;
use closer_protocol::services::Lineage;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

impl Simulation {
    /// The dishonest besides the planner.
    pub(super) fn deceive(&mut self, rng: &mut Rng) -> Result<String, String> {
        let number = self.number(rng);
        match rng.random_range(0..24) {
            0..4 => Ok(self.write_unasked(rng)),
            4..13 => self.distort(rng),
            13..17 => self.misread(rng),
            17..19 => self.tamper(rng),
            19 => self.overreach(rng, number),
            20 => self.overdue(rng),
            21 => self.pry(),
            22 => self.reuse_id(rng),
            _ => self.replay_changed(rng),
        }
    }

    /// What must be refused, whatever else is true.
    fn must_refuse(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Space) -> Result<Reply, Broken>,
    ) -> Result<String, String> {
        let reply = self.attempt(|space| match work(space) {
            Err(Broken::Fault(fault)) => Ok(Reply::Refused(vec![fault.into()])),
            done => done,
        })?;
        match reply {
            Some(Reply::Recorded(_)) => Err(format!("{what} was accepted")),
            Some(reply @ Reply::Refused(_)) => Ok(format!("{what}: {}", said(&reply))),
            None => Ok(format!("{what}: the store had no room")),
        }
    }

    /// Somebody writes to the store without asking what stands there.
    fn write_unasked(&mut self, rng: &mut Rng) -> String {
        let way = one_of(rng, Rogue::ALL).unwrap_or(Rogue::OldLink);
        let tried = self.shared.rogue(way, rng.random_range(0..100_000));
        format!("a writer that does not ask: {}", tried.unwrap_or("nothing to break"))
    }

    /// An issuer without appointment, and one that speaks in another's name.
    fn overreach(&mut self, rng: &mut Rng, number: usize) -> Result<String, String> {
        let scope = AffectedScope::Obligation { obligation_id: obligation(number) };
        let restriction = RestrictiveAction::SuspendEligibility(scope);
        let (who, role) =
            one_of(rng, &[("worker", ProducerRole::Participant), ("closer.coordinator", ProducerRole::Coordinator)])
                .unwrap_or(("worker", ProducerRole::Participant));
        self.must_refuse("a restriction by somebody who is not appointed", |space| {
            let statement = space.statement(who, restriction);
            let producer = ActorRef { actor_id: who.into(), role };
            space.submit_artifact(statement, producer, closer_contracts::auth::SigningScope::RestrictionStatement)
        })
    }

    /// A recipient asks for what no rule releases to it.
    fn pry(&mut self) -> Result<String, String> {
        let newest = self.leader.view().evidence.keys().next_back().map(ToString::to_string);
        let Some(item) = newest else { return Ok("nothing to pry into".into()) };
        let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
        self.must_refuse("a request for a purpose that no rule names", |space| {
            space.ask(worker, "worker", Some("marketing"), &[&item])
        })
    }

    /// A restriction whose review is due already.
    fn overdue(&mut self, rng: &mut Rng) -> Result<String, String> {
        let address = format!("p-restricted-{}", rng.random::<u32>());
        let targets = TargetPattern::exactly(&target_of(&address));
        let scope = AffectedScope::Target { operation: Some("plan.change".into()), targets };
        let restriction = RestrictiveAction::SuspendEligibility(scope);
        self.must_refuse("a restriction whose review is over", |space| {
            let mut statement = space.statement("issuer-1", restriction);
            statement.reconciliation_due_at = Some(space.moment().now);
            space.submit_statement(statement)
        })
    }

    /// Another adjudication under the id of one on record, in an envelope of its own.
    fn reuse_id(&mut self, rng: &mut Rng) -> Result<String, String> {
        let on_record: Vec<_> = self.leader.view().adjudications.values().map(|known| known.payload.clone()).collect();
        let Some(payload) = one_of(rng, &on_record) else { return Ok("no id to use again".into()) };
        let envelope = payload.envelope();
        let lineage = Lineage {
            parents: envelope.parents.clone(),
            obligation_ids: envelope.obligation_ids.clone(),
            episode_id: None,
            causation_event_id: None,
            budget_ref: envelope.budget_ref.clone(),
        };
        let Body::Adjudication(known) = payload.body() else { return Ok("no id to use again".into()) };
        let mut other = Adjudication::clone(known);
        for position in &mut other.role_positions {
            position.reason = "For another reason.".into();
        }
        self.must_refuse("another adjudication under an id on record", |space| {
            let payload = space.write_in(ProducerRole::Assessor, lineage, other)?;
            space.submit_payload(payload)
        })
    }

    /// A payload on record comes again under its id with other content.
    fn replay_changed(&mut self, rng: &mut Rng) -> Result<String, String> {
        let on_record: Vec<_> = self.leader.view().events.values().map(|event| event.payload.clone()).collect();
        let Some(payload) = one_of(rng, &on_record) else { return Ok("nothing to send again".into()) };
        let mut envelope = payload.envelope().clone();
        if let Body::Event(event) = &envelope.body {
            let mut changed = closer_contracts::event::Event::clone(event);
            changed.entity_ref = "entity-2".into();
            changed.change_kind = "price".into();
            changed.deduplication_key = Key::new(format!("{}-again", changed.deduplication_key));
            envelope.body = Body::from(changed);
        }
        self.must_refuse("other content under an id on record", |space| space.submit_payload(Payload::seal(envelope)?))
    }
}
