//! Seeded runs of the pure core: steps, faults and crashes in an order that a seed decides, with what must always hold
//! checked after each. The same seed makes the same records. Spec: §5 invariants, §7.1, §8.1, §8.3.
//!
//! One sequence over a log in memory; targets that apply and do not answer, answer and do not apply, show what was
//! before, or belong to another account; participants that propose, relate or find nothing; owners that hand obligations
//! over, compete for them and let leases run out; restrictions, answers, time that jumps and a clock in doubt. It does not simulate a disk, a network or a second sequencer.

use crate::founding::{Deployment, grant, identity};
use crate::space::{Answer, Broken, Space};
use crate::worker;
use crate::world::Mode;
use closer_contracts::Digest;
use closer_contracts::audit::{DecisionType, RestrictiveAction};
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::id::{AttemptId, DecisionId, EpisodeId, ObligationId};
use closer_contracts::item::{AffectedScope, IdentityKind, Item};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{Amounts, ProducerRole, Target, TargetPattern};
use closer_contracts::work::{Relation, WorkResult};
use closer_monitor::{ClockStanding, OwnershipStanding};
use closer_protocol::entry::{AttemptStatus, NoticeKind};
use closer_protocol::episode;
use closer_protocol::handoff::Terms;
use closer_protocol::ledger::deployment_budget;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;

/// How many obligations a run keeps, each about a target of its own.
const OBLIGATIONS: usize = 4;
/// How often the whole log is folded anew and compared, in steps.
const REPLAY_EVERY: usize = 50;
/// Who competes for the obligations.
const OWNERS: [&str; 2] = ["worker", "helper"];
/// The calls of the whole run: few enough to run out.
const CALLS: u64 = 400;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Records in the log.
    pub records: usize,
    /// Effects that really took place.
    pub effects: usize,
    /// Attempts that were admitted.
    pub attempts: usize,
    /// Refusals on record.
    pub refusals: u64,
    /// Obligations that were closed.
    pub closed: usize,
    /// The digest of every record, in order.
    pub digest: Digest,
}

/// Something that must always hold did not.
#[derive(Debug, thiserror::Error)]
#[error("seed {seed}, step {step}: {what}\nthe last steps:\n  {}", .history.join("\n  "))]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// After which step.
    pub step: usize,
    /// What did not hold.
    pub what: String,
    /// The last steps, the newest at the end.
    pub history: Vec<String>,
}

/// Runs `steps` steps of a seed.
///
/// # Errors
/// The first [`Violation`]; a runtime that breaks is one too.
pub fn run(seed: u64, steps: usize) -> Result<Summary, Violation> {
    let mut history = Vec::new();
    let mut step = 0;
    let ended = Simulation::new(seed).and_then(|mut simulation| {
        while step < steps {
            step += 1;
            history.push(simulation.take()?);
            simulation.check()?;
            if step % REPLAY_EVERY == 0 || step == steps {
                simulation.compare_with_replay()?;
            }
        }
        Ok(simulation.summary())
    });
    ended.map_err(|what| {
        let newest = history.split_off(history.len().saturating_sub(25));
        Violation { seed, step, what, history: newest }
    })
}

struct Simulation {
    space: Space,
    rng: Xoshiro256PlusPlus,
    admitted: BTreeSet<AttemptId>,
    performed: usize,
}

fn target(number: usize) -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: format!("p-o-{number}").as_str().into() }
}

fn deployment() -> Deployment {
    let mut everywhere = grant("grant-1", "plan.change", &["basic", "small"]);
    for targets in &mut everywhere.targets {
        targets.address = "*".into();
    }
    let helper = identity("helper", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
    let founded = Deployment::default().with(Item::Grant(everywhere)).with(Item::Identity(helper));
    let founded = founded.with_profile(|profile| {
        let released = profile.disclosure_rules.first().cloned();
        profile.disclosure_rules.extend(released.map(|rule| DisclosureRule { recipient: "helper".into(), ..rule }));
        profile.budget = Amounts { calls: Some(CALLS), ..Amounts::default() };
        profile.limits.fan_out_max = 3;
    });
    (1..=OBLIGATIONS).fold(founded, |deployment, number| {
        deployment.with_obligation(&format!("o-{number}"), &format!("entity-{number}"))
    })
}

fn one_of<T: Clone>(rng: &mut Xoshiro256PlusPlus, choices: &[T]) -> Option<T> {
    match choices.is_empty() {
        true => None,
        false => choices.get(rng.random_range(0..choices.len())).cloned(),
    }
}

/// Proposes a granted or an ungranted plan, says how the evidence at hand relates, or finds nothing.
fn participant(seed: u64) -> Answer {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed);
    Box::new(move |work, view| {
        let proposition = work.question.subject_refs.first().map_or("p-o-1", |id| id.as_str());
        let relations = [Relation::Supports, Relation::Contradicts, Relation::Irrelevant];
        let relation = one_of(&mut rng, &relations).unwrap_or(Relation::Irrelevant);
        let assessments =
            view.evidence.keys().take(4).map(|id| worker::relation(view, proposition, id, relation)).collect();
        let mut proposal =
            worker::proposal(proposition, one_of(&mut rng, &["basic", "small", "large"]).unwrap_or("basic"));
        proposal.target.address = proposition.into();
        match rng.random_range(0..10) {
            0 => worker::nothing(work),
            1..=3 => WorkResult { assessments, ..worker::nothing(work) },
            _ => WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) },
        }
    })
}

impl Simulation {
    fn new(seed: u64) -> Result<Self, String> {
        let mut space = Space::found(&deployment(), participant(seed)).map_err(|broken| broken.to_string())?;
        space.sends_at_once = false;
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ok(Self { space, rng, admitted: BTreeSet::new(), performed: 0 })
    }

    fn number(&mut self) -> usize {
        self.rng.random_range(1..=OBLIGATIONS)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        one_of(&mut self.rng, choices)
    }

    /// One step; gives what it was.
    fn take(&mut self) -> Result<String, String> {
        let chosen = self.rng.random_range(0..100);
        let taken = match chosen {
            0..8 => self.event(),
            8..18 => self.open(),
            18..72 => self.advance(),
            72..82 => self.space.send().map(|()| "send".to_owned()),
            82..84 => Ok(self.misbehave()),
            84..89 => self.pass(),
            89..90 => Ok(self.doubt()),
            90..92 => self.space.crash().map(|()| "crash".to_owned()),
            92..93 => self.restrict(),
            93..96 => Ok(self.answer()),
            96..98 => self.hand_over(),
            _ => Ok(self.behave()),
        };
        taken.map_err(|broken| broken.to_string())
    }

    fn event(&mut self) -> Result<String, Broken> {
        let entity = format!("entity-{}", self.number());
        self.space.event(&entity, "price").map(|reply| format!("event {entity}: {}", said(&reply)))
    }

    fn open(&mut self) -> Result<String, Broken> {
        let openable = episode::openable(self.space.view());
        let Some(obligation_id) = self.one_of(&openable) else {
            return Ok("nothing to open".into());
        };
        self.space.open(obligation_id.as_str()).map(|episode_id| format!("open {obligation_id}: {episode_id}"))
    }

    fn advance(&mut self) -> Result<String, Broken> {
        let under_way: Vec<EpisodeId> = self.space.view().under_way.values().cloned().collect();
        let Some(episode_id) = self.one_of(&under_way) else {
            return Ok("nothing under way".into());
        };
        let (next, reply) = self.space.advance(&episode_id)?;
        let stage = format!("{next:?}");
        Ok(format!("advance {episode_id}: {}: {}", stage.split([' ', '{']).next().unwrap_or_default(), said(&reply)))
    }

    fn misbehave(&mut self) -> String {
        let effects = [Mode::AppliedUnanswered, Mode::LostUnanswered, Mode::AnsweredNotApplied, Mode::NotSent];
        let looks = [Mode::Stale, Mode::WrongAccount, Mode::Unavailable];
        match self.rng.random_bool(0.5) {
            true => self.space.world.effect_mode = self.one_of(&effects).unwrap_or(Mode::Normal),
            false => self.space.world.observe_mode = self.one_of(&looks).unwrap_or(Mode::Normal),
        }
        format!("effects {}, looks {}", self.space.world.effect_mode, self.space.world.observe_mode)
    }

    fn behave(&mut self) -> String {
        (self.space.world.effect_mode, self.space.world.observe_mode) = (Mode::Normal, Mode::Normal);
        self.space.set_clock(ClockStanding::Reliable);
        let number = self.number();
        self.space.world.set(&target(number), "plan", "somebody else's");
        format!("everything behaves, and somebody else changed target {number}")
    }

    fn pass(&mut self) -> Result<String, Broken> {
        let duration_ms = self.one_of(&[500, 5_000, 5_000, 60_000, 60_000, 700_000, 86_400_000]).unwrap_or(1);
        self.space.pass(duration_ms).map(|()| format!("{duration_ms} ms pass"))
    }

    fn doubt(&mut self) -> String {
        self.space.set_clock(ClockStanding::Unreliable);
        "the clock is in doubt".into()
    }

    /// Two owners are offered the same obligation under the same epoch, and both accept: one of them gets it.
    fn hand_over(&mut self) -> Result<String, Broken> {
        let obligation = format!("o-{}", self.number());
        let open = self.space.view().state.obligation(&obligation.as_str().into()).is_some_and(|o| o.status.is_open());
        if !open {
            return Ok(format!("{obligation} is settled"));
        }
        let before = self.space.view().ownership(&obligation.as_str().into()).map_or(0, |held| held.epoch);
        let mut owners = OWNERS;
        if self.rng.random_bool(0.5) {
            owners.reverse();
        }
        let lease_ms = self.one_of(&[None, Some(5_000), Some(60_000)]).flatten();
        let contract = self.space.contract(&[], &[], &[])?;
        let mut offered = Vec::new();
        for owner in owners {
            let lease_expiry = lease_ms.map(|lease_ms| self.space.moment().now.plus_ms(lease_ms));
            let terms = Terms { lease_expiry, ..self.space.terms(&obligation, owner, &contract)? };
            offered.push((terms.handoff_id.clone(), owner));
            self.space.offer(terms)?;
        }
        let mut accepted = 0;
        for (handoff_id, owner) in offered {
            let consent = self.space.consent_to(&handoff_id)?;
            accepted += u64::from(self.space.consent(consent, owner)?.refusal().is_none());
        }
        let after = self.space.view().ownership(&obligation.as_str().into()).map_or(0, |held| held.epoch);
        if accepted > 1 || after != before + accepted {
            return Err(Broken::Stuck(format!("{accepted} took {obligation} over, from epoch {before} to {after}")));
        }
        Ok(format!("hand over {obligation}: {accepted} of {}, epoch {after}", OWNERS.len()))
    }

    fn restrict(&mut self) -> Result<String, Broken> {
        let targets = TargetPattern::exactly(&target(self.number()));
        let scope = AffectedScope::Target { operation: Some("plan.change".into()), targets };
        let reply = self.space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(scope))?;
        Ok(format!("restrict: {}", said(&reply)))
    }

    /// An answer to a packet that waits; an answer that the packet does not offer is none.
    fn answer(&mut self) -> String {
        let waiting = self.space.view().packets.iter().filter(|(_, packet)| packet.status == PacketStatus::Open);
        let waiting: Vec<DecisionId> = waiting.map(|(id, _)| id.clone()).collect();
        let types = [DecisionType::ScopedAuthorization, DecisionType::Rejection, DecisionType::InvestigationRequest];
        match (self.one_of(&waiting), self.one_of(&types)) {
            (Some(decision_id), Some(decision_type)) => match self.space.answer(&decision_id, decision_type) {
                Ok(reply) => format!("answer {decision_id} with {decision_type}: {}", said(&reply)),
                Err(_) => format!("{decision_id} offers no {decision_type}"),
            },
            _ => "nothing to answer".into(),
        }
    }

    fn check(&mut self) -> Result<(), String> {
        self.check_admitted()?;
        self.check_performed()?;
        self.check_targets()?;
        self.check_obligations()?;
        self.check_budget()
    }

    fn restricted(&self, attempt_id: &AttemptId) -> bool {
        let view = self.space.view();
        view.attempts.get(attempt_id).is_some_and(|attempt| {
            let covers = |scope| closer_monitor::covers(scope, &attempt.action, &attempt.intent.obligation_id);
            view.state.restrictions_in_force().any(|restriction| covers(&restriction.affected_scope))
        })
    }

    /// Nothing is admitted that a restriction in force covers (§7.2), or under another epoch than the one that somebody
    /// holds (C12).
    fn check_admitted(&mut self) -> Result<(), String> {
        let known: Vec<AttemptId> = self.space.view().attempts.keys().cloned().collect();
        for attempt_id in known {
            if !self.admitted.insert(attempt_id.clone()) {
                continue;
            }
            if self.restricted(&attempt_id) {
                return Err(format!("{attempt_id} was admitted under a restriction"));
            }
            let view = self.space.view();
            let Some(attempt) = view.attempts.get(&attempt_id) else { continue };
            let held = view.ownership(&attempt.intent.obligation_id);
            let is_held = held.as_ref().is_some_and(|held| {
                held.epoch == attempt.action.ownership_epoch && held.standing == OwnershipStanding::Held
            });
            if !is_held {
                return Err(format!("{attempt_id} was admitted while the obligation was held so: {held:?}"));
            }
        }
        Ok(())
    }

    /// Each effect has its intent, leaves under no restriction, once per attempt, and never beside or after another one of
    /// the same content that may have taken place (§8.1).
    fn check_performed(&mut self) -> Result<(), String> {
        let effects = self.space.world.effects();
        let view = self.space.view();
        for (index, action) in effects.iter().enumerate().skip(self.performed) {
            let attempt_id = &action.attempt_id;
            if !view.attempts.contains_key(attempt_id) {
                return Err(format!("{attempt_id} took place without an intent"));
            }
            if self.restricted(attempt_id) {
                return Err(format!("{attempt_id} took place under a restriction"));
            }
            for earlier in effects.iter().take(index) {
                if earlier.attempt_id == *attempt_id {
                    return Err(format!("{attempt_id} took place twice"));
                }
                let status = view.attempts.get(&earlier.attempt_id).map(|attempt| attempt.status);
                if earlier.logical_digest == action.logical_digest && status != Some(AttemptStatus::NoEffectConfirmed) {
                    return Err(format!("{attempt_id} repeats {}, which is {status:?}", earlier.attempt_id));
                }
            }
        }
        self.performed = effects.len();
        Ok(())
    }

    /// At most one attempt on a target is unsettled.
    fn check_targets(&self) -> Result<(), String> {
        let mut busy = BTreeSet::new();
        for attempt in self.space.view().attempts.values().filter(|attempt| !attempt.status.is_settled()) {
            if !busy.insert(attempt.action.target.clone()) {
                return Err(format!("two attempts on {} are unsettled", attempt.action.target.address));
            }
        }
        Ok(())
    }

    /// No open obligation is without a live trigger or a gap that is reviewed in time (invariant 7).
    fn check_obligations(&self) -> Result<(), String> {
        let (view, at) = (self.space.view(), self.space.moment());
        if at.clock != ClockStanding::Reliable {
            return Ok(());
        }
        for number in 1..=OBLIGATIONS {
            let id = ObligationId::new(format!("o-{number}"));
            let open = view.state.obligation(&id).filter(|obligation| obligation.status.is_open());
            if open.is_some_and(|obligation| !closer_state::is_reconsiderable(&view.state, obligation, &at.now)) {
                return Err(format!("{id} can never be reconsidered"));
            }
        }
        Ok(())
    }

    /// What is used and reserved stays within the budget, unless an incident says that it did not (§8.3).
    fn check_budget(&self) -> Result<(), String> {
        let view = self.space.view();
        let overshot = view.notices.values().any(|notice| notice.kind == NoticeKind::BudgetIncident);
        for (dimension, used, reserved, limit) in view.ledger.balance(&deployment_budget()) {
            if limit.is_some_and(|limit| used + reserved > limit) && !overshot {
                return Err(format!("{used} {dimension} used and {reserved} reserved of {limit:?}"));
            }
        }
        Ok(())
    }

    /// The log folds to what is live.
    fn compare_with_replay(&self) -> Result<(), String> {
        let replayed = self.space.replay().map_err(|broken| broken.to_string())?;
        let live = self.space.view();
        let same = replayed.state.reference() == live.state.reference()
            && replayed.ledger == live.ledger
            && replayed.chain == live.chain
            && replayed.attempts == live.attempts;
        match same {
            true => Ok(()),
            false => Err("the log folds to something else than what is live".into()),
        }
    }

    fn summary(&self) -> Summary {
        let view = self.space.view();
        let ids = (1..=OBLIGATIONS).map(|number| ObligationId::new(format!("o-{number}")));
        let digests: Vec<Digest> = self.space.records().iter().map(closer_contracts::record::Record::digest).collect();
        let parts: Vec<&[u8]> = digests.iter().map(|digest| digest.raw().as_slice()).collect();
        Summary {
            records: digests.len(),
            effects: self.performed,
            attempts: self.admitted.len(),
            refusals: view.refusals,
            closed: ids.filter(|id| view.state.obligation(id).is_none_or(|known| !known.status.is_open())).count(),
            digest: closer_contracts::canonical::hash_parts("simulation", &parts),
        }
    }
}

fn said(reply: &closer_protocol::Reply) -> String {
    reply.refusal().map_or_else(|| "recorded".to_owned(), |denial| format!("{} ({})", denial.code, denial.reason))
}
