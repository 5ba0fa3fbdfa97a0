//! A planner that forges actions, and an assessor that is for whatever it is shown. Each kind of forgery is made so that as few
//! guards as possible stand in its way: its target is free, its budget has room, and its assessment is positive.

use super::machine::Simulation;
use super::steps::said;
use super::world::{self, ENDING, FORBIDDEN, one_of, target_of};
use crate::space::Broken;
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase, Stance};
use closer_contracts::envelope::Body;
use closer_contracts::id::{ActionId, AdjudicationId, AttemptId, ObligationId, PayloadId};
use closer_contracts::refs::{Plain, ProducerRole};
use closer_contracts::word_enum;
use closer_protocol::View;
use closer_protocol::input::{Input, Reply};
use closer_protocol::services::Lineage;
use closer_protocol::view::Episode;
use closer_protocol::{action, adjudicate, work};
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
        /// It cites the grant that ends.
        EndingGrant = "ending_grant",
        /// It cites the grant that may have been revoked.
        RevokedGrant = "revoked_grant",
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
        /// It uses an entry that is not in order.
        UnfitEntry = "unfit_entry",
        /// It leaves a constraint in force.
        BeyondConstraint = "beyond_constraint",
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
        /// It offers the assessment of the same action in other words.
        OtherWords = "other_words",
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
        /// It acts for an owner who is fenced.
        Fenced = "fenced",
        /// It does what was done, or what is not known to be undone, once more.
        OnceMore = "once_more",
    }
}

/// How many forgeries a step tries.
const FORGERIES: usize = 3;

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
        | Forgery::UnfitEntry
        | Forgery::BeyondConstraint
        | Forgery::OtherVersion
        | Forgery::FutureState
        | Forgery::OtherEpoch
        | Forgery::TakenKey
        | Forgery::TakenAttempt
        | Forgery::OtherKindOfTarget
        | Forgery::OthersAssessment
        | Forgery::OtherWords
        | Forgery::Unjustified
        | Forgery::OtherPhase
        | Forgery::Unassessed
        | Forgery::NobodysProposal
        | Forgery::Fenced
        | Forgery::OverLease => true,
        // The general checks on every admission say whether these were wrong.
        Forgery::EndingGrant
        | Forgery::RevokedGrant
        | Forgery::UsedGrant
        | Forgery::EndingEntry
        | Forgery::OnceMore => false,
    }
}

impl Simulation {
    /// An honest action of an episode under way, not yet on record, and the result that proposes it. Its target is one that
    /// nothing has been done to, so that nothing but the forgery speaks against it.
    fn honest(&self, rng: &mut Rng) -> Option<Forged> {
        let view = self.leader.view();
        let episodes = view.under_way.values().filter_map(|id| view.episodes.get(id));
        let proposing: Vec<(Arc<Episode>, PayloadId)> =
            episodes.filter_map(|episode| Some((episode.clone(), proposing(view, episode)?))).collect();
        let (roomy, poor): (Vec<_>, Vec<_>) =
            proposing.into_iter().partition(|(episode, _)| self.has_room(&episode.obligation_id));
        let (episode, result) = one_of(rng, if roomy.is_empty() { &poor } else { &roomy })?;
        let mut proposal = view.results.get(&result)?.body.action_proposals.first()?.clone();
        proposal.parameters = [("plan".into(), Plain("basic".into()))].into();
        proposal
            .expected_postcondition
            .expectations
            .iter_mut()
            .for_each(|expected| expected.value = Plain("basic".into()));
        proposal.operation = "plan.change".into();
        proposal.target = target_of(&format!("p-forged-{}", rng.random::<u32>()));
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
        match forgery {
            Forgery::NoGrant => action.authority_ref = "grant-of-nobody".into(),
            Forgery::OtherOperationsGrant => action.authority_ref = "grant-once".into(),
            Forgery::OtherTargetsGrant => {
                action.authority_ref = "grant-narrow".into();
                plan(action, Plain("wide".into()));
            }
            Forgery::EndingGrant => {
                action.authority_ref = "grant-short".into();
                plan(action, Plain("large".into()));
            }
            Forgery::UsedGrant => {
                action.authority_ref = "grant-few".into();
                plan(action, Plain("few".into()));
            }
            Forgery::RevokedGrant => {
                let (lent, passed_on) = ((world::LENT, "lent"), ("grant-passed-on", "passed on"));
                let (grant, word) = one_of(rng, &[lent, passed_on])?;
                action.authority_ref = grant.into();
                plan(action, Plain(word.into()));
            }
            Forgery::BeyondConstraint => plan(action, Plain(FORBIDDEN.into())),
            Forgery::UnfitEntry => {
                let unfit = one_of(rng, &world::UNFIT)?;
                action.operation = unfit.into();
                action.authority_ref = format!("grant-{unfit}").as_str().into();
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
            | Forgery::OtherWords
            | Forgery::Unjustified
            | Forgery::OtherPhase
            | Forgery::Unassessed
            | Forgery::Fenced
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
        let assessed = match forgery == Forgery::OtherWords {
            true => self.in_other_words(forged)?,
            false => forged.action.action_id.clone(),
        };
        let view = self.leader.view().clone();
        let id = view.logical.get(&assessed).and_then(|payload_id| view.actions.get(payload_id));
        let Some(on_record) = id else { return Ok(None) };
        let now = self.leader.moment().now;
        let payload = adjudicate::pre_action(&view, &forged.episode, on_record, &now)?;
        let Body::Adjudication(honest) = payload.body() else { return Ok(None) };
        let mut adjudication = in_favour(Adjudication::clone(honest));
        if forgery == Forgery::Unjustified {
            adjudication.disposition = Disposition::NotJustified;
        }
        adjudication.adjudication_id = self.leader.fresh("adj-forged").as_str().into();
        let id = adjudication.adjudication_id.clone();
        let parents = payload.envelope().parents.clone();
        let payload = self.leader.write_in(ProducerRole::Assessor, lineage(forged, parents), adjudication)?;
        self.leader.submit_payload(payload)?;
        Ok(Some(id))
    }

    /// Puts an action on record that differs from the forged one in what it asks for, and in nothing else.
    fn in_other_words(&mut self, forged: &Forged) -> Result<ActionId, Broken> {
        let mut action = forged.action.clone();
        action.action_id = format!("{}-otherwise", action.action_id).as_str().into();
        action.attempt_id = format!("attempt-{}", action.action_id).as_str().into();
        action.idempotency_key = format!("key-{}", action.action_id).as_str().into();
        plan(&mut action, Plain("small".into()));
        action.logical_digest = action.compute_logical_digest()?;
        let id = action.action_id.clone();
        let payload = self.leader.write_in(ProducerRole::Planner, lineage(forged, forged.parents.clone()), action)?;
        self.leader.submit_payload(payload)?;
        Ok(id)
    }

    /// Several forgeries, one after another, on what honest episodes have proposed.
    pub(super) fn forge(&mut self, rng: &mut Rng) -> Result<String, String> {
        let proposes = |space: &crate::space::Space| {
            let view = space.view();
            let mut episodes = view.under_way.values().filter_map(|id| view.episodes.get(id));
            episodes.any(|episode| proposing(view, episode).is_some())
        };
        self.until(rng, proposes)?;
        let mut told = Vec::new();
        for _ in 0..FORGERIES {
            told.push(self.forge_once(rng)?);
            self.check_left()?;
            self.flush()?;
            self.check()?;
        }
        Ok(told.join("; "))
    }

    fn forge_once(&mut self, rng: &mut Rng) -> Result<String, String> {
        let forgery = one_of(rng, Forgery::ALL).unwrap_or(Forgery::NoGrant);
        let nothing = Ok(format!("{forgery}: nothing to forge"));
        let Some(mut honest) = self.honest(rng) else { return nothing };
        self.leader.world.set(&honest.action.target, "plan", "as it was founded");
        if matches!(forgery, Forgery::OverLease | Forgery::Fenced) {
            match self.let_lease_end(&honest.episode.obligation_id)? {
                Some(epoch) => honest.action.ownership_epoch = epoch,
                None => return nothing,
            }
        }
        if forgery == Forgery::Fenced {
            self.attempt(|space| space.pass(1_000))?;
            let ownership = self.leader.view().ownership(&honest.episode.obligation_id);
            honest.action.ownership_epoch = ownership.map_or(0, |ownership| ownership.epoch);
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
}

/// Another plan, which is then expected too.
fn plan(action: &mut Action, plan: Plain) {
    action.expected_postcondition.expectations.iter_mut().for_each(|expected| expected.value = plan.clone());
    action.parameters.insert("plan".into(), plan);
}

/// The result of an episode that proposes something.
fn proposing(view: &View, episode: &Episode) -> Option<PayloadId> {
    let proposes =
        |id: &&PayloadId| view.results.get(*id).is_some_and(|result| !result.body.action_proposals.is_empty());
    episode.results.iter().find(proposes).cloned()
}

/// The adjudication of an assessor that is for everything.
fn in_favour(honest: Adjudication) -> Adjudication {
    let mut adjudication = honest;
    adjudication.disposition = Disposition::Justified;
    adjudication.dissent.clear();
    for position in &mut adjudication.role_positions {
        position.position = Stance::For;
    }
    adjudication
}

fn lineage(forged: &Forged, parents: Vec<PayloadId>) -> Lineage {
    Lineage { parents, ..work::lineage(&forged.episode, Vec::new()) }
}
