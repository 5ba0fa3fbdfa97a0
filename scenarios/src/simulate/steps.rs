//! Ordinary steps: events, episodes, effects, time, restrictions, answers, owners; and messages that do not come as sent.

use super::machine::Simulation;
use super::world::{CALM, LENT, ONCE, obligation, one_of, target_of};
use crate::space::{Broken, Space};
use closer_contracts::audit::{DecisionType, ReconciliationDisposition, ReconciliationReceipt, RestrictiveAction};
use closer_contracts::auth::SigningScope;
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::id::{DecisionId, EpisodeId, ObligationId, PayloadId};
use closer_contracts::item::AffectedScope;
use closer_contracts::refs::{ActorRef, Plain, ProducerRole, TargetPattern};
use closer_contracts::time::Timestamp;
use closer_protocol::episode::{self, Next};
use closer_protocol::handoff::Terms;
use closer_protocol::input::{Input, Reply};
use closer_protocol::ledger::obligation_budget;
use closer_protocol::port::Performed;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// How many obligations are worked on at a time.
const WINDOW: usize = 6;

pub(super) fn said(reply: &Reply) -> String {
    reply.refusal().map_or_else(|| "recorded".to_owned(), |denial| format!("{} ({})", denial.code, denial.reason))
}

/// A stage and what came of it.
pub(super) fn told(next: &Next, reply: &Reply) -> String {
    let stage = format!("{next:?}");
    format!("{}: {}", stage.split([' ', '{']).next().unwrap_or_default(), said(reply))
}

fn or_nothing(said: Option<String>) -> String {
    said.unwrap_or_else(|| "the store had no room, or the process died of it".into())
}

/// An episode whose next stage is to ask for the admission of an action, and the action.
fn about_to_dispatch(space: &Space) -> Option<(EpisodeId, PayloadId)> {
    space.view().under_way.values().find_map(|episode_id| match space.next(episode_id) {
        Ok(Next::Dispatch { payload_id }) => Some((episode_id.clone(), payload_id)),
        Ok(_) | Err(_) => None,
    })
}

/// Offers an obligation to both, and lets both accept; gives those whose acceptance was recorded.
fn compete_for<'a>(
    space: &mut Space,
    owned: &ObligationId,
    rivals: [&'a str; 2],
    until: Option<Timestamp>,
) -> Result<Vec<&'a str>, Broken> {
    let contract = space.contract(&[], &[], &[])?;
    let mut offered = Vec::new();
    for rival in rivals {
        let terms = Terms { lease_expiry: until.clone(), ..space.terms(owned.as_str(), rival, &contract)? };
        let handoff_id = terms.handoff_id.clone();
        if space.offer(terms)?.refusal().is_none() {
            offered.push((rival, space.consent_to(&handoff_id)?));
        }
    }
    let mut accepted = Vec::new();
    for (rival, consent) in offered {
        if space.consent(consent, rival)?.refusal().is_none() {
            accepted.push(rival);
        }
    }
    Ok(accepted)
}

impl Simulation {
    /// Whether an obligation's budget has room for more work.
    pub(super) fn has_room(&self, id: &ObligationId) -> bool {
        let balance = self.leader.view().ledger.balance(&obligation_budget(id));
        balance.into_iter().all(|(_, used, reserved, limit)| limit.is_none_or(|limit| used + reserved + 2 <= limit))
    }

    /// The number of an obligation that is worked on: the first few that are open and may still cost something.
    pub(super) fn number(&self, rng: &mut Rng) -> usize {
        let state = &self.leader.view().state;
        let open = |number: &usize| {
            let id = obligation(*number);
            state.obligation(&id).is_some_and(|obligation| obligation.status.is_open()) && self.has_room(&id)
        };
        let open: Vec<usize> = (1..=self.obligations).filter(open).take(WINDOW).collect();
        one_of(rng, &open).unwrap_or(1)
    }

    /// An episode under way, but for the calm obligation's.
    pub(super) fn under_way(&self, rng: &mut Rng) -> Option<EpisodeId> {
        let under_way: Vec<EpisodeId> = self.leader.view().under_way.values().cloned().collect();
        one_of(rng, &under_way)
    }

    pub(super) fn event(&mut self, rng: &mut Rng) -> Result<String, String> {
        let entity = format!("entity-{}", self.number(rng));
        let reply = self.attempt(|space| space.event(&entity, "price"))?;
        Ok(or_nothing(reply.map(|reply| format!("{entity}: {}", said(&reply)))))
    }

    pub(super) fn open(&mut self, rng: &mut Rng) -> Result<String, String> {
        let openable = episode::openable(self.leader.view());
        let bankrupt_too = rng.random_bool(0.1);
        let openable = openable.into_iter().filter(|id| id.as_str() != CALM && (bankrupt_too || self.has_room(id)));
        let openable: Vec<ObligationId> = openable.collect();
        let Some(obligation_id) = one_of(rng, &openable) else { return self.event(rng) };
        let opened = self.attempt(|space| space.open(obligation_id.as_str()))?;
        Ok(or_nothing(opened.map(|episode_id| format!("{obligation_id}: {episode_id}"))))
    }

    pub(super) fn advance(&mut self, rng: &mut Rng) -> Result<String, String> {
        let Some(episode_id) = self.under_way(rng) else { return self.open(rng) };
        let advanced = self.attempt(|space| space.advance(&episode_id))?;
        Ok(or_nothing(advanced.map(|(next, reply)| format!("{episode_id}: {}", told(&next, &reply)))))
    }

    /// What the next stage of an episode would submit.
    fn drafted(&mut self, rng: &mut Rng) -> Result<Vec<Input>, String> {
        let Some(episode_id) = self.under_way(rng) else { return Ok(Vec::new()) };
        let caught = self.attempt(|space| space.catch(|space| space.advance(&episode_id)))?;
        Ok(caught.map(|(_, inputs)| inputs).unwrap_or_default())
    }

    pub(super) fn twice(&mut self, rng: &mut Rng) -> Result<String, String> {
        let mut replies = Vec::new();
        for input in self.drafted(rng)? {
            for again in [input.clone(), input] {
                let reply = self.attempt(|space| space.submit(again))?;
                replies.push(or_nothing(reply.as_ref().map(said)));
            }
        }
        Ok(replies.join(", then "))
    }

    pub(super) fn lose(&mut self, rng: &mut Rng) -> Result<String, String> {
        Ok(format!("{} messages lost", self.drafted(rng)?.len()))
    }

    pub(super) fn delay(&mut self, rng: &mut Rng) -> Result<String, String> {
        let drafted = self.drafted(rng)?;
        self.mail.extend(drafted);
        Ok(format!("{} messages on their way", self.mail.len()))
    }

    pub(super) fn deliver(&mut self, rng: &mut Rng) -> Result<String, String> {
        if self.mail.is_empty() {
            return Ok("nothing on its way".into());
        }
        let input = self.mail.swap_remove(rng.random_range(0..self.mail.len()));
        let reply = self.attempt(|space| space.submit(input))?;
        Ok(or_nothing(reply.as_ref().map(said)))
    }

    /// Effects leave. What their calls came to is sometimes told twice, the second time as if nothing had left.
    pub(super) fn send(&mut self, rng: &mut Rng) -> Result<String, String> {
        let before = self.leader.world.effects().len();
        if rng.random_bool(0.4) {
            let caught = self.attempt(|space| space.catch(Space::send))?;
            for input in caught.map(|(_, inputs)| inputs).unwrap_or_default() {
                let Input::Performed { attempt_id, .. } = &input else { continue };
                let other = Performed::NotSent { reason: "it did not leave".into() };
                let other = Input::Performed { attempt_id: attempt_id.clone(), performed: other };
                self.attempt(|space| space.submit(input))?;
                self.attempt(|space| space.submit(other))?;
            }
        }
        self.attempt(Space::send)?;
        Ok(format!("{} effects", self.leader.world.effects().len() - before))
    }

    /// A slow call returns: without an answer, or with one that says how long it took.
    pub(super) fn hear(&mut self, rng: &mut Rng) -> Result<String, String> {
        let answers = rng.random_bool(0.5);
        let now = self.leader.moment().now;
        let caught = self.attempt(|space| space.catch(Space::hear))?;
        let heard = caught.and_then(|(_, inputs)| inputs.into_iter().next());
        let Some(Input::Performed { attempt_id, performed }) = heard else { return Ok("nothing is slow".into()) };
        let left = self.leader.world.effects_and_moments().iter().find(|(action, _)| action.attempt_id == attempt_id);
        let sent_at = left.map(|(_, at)| at.clone());
        let performed = match sent_at.filter(|_| answers) {
            Some(sent_at) => {
                let response = Plain("done".into());
                Performed::Responded { sent_at, responded_at: now, response }
            }
            None => performed,
        };
        let reply = self.attempt(|space| space.submit(Input::Performed { attempt_id, performed }))?;
        Ok(format!("a slow call returns: {}", or_nothing(reply.as_ref().map(said))))
    }

    pub(super) fn pass(&mut self, rng: &mut Rng) -> Result<String, String> {
        let durations = [100, 100, 500, 500, 1_000, 1_000, 5_000, 5_000, 31_000, 60_000, 700_000];
        let duration_ms = match rng.random_range(0..30) {
            0 => 86_400_000,
            _ => one_of(rng, &durations).unwrap_or(1),
        };
        // Time is over before the timers have told of it.
        if rng.random_bool(0.2) {
            self.leader.set_now(self.leader.moment().now.plus_ms(duration_ms));
            return Ok(format!("{duration_ms} ms, and no timer rings"));
        }
        self.attempt(|space| space.pass(duration_ms))?;
        Ok(format!("{duration_ms} ms"))
    }

    pub(super) fn restrict(&mut self, rng: &mut Rng) -> Result<String, String> {
        let number = self.number(rng);
        let targets = TargetPattern::exactly(&target_of(&format!("p-o-{number}")));
        let exactly = AffectedScope::Target { operation: Some("plan.change".into()), targets: targets.clone() };
        let scope = match rng.random_range(0..8) {
            0 => AffectedScope::Operation { operation: ONCE.into() },
            1 | 2 => AffectedScope::Obligation { obligation_id: obligation(number) },
            3 => AffectedScope::Target { operation: None, targets },
            4 => AffectedScope::Grant { grant_id: "grant-once".into() },
            _ => exactly,
        };
        let action = match rng.random_range(0..8) {
            0 => RestrictiveAction::RevokeGrant(LENT.into()),
            _ => RestrictiveAction::SuspendEligibility(scope),
        };
        let told = format!("{action:?}");
        let reply = self.attempt(|space| space.restrict("issuer-1", action))?;
        Ok(format!("{told}: {}", or_nothing(reply.as_ref().map(said))))
    }

    /// Between an assessment and the dispatch that rests on it something moves that it has read, or it does not.
    pub(super) fn race(&mut self, rng: &mut Rng) -> Result<String, String> {
        if rng.random_bool(0.3) {
            return self.restrict_before_sending(rng);
        }
        let leased = rng.random_bool(0.3);
        if leased {
            let owned = self.leader.view().under_way.keys().next().cloned();
            let until = Some(self.leader.moment().now.plus_ms(20_000));
            if let Some(owned) = owned.filter(|owned| self.leader.view().ownership(owned).is_some()) {
                self.hand_over(&owned, "helper", until)?;
            }
        }
        self.until(rng, |space| about_to_dispatch(space).is_some())?;
        let Some((episode_id, payload_id)) = about_to_dispatch(&self.leader) else {
            return Ok("nothing to dispatch".into());
        };
        let moved = match rng.random_range(0..4) {
            _ if leased => {
                self.leader.set_now(self.leader.moment().now.plus_ms(20_000));
                "a lease ends".to_owned()
            }
            0 => self.restrict(rng)?,
            1 => self.pass(rng)?,
            2 => {
                // It binds another target, but lies in the scope that every action lies in.
                let targets = TargetPattern::exactly(&target_of("p-o-of-somebody-else"));
                let scope = AffectedScope::Target { operation: None, targets };
                let action = RestrictiveAction::SuspendEligibility(scope);
                or_nothing(self.attempt(|space| space.restrict("issuer-1", action))?.as_ref().map(said))
            }
            _ => self.meddle(rng)?,
        };
        let reply = self.attempt(|space| space.submit(Input::Dispatch { payload_id, adjudication_id: None }))?;
        Ok(format!("{episode_id}: {moved}; then {}", or_nothing(reply.as_ref().map(said))))
    }

    /// An effect is admitted and durable, and before it leaves somebody restricts.
    fn restrict_before_sending(&mut self, rng: &mut Rng) -> Result<String, String> {
        self.until(rng, |space| !space.running().is_empty())?;
        let restricted = self.restrict(rng)?;
        self.attempt(Space::send)?;
        Ok(format!("about to send; {restricted}"))
    }

    /// Two are offered the same responsibility, and both accept. One of them owns it then, and what was drafted before for
    /// the owner before must not be admitted any more.
    pub(super) fn compete(&mut self, rng: &mut Rng) -> Result<String, String> {
        self.until(rng, |space| about_to_dispatch(space).is_some())?;
        self.flush()?;
        let drafted = about_to_dispatch(&self.leader);
        let view = self.leader.view();
        let owned = drafted.as_ref().and_then(|(episode_id, _)| view.episodes.get(episode_id));
        let owned = owned.map_or_else(|| obligation(self.number(rng)), |episode| episode.obligation_id.clone());
        let Some(before) = view.ownership(&owned) else { return Ok("nobody owns it".into()) };
        let mut rivals = ["worker", "helper"];
        if rng.random_bool(0.5) {
            rivals.reverse();
        }
        let leased = rng.random_bool(0.3);
        let accepted = self.attempt(|space| {
            let until = leased.then(|| space.moment().now.plus_ms(20_000));
            match compete_for(space, &owned, rivals, until) {
                Err(Broken::Stuck(_) | Broken::Fault(_)) => Ok(Vec::new()),
                done => done,
            }
        })?;
        self.flush()?;
        let accepted = accepted.unwrap_or_default();
        let after = self.leader.view().ownership(&owned);
        if accepted.len() > 1 {
            return Err(format!("{owned} was accepted by {}", accepted.join(" and by ")));
        }
        if let (Some(winner), Some(after)) = (accepted.first(), &after)
            && (after.owner.as_str() != *winner || after.epoch <= before.epoch)
        {
            return Err(format!("{winner} accepted {owned}, and {} owns it under {}", after.owner, after.epoch));
        }
        let Some((_, payload_id)) = drafted.filter(|_| !accepted.is_empty()) else {
            return Ok(format!("{owned}: {accepted:?} accepted"));
        };
        let known = self.leader.view().attempts.len();
        let reply = self.attempt(|space| space.submit(Input::Dispatch { payload_id, adjudication_id: None }))?;
        if self.leader.view().attempts.len() > known {
            return Err(format!("what the owner before {owned} passed on had drafted was admitted"));
        }
        Ok(format!("{owned}: {accepted:?} accepted; then {}", or_nothing(reply.as_ref().map(said))))
    }

    pub(super) fn reconcile(&mut self, rng: &mut Rng) -> Result<String, String> {
        let outstanding: Vec<_> = self.leader.view().outstanding.values().cloned().collect();
        let Some(urgent_commit_ref) = one_of(rng, &outstanding) else { return Ok("nothing to review".into()) };
        let disposition = one_of(rng, ReconciliationDisposition::ALL).unwrap_or(ReconciliationDisposition::Confirmed);
        let reply = self.attempt(|space| {
            let receipt = ReconciliationReceipt {
                receipt_id: space.fresh("reconciliation").as_str().into(),
                urgent_commit_ref,
                assessment_ref: "assessment-1".into(),
                disposition,
                justification: "It was looked at.".into(),
                evidence_refs: Vec::new(),
                issued_at: space.moment().now,
                authority_ref: "user".into(),
            };
            let user = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
            space.submit_artifact(receipt, user, SigningScope::ReconciliationReceipt)
        })?;
        Ok(format!("{disposition}: {}", or_nothing(reply.as_ref().map(said))))
    }

    /// An answer to a packet that waits; an answer that the packet does not offer is none.
    pub(super) fn answer(&mut self, rng: &mut Rng) -> Result<String, String> {
        let packets = self.leader.view().packets.iter();
        let waiting = packets.filter(|(_, packet)| packet.status == PacketStatus::Open);
        let waiting: Vec<DecisionId> = waiting.map(|(id, _)| id.clone()).collect();
        let types = [DecisionType::ScopedAuthorization, DecisionType::Rejection, DecisionType::InvestigationRequest];
        let (Some(decision_id), Some(decision_type)) = (one_of(rng, &waiting), one_of(rng, &types)) else {
            return Ok("nothing to answer".into());
        };
        let answered = self.attempt(|space| match space.answer(&decision_id, decision_type) {
            Err(Broken::Fault(fault)) => Ok(format!("offers no such answer: {fault}")),
            Err(broken) => Err(broken),
            Ok(reply) => Ok(said(&reply)),
        })?;
        Ok(format!("{decision_id} with {decision_type}: {}", or_nothing(answered)))
    }

    pub(super) fn transfer(&mut self, rng: &mut Rng) -> Result<String, String> {
        let number = self.number(rng);
        self.flush()?;
        let expires = rng.random_bool(0.5).then(|| self.leader.moment().now.plus_ms(5_000));
        let owner = one_of(rng, &["worker", "helper"]).unwrap_or("helper");
        let known = self.leader.view().ownership(&obligation(number)).is_some();
        if !known {
            return Ok("nobody owns it".into());
        }
        let epoch = self.hand_over(&obligation(number), owner, expires)?;
        Ok(epoch.map_or("refused".into(), |epoch| format!("o-{number} to {owner}, epoch {epoch}")))
    }

    /// Hands an obligation over; gives the new epoch, or nothing where that was refused.
    pub(super) fn hand_over(
        &mut self,
        obligation_id: &ObligationId,
        owner: &str,
        until: Option<Timestamp>,
    ) -> Result<Option<u64>, String> {
        let epoch = self.attempt(|space| match space.transfer(obligation_id.as_str(), owner, until) {
            Err(Broken::Stuck(_) | Broken::Fault(_)) => Ok(None),
            Err(broken) => Err(broken),
            Ok(epoch) => Ok(Some(epoch)),
        })?;
        self.flush()?;
        Ok(epoch.flatten())
    }
}
