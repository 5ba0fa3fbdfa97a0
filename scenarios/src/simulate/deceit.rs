//! The dishonest: a planner that forges actions, an issuer beyond its appointment, a recipient that pries, an assessor's
//! word for something else. What they try must never be admitted, released or accepted.

use super::ground::Rogue;
use super::machine::Simulation;
use super::steps::said;
use super::world::{ENDING, obligation, one_of, target_of};
use crate::space::{Broken, Space};
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Disposition, Phase};
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::envelope::Body;
use closer_contracts::id::{AdjudicationId, AttemptId, DeltaId, EpisodeId, Key, ObligationId, PayloadId};
use closer_contracts::item::{AffectedScope, Item};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{ActorRef, Plain, ProducerRole};
use closer_contracts::{Digest, Payload, word_enum};
use closer_protocol::input::{Input, Reply};
use closer_protocol::services::Lineage;
use closer_protocol::view::Episode;
use closer_protocol::{action, adjudicate};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;
use std::sync::Arc;

word_enum! {
    /// What a forging planner does to an honest action.
    pub enum Forgery {
        /// It cites a grant that does not exist.
        NoGrant = "no_grant",
        /// It cites the grant of another operation.
        OtherOperationsGrant = "other_operations_grant",
        /// It cites a grant for another target.
        OtherTargetsGrant = "other_targets_grant",
        /// It cites the grant that ends, or was revoked.
        EndingGrant = "ending_grant",
        /// It cites the grant whose calls run out.
        UsedGrant = "used_grant",
        /// It asks for more than the grant's bound.
        BeyondBound = "beyond_bound",
        /// It adds a parameter that the operation does not have.
        ExtraParameter = "extra_parameter",
        /// It leaves the type of a parameter.
        OtherType = "other_type",
        /// It names an operation that is not registered.
        Unregistered = "unregistered",
        /// It uses an entry whose verification may have ended.
        EndingEntry = "ending_entry",
        /// It names a version of the entry that is not in force.
        OtherVersion = "other_version",
        /// It names a state that nobody has accepted.
        FutureState = "future_state",
        /// It claims the next owner's epoch.
        OtherEpoch = "other_epoch",
        /// It uses the key of another action.
        TakenKey = "taken_key",
        /// It uses the id of an attempt on record.
        TakenAttempt = "taken_attempt",
        /// It goes for another kind of target.
        OtherKindOfTarget = "other_kind_of_target",
        /// It offers the assessment of another action.
        OthersAssessment = "others_assessment",
        /// It offers an assessment that came to no.
        Unjustified = "unjustified",
        /// It offers the assessment of an outcome.
        OtherPhase = "other_phase",
        /// It offers none.
        Unassessed = "unassessed",
        /// It names nobody's result, so that nobody capable proposed it.
        NobodysProposal = "nobodys_proposal",
        /// It acts for an owner whose lease is over.
        OverLease = "over_lease",
        /// It does what was done, or what is not known to be undone, once more.
        OnceMore = "once_more",
    }
}

/// A forged action on its way.
struct Forged {
    episode: Arc<Episode>,
    action: Action,
    parents: Vec<PayloadId>,
}

/// What the forger forges must be refused whatever else is true.
const fn is_never_admissible(forgery: Forgery) -> bool {
    match forgery {
        Forgery::NoGrant
        | Forgery::OtherOperationsGrant
        | Forgery::OtherTargetsGrant
        | Forgery::BeyondBound
        | Forgery::ExtraParameter
        | Forgery::OtherType
        | Forgery::Unregistered
        | Forgery::OtherVersion
        | Forgery::FutureState
        | Forgery::OtherEpoch
        | Forgery::TakenKey
        | Forgery::TakenAttempt
        | Forgery::OtherKindOfTarget
        | Forgery::OthersAssessment
        | Forgery::Unjustified
        | Forgery::OtherPhase
        | Forgery::Unassessed
        | Forgery::NobodysProposal
        | Forgery::OverLease => true,
        // The general checks on every admission say whether these were wrong.
        Forgery::EndingGrant | Forgery::UsedGrant | Forgery::EndingEntry | Forgery::OnceMore => false,
    }
}

impl Simulation {
    /// An honest action of an episode under way, not yet on record, and the result that proposes it.
    fn honest(&self, rng: &mut Rng) -> Option<Forged> {
        let view = self.leader.view();
        let episodes = view.under_way.values().filter_map(|id| view.episodes.get(id));
        let proposing: Vec<(Arc<Episode>, PayloadId)> = episodes
            .filter_map(|episode| {
                let proposes = |id: &&PayloadId| {
                    view.results.get(*id).is_some_and(|result| !result.body.action_proposals.is_empty())
                };
                Some((episode.clone(), episode.results.iter().find(proposes)?.clone()))
            })
            .collect();
        let (episode, result) = one_of(rng, &proposing)?;
        let mut proposal = view.results.get(&result)?.body.action_proposals.first()?.clone();
        proposal.parameters = [("plan".into(), Plain("basic".into()))].into();
        proposal.operation = "plan.change".into();
        let now = self.leader.moment().now;
        let draft = action::draft(view, &episode, &result, &proposal, &"grant-1".into(), 1, &now).ok()?;
        let Body::Action(action) = draft.body() else { return None };
        let mut action = Action::clone(action);
        action.action_id = format!("forged-{}-{}", self.followed, rng.random::<u32>()).as_str().into();
        action.attempt_id = format!("attempt-{}", action.action_id).as_str().into();
        action.idempotency_key = format!("key-{}", action.action_id).as_str().into();
        Some(Forged { episode, action, parents: vec![result] })
    }

    /// What the forger makes of it; nothing where it cannot be made now.
    fn forged(&self, rng: &mut Rng, forgery: Forgery, mut forged: Forged) -> Option<Forged> {
        let view = self.leader.view();
        let action = &mut forged.action;
        let plan = |action: &mut Action, plan: Plain| drop(action.parameters.insert("plan".into(), plan));
        match forgery {
            Forgery::NoGrant => action.authority_ref = "grant-of-nobody".into(),
            Forgery::OtherOperationsGrant => action.authority_ref = "grant-once".into(),
            Forgery::OtherTargetsGrant => {
                if action.target == target_of("p-o-1") {
                    return None;
                }
                action.authority_ref = "grant-narrow".into();
                plan(action, Plain("wide".into()));
            }
            Forgery::EndingGrant => {
                action.authority_ref = "grant-short".into();
                plan(action, Plain("large".into()));
            }
            Forgery::UsedGrant => {
                action.authority_ref = "grant-once".into();
                action.operation = super::world::ONCE.into();
            }
            Forgery::BeyondBound => plan(action, Plain("everything".into())),
            Forgery::ExtraParameter => drop(action.parameters.insert("also".into(), Plain("this".into()))),
            Forgery::OtherType => plan(action, Plain(7.into())),
            Forgery::Unregistered => action.operation = "plan.destroy".into(),
            Forgery::EndingEntry => {
                action.operation = ENDING.into();
                action.authority_ref = "grant-ending".into();
            }
            Forgery::OtherVersion => action.registry_version += 6,
            Forgery::FutureState => action.relevant_semantic_version += 1_000,
            Forgery::OtherEpoch => action.ownership_epoch += 1,
            Forgery::TakenKey => {
                let taken: Vec<_> = view.attempts.values().map(|attempt| attempt.action.clone()).collect();
                action.idempotency_key = one_of(rng, &taken)?.idempotency_key.clone();
            }
            Forgery::TakenAttempt => {
                let taken: Vec<AttemptId> = view.attempts.keys().cloned().collect();
                action.attempt_id = one_of(rng, &taken)?;
            }
            Forgery::OtherKindOfTarget => action.target.r#type = "account".into(),
            Forgery::NobodysProposal => forged.parents.clear(),
            Forgery::OnceMore => {
                let on_record: Vec<_> = view.attempts.values().cloned().collect();
                let earlier = one_of(rng, &on_record)?;
                let attempt_id = action.attempt_id.clone();
                *action = Action { attempt_id, ..Action::clone(&earlier.action) };
                forged.episode = view.episodes.get(&earlier.intent.episode_id)?.clone();
                forged.parents = vec![PayloadId::new(earlier.intent.action_ref.id.as_str())];
            }
            Forgery::OthersAssessment
            | Forgery::Unjustified
            | Forgery::OtherPhase
            | Forgery::Unassessed
            | Forgery::OverLease => {}
        }
        action.logical_digest = action.compute_logical_digest().ok()?;
        Some(forged)
    }

    /// The adjudication that is offered for it.
    fn assessed(&mut self, rng: &mut Rng, forgery: Forgery, forged: &Forged) -> Result<Option<AdjudicationId>, Broken> {
        let view = self.leader.view().clone();
        let of_phase = |phase: Phase| -> Vec<AdjudicationId> {
            let adjudications = view.adjudications.iter();
            adjudications.filter(|(_, known)| known.body.phase == phase).map(|(id, _)| id.clone()).collect()
        };
        let borrowed = [(Forgery::OthersAssessment, Phase::PreAction), (Forgery::OtherPhase, Phase::SemanticCommit)];
        if let Some((_, phase)) = borrowed.into_iter().find(|(other, _)| *other == forgery) {
            return Ok(one_of(rng, &of_phase(phase)));
        }
        if forgery == Forgery::Unassessed {
            return Ok(None);
        }
        let id = view.logical.get(&forged.action.action_id).and_then(|payload_id| view.actions.get(payload_id));
        let Some(on_record) = id else { return Ok(None) };
        let now = self.leader.moment().now;
        let payload = adjudicate::pre_action(&view, &forged.episode, on_record, &now)?;
        let Body::Adjudication(honest) = payload.body() else { return Ok(None) };
        let mut adjudication = closer_contracts::adjudication::Adjudication::clone(honest);
        if forgery == Forgery::Unjustified {
            adjudication.disposition = Disposition::NotJustified;
        }
        adjudication.adjudication_id = self.leader.fresh("adj-forged").as_str().into();
        let id = adjudication.adjudication_id.clone();
        let payload = self.leader.write_in(
            ProducerRole::Assessor,
            lineage(forged, payload.envelope().parents.clone()),
            adjudication,
        )?;
        self.leader.submit_payload(payload)?;
        Ok(Some(id))
    }

    pub(super) fn forge(&mut self, rng: &mut Rng) -> Result<String, String> {
        let forgery = one_of(rng, Forgery::ALL).unwrap_or(Forgery::NoGrant);
        let nothing = Ok(format!("{forgery}: nothing to forge"));
        let Some(mut honest) = self.honest(rng) else { return nothing };
        if forgery == Forgery::OverLease {
            match self.let_lease_end(&honest.episode.obligation_id)? {
                Some(epoch) => honest.action.ownership_epoch = epoch,
                None => return nothing,
            }
        }
        let Some(forged) = self.forged(rng, forgery, honest) else { return nothing };
        let known = self.leader.view().attempts.len();
        let offered = self.offer(rng, forgery, &forged);
        let told = match offered {
            Ok(reply) => said(&reply),
            Err(Broken::Fault(fault)) => format!("cannot be written down: {fault}"),
            Err(broken) => match self.attempt(|_| Err::<Reply, _>(broken))? {
                Some(reply) => said(&reply),
                None => "the process died of it".into(),
            },
        };
        let admitted = self.leader.view().attempts.len() > known;
        if admitted && is_never_admissible(forgery) {
            return Err(format!("a forged action was admitted: {forgery}"));
        }
        Ok(format!("{forgery}: {told}"))
    }

    /// Passes an obligation on for a moment, and lets the moment pass; gives the epoch.
    fn let_lease_end(&mut self, obligation_id: &ObligationId) -> Result<Option<u64>, String> {
        self.flush()?;
        if self.leader.view().ownership(obligation_id).is_none() {
            return Ok(None);
        }
        let until = Some(self.leader.moment().now.plus_ms(1_000));
        let epoch = self.hand_over(obligation_id, "helper", until)?;
        // The timer that would fence the owner has not rung yet.
        self.leader.set_now(self.leader.moment().now.plus_ms(2_000));
        Ok(epoch)
    }

    fn offer(&mut self, rng: &mut Rng, forgery: Forgery, forged: &Forged) -> Result<Reply, Broken> {
        let draft = self.leader.write_in(
            ProducerRole::Planner,
            lineage(forged, forged.parents.clone()),
            forged.action.clone(),
        )?;
        let payload_id = draft.id().clone();
        let reply = self.leader.submit_payload(draft)?;
        if reply.refusal().is_some() {
            return Ok(reply);
        }
        let adjudication_id = self.assessed(rng, forgery, forged)?;
        self.leader.submit(Input::Dispatch { payload_id, adjudication_id })
    }

    /// The dishonest besides the planner.
    pub(super) fn deceive(&mut self, rng: &mut Rng) -> Result<String, String> {
        let number = self.number(rng);
        match rng.random_range(0..9) {
            6.. => Ok(self.write_unasked(rng)),
            0 => self.overreach(rng, number),
            1 => self.pry(),
            2 => self.close_unadjudicated(number),
            3 => self.widen(number),
            4 => self.replay_changed(rng),
            _ => self.fork(rng, number),
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

    fn propose(
        space: &mut Space,
        changes: Vec<Change>,
        parent: closer_contracts::refs::StateRef,
    ) -> Result<Reply, Broken> {
        let delta = Delta {
            delta_id: DeltaId::new(space.fresh("delta-forged")),
            parent_state: parent,
            changes,
            support_relations: Vec::new(),
            dependency_updates: Vec::new(),
            required_authority_refs: Vec::new(),
            admission_path: AdmissionPath::Ordinary,
            proposal_digest: Digest::of(b""),
            extensions: None,
        }
        .sealed()?;
        let payload = space.write(ProducerRole::Distiller, &["o-1"], delta.clone())?;
        let reply = space.submit_payload(payload)?;
        if reply.refusal().is_some() {
            return Ok(reply);
        }
        let reply = space.endorse(&delta, Disposition::Endorsed)?;
        if reply.refusal().is_some() {
            return Ok(reply);
        }
        space.submit(Input::Commit { delta_id: delta.delta_id })
    }

    /// An obligation is to be closed though its conditions are not met.
    fn close_unadjudicated(&mut self, number: usize) -> Result<String, String> {
        let status = Change::SetStatus {
            obligation_id: obligation(number),
            status: ObligationStatus::Resolved,
            successor: None,
            reason: "It is said to be done.".into(),
        };
        let open = self.leader.view().state.obligation(&obligation(number)).is_some_and(|known| known.status.is_open());
        match open {
            true => self.must_refuse("a closure whose conditions are not met", |space| {
                let parent = space.view().state.reference();
                Self::propose(space, vec![status], parent)
            }),
            false => Ok("it is closed".into()),
        }
    }

    /// A grant is to come to be without anybody's authority.
    fn widen(&mut self, number: usize) -> Result<String, String> {
        let wider = crate::founding::grant(&format!("grant-wide-{number}"), "plan.change", &["everything"]);
        let change = Change::Add { item: Box::new(Item::Grant(wider)) };
        self.must_refuse("a grant that nobody gave", |space| {
            let parent = space.view().state.reference();
            Self::propose(space, vec![change], parent)
        })
    }

    /// A delta on a parent that was never accepted.
    fn fork(&mut self, rng: &mut Rng, number: usize) -> Result<String, String> {
        let owner = Change::SetStatus {
            obligation_id: obligation(number),
            status: ObligationStatus::Active,
            successor: None,
            reason: "It goes on.".into(),
        };
        let mut parent = self.leader.view().state.reference();
        match rng.random_bool(0.5) {
            true => parent.digest = Digest::of(b"another history"),
            false => parent.version += 1,
        }
        self.must_refuse("a delta on a state that never was", |space| Self::propose(space, vec![owner], parent))
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

fn lineage(forged: &Forged, parents: Vec<PayloadId>) -> Lineage {
    let episode_id: EpisodeId = forged.episode.episode_id.clone();
    Lineage {
        parents,
        obligation_ids: vec![forged.episode.obligation_id.clone()],
        episode_id: Some(episode_id),
        causation_event_id: None,
        budget_ref: None,
    }
}
