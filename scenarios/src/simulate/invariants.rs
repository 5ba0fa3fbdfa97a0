//! What must always hold. Each check goes by the record, by what the world really did and by what the run itself has done,
//! and by none of the functions that decide.

use super::machine::Simulation;
use super::world::{CALM, ONCE, UNFIT, obligation};
use closer_contracts::Digest;
use closer_contracts::adjudication::Phase;
use closer_contracts::delta::AdmissionPath;
use closer_contracts::evidence::ReadbackOutcome;
use closer_contracts::id::{ActorId, AttemptId, EvidenceId, Id, Key, ObligationId, WorkId};
use closer_contracts::item::{Item, ItemKind, Standing};
use closer_contracts::refs::ArtifactRef;
use closer_monitor::OwnershipStanding;
use closer_protocol::View;
use closer_protocol::entry::{AttemptStatus, NoticeKind};
use closer_protocol::ledger::deployment_budget;
use closer_protocol::view::Attempt;
use std::collections::{BTreeMap, BTreeSet};

/// The registered settle time of every operation of a run, in milliseconds.
const SETTLE_MS: u64 = 1_000;

/// What earlier checks have seen.
#[derive(Default)]
pub(super) struct Seen {
    fates: BTreeMap<AttemptId, AttemptStatus>,
    performed: usize,
    grants: BTreeMap<Id, Digest>,
    commits: u64,
    works: BTreeSet<WorkId>,
    open: BTreeSet<ObligationId>,
    owners: BTreeMap<ObligationId, (u64, ActorId)>,
}

impl Seen {
    /// What was decided and never became durable has not been.
    pub(super) fn go_back_to(&mut self, durable: &View, obligations: usize) {
        self.fates = durable.attempts.iter().map(|(id, attempt)| (id.clone(), attempt.status)).collect();
        self.grants = grants_of(durable);
        self.commits = durable.state.reference().version;
        self.works = durable.works.keys().cloned().collect();
        self.open = open_of(durable, obligations);
        let owner =
            |id: &ObligationId| durable.ownership(id).map(|owner| (id.clone(), (owner.epoch, owner.owner.clone())));
        self.owners = self.open.iter().filter_map(owner).collect();
    }
}

fn grants_of(view: &View) -> BTreeMap<Id, Digest> {
    view.state.items(ItemKind::Grant).map(|known| (known.item.id(), known.digest)).collect()
}

fn open_of(view: &View, obligations: usize) -> BTreeSet<ObligationId> {
    let is_open = |id: &ObligationId| view.state.obligation(id).is_some_and(|known| known.status.is_open());
    (1..=obligations).map(obligation).filter(is_open).collect()
}

/// Whether a grant or a method is not gone.
fn stands(item: &Item) -> bool {
    let revoked = item.as_grant().is_some_and(|grant| grant.revocation.revoked_by.is_some());
    let suspended = if let Item::Method(method) = item { method.standing != Standing::Current } else { false };
    !revoked && !suspended
}

fn fail(what: impl Into<String>) -> Result<(), String> {
    Err(what.into())
}

impl Simulation {
    /// After every step.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if let Some(complaint) = self.shared.complaints().into_iter().next() {
            return Err(complaint);
        }
        self.check_admitted()?;
        self.check_fates()?;
        self.check_targets()?;
        self.check_commits()?;
        self.check_works()?;
        self.check_obligations()?;
        self.check_budget()?;
        self.check_cascades()?;
        self.check_owners()?;
        self.books.objection(&self.follower).map_or_else(|| self.check_followed(), fail)
    }

    /// Now and then, and at the end: everything is read, folded and walked anew.
    pub(super) fn check_thoroughly(&mut self) -> Result<(), String> {
        self.flush()?;
        self.shared.verify()?;
        self.check_claims()?;
        let live = self.leader.view();
        let read = &self.follower;
        let same = read.state.reference() == live.state.reference()
            && read.ledger == live.ledger
            && read.chain == live.chain
            && read.attempts == live.attempts
            && read.refused == live.refused
            && read.eligible == live.eligible;
        match same {
            true => Ok(()),
            false => fail("the log folds to something else than what is live"),
        }
    }

    /// The durable records fold to what the leading process holds, where nothing is on its way.
    fn check_followed(&self) -> Result<(), String> {
        let (live, read) = (self.leader.view(), &self.follower);
        let same = read.state.reference() == live.state.reference()
            && read.refusals == live.refusals
            && read.restrictions_decided == live.restrictions_decided
            && read.latest == live.latest;
        match self.leader.undurable() > 0 || same {
            true => Ok(()),
            false => fail("what is durable folds to something else than what is live"),
        }
    }

    fn is_restricted(view: &View, attempt: &Attempt) -> bool {
        let covers = |scope| closer_monitor::covers(scope, &attempt.action, &attempt.intent.obligation_id);
        view.state.restrictions_in_force().any(|restriction| covers(&restriction.affected_scope))
    }

    /// What is admitted: under no restriction, in certain time, under a grant and an entry in force, by the owner under a
    /// running lease, on its own positive assessment, and on nothing that has moved since (§4.2, §7.2, invariant 3).
    fn check_admitted(&mut self) -> Result<(), String> {
        let view = self.leader.view();
        let new = view.attempts.iter().filter(|(id, _)| !self.seen.fates.contains_key(*id));
        for (id, attempt) in new {
            if Self::is_restricted(view, attempt) {
                return fail(format!("{id} was admitted under a restriction"));
            }
            if !self.is_certain_of_time() {
                return fail(format!("{id} was admitted while the clock was in doubt"));
            }
            let objections = [
                Self::objection_to_grant(view, attempt),
                Self::objection_to_entry(view, attempt),
                Self::objection_to_owner(view, attempt),
                self.objection_to_assessment(view, attempt),
                Self::objection_to_repetition(view, attempt),
            ];
            if let Some(objection) = objections.into_iter().flatten().next() {
                return fail(format!("{id} was admitted though {objection}"));
            }
        }
        Ok(())
    }

    fn objection_to_grant(view: &View, attempt: &Attempt) -> Option<String> {
        let (action, at) = (&attempt.action, &attempt.intent.authorized_at);
        let Some(grant) = view.state.grant(&action.authority_ref) else {
            return Some("no such grant is in force".into());
        };
        let bounds = grant.parameter_bounds.iter().filter(|bound| bound.operation == action.operation);
        let within = bounds.into_iter().all(|bound| bound.admits(action.parameters.get(&bound.parameter)));
        let under = view.attempts.values().filter(|other| {
            other.action.authority_ref == action.authority_ref && other.status != AttemptStatus::NoEffectConfirmed
        });
        let calls = under.count() as u64;
        if grant.revocation.revoked_by.is_some() {
            return Some("its grant is revoked".into());
        }
        if grant.expiry <= *at {
            return Some(format!("its grant expired at {}", grant.expiry));
        }
        if !grant.allowed_operations.contains(&action.operation) || !within {
            return Some("its grant does not cover the operation or a parameter".into());
        }
        if !grant.targets.iter().any(|targets| targets.covers(&action.target)) {
            return Some("its grant does not cover the target".into());
        }
        let over = grant.resource_bounds.calls.is_some_and(|most| calls > most);
        over.then(|| format!("its grant is used {calls} times"))
    }

    fn objection_to_entry(view: &View, attempt: &Attempt) -> Option<String> {
        let entry = view.state.operation(&attempt.action.operation).filter(|entry| entry.standing == Standing::Current);
        let Some(entry) = entry else { return Some("its operation is not registered".into()) };
        if UNFIT.contains(&entry.operation.as_str()) {
            return Some(format!("the entry of {} is not in order", entry.operation));
        }
        let ended = entry.verification.expires_at <= attempt.intent.authorized_at;
        ended.then(|| "the verification of its operation's entry has ended".into())
    }

    fn objection_to_owner(view: &View, attempt: &Attempt) -> Option<String> {
        let ownership = view.ownership(&attempt.intent.obligation_id)?;
        if attempt.action.ownership_epoch != ownership.epoch {
            return Some(format!("the obligation is owned under epoch {}", ownership.epoch));
        }
        if ownership.standing != OwnershipStanding::Held {
            return Some("nobody holds the obligation".into());
        }
        let over = ownership.lease_expiry.as_ref().is_some_and(|expiry| *expiry <= attempt.intent.authorized_at);
        over.then(|| "its owner's lease is over".into())
    }

    fn objection_to_assessment(&self, view: &View, attempt: &Attempt) -> Option<String> {
        let cited = |known: &&closer_protocol::view::OnRecord<closer_contracts::adjudication::Adjudication>| {
            known.reference() == attempt.intent.adjudication_ref
        };
        let Some(assessment) = view.adjudications.values().find(cited) else {
            return Some("its assessment is not on record".into());
        };
        let body = &assessment.body;
        let digest = attempt.action.logical_digest;
        if body.phase != Phase::PreAction || !body.disposition.is_positive() {
            return Some("its assessment is of another phase, or came to no".into());
        }
        if body.subject.digest != digest || attempt.intent.logical_digest != digest {
            return Some("what was assessed, authorized and dispatched are not one".into());
        }
        let read_set = view.read_sets.get(&body.adjudication_id);
        let moved = read_set.map_or_else(Vec::new, |read_set| {
            let differs = |(stream, head): &&(closer_contracts::record::StreamId, Option<Digest>)| {
                self.leader.head(stream).map(|head| head.link) != *head
            };
            read_set.heads.iter().filter(differs).map(|(stream, _)| stream.to_string()).collect()
        });
        match (read_set.is_none(), moved.first()) {
            (true, _) => Some("nobody wrote down what its assessment read".into()),
            (false, Some(stream)) => Some(format!("`{stream}` has moved since it was assessed")),
            (false, None) => None,
        }
    }

    /// One logical action under one key; never again once it is done; never again where repetition is not safe and it may
    /// have been sent (§6.4, §8.2).
    fn objection_to_repetition(view: &View, attempt: &Attempt) -> Option<String> {
        let others = view.attempts.values().filter(|other| other.intent.attempt_id != attempt.intent.attempt_id);
        for other in others {
            let same = other.action.logical_digest == attempt.action.logical_digest;
            if other.action.idempotency_key == attempt.action.idempotency_key && !same {
                return Some("its key stands for another action".into());
            }
            if same && other.status == AttemptStatus::EffectConfirmed {
                return Some(format!("{} has done it", other.intent.attempt_id));
            }
            let sent = other.outcome.as_ref().is_none_or(|outcome| outcome.sent_at.is_some());
            if same && sent && attempt.action.operation.as_str() == ONCE {
                return Some(format!("{} was sent and must not be repeated", other.intent.attempt_id));
            }
        }
        None
    }

    /// What left in this step: with a durable intent, within its time, under no restriction, once per attempt, and never
    /// beside or after another one of the same content that may have taken place (§8.1).
    pub(super) fn check_left(&mut self) -> Result<(), String> {
        let effects = self.leader.world.effects_and_moments();
        let (view, durable) = (self.leader.view(), &self.follower);
        for (index, (action, at)) in effects.iter().enumerate().skip(self.seen.performed) {
            let id = &action.attempt_id;
            let Some(intended) = durable.attempts.get(id) else {
                return fail(format!("{id} took place without a durable intent"));
            };
            if *intended.action != *action {
                return fail(format!("{id} took place as something else than was admitted"));
            }
            if intended.intent.valid_until <= *at {
                return fail(format!("{id} took place at {at}, after {}", intended.intent.valid_until));
            }
            if intended.intent.restriction_cursor < view.restrictions_decided {
                return fail(format!("{id} took place though a restriction was decided after its intent"));
            }
            if Self::is_restricted(view, intended) {
                return fail(format!("{id} took place under a restriction"));
            }
            for (earlier, _) in effects.iter().take(index) {
                if earlier.attempt_id == *id {
                    return fail(format!("{id} took place twice"));
                }
                let status = view.attempts.get(&earlier.attempt_id).map(|attempt| attempt.status);
                if earlier.logical_digest == action.logical_digest && status != Some(AttemptStatus::NoEffectConfirmed) {
                    return fail(format!("{id} repeats {}, which is {status:?}", earlier.attempt_id));
                }
            }
        }
        self.seen.performed = effects.len();
        Ok(())
    }

    /// Where attempts stand: what is settled stays, by a readback of its own target, and what is reserved for an attempt is
    /// held for exactly as long as it is not settled (invariant 4, §8.2, §8.3).
    fn check_fates(&mut self) -> Result<(), String> {
        let view = self.leader.view();
        let effects = self.leader.world.effects_and_moments();
        for (id, attempt) in &view.attempts {
            let before = self.seen.fates.get(id).copied();
            if before == Some(attempt.status) {
                continue;
            }
            if before.is_some_and(AttemptStatus::is_settled) {
                return fail(format!("{id} was {before:?} and is {}", attempt.status));
            }
            let told = attempt.outcome.as_ref();
            if attempt.status != AttemptStatus::Intended && told.is_none() {
                return fail(format!("{id} is {} and nothing says why", attempt.status));
            }
            let readback = told.and_then(|outcome| outcome.readback_ref.as_ref());
            match attempt.status {
                AttemptStatus::EffectConfirmed => Self::confirmed(view, attempt, readback)?,
                AttemptStatus::NoEffectConfirmed => {
                    let took_place = effects.iter().find(|(action, _)| action.attempt_id == *id);
                    let newest = effects.iter().rev().find(|(action, _)| action.target == attempt.action.target);
                    let overwritten = newest.is_some_and(|(action, _)| action.attempt_id != *id)
                        || took_place.is_some_and(|(action, at)| {
                            self.meddled.get(&action.target).is_some_and(|meddled| meddled >= at)
                        });
                    if took_place.is_some() && !overwritten {
                        return fail(format!("{id} took place, and it was established that it did not"));
                    }
                    Self::absent(view, attempt, readback)?;
                }
                AttemptStatus::Intended
                | AttemptStatus::Dispatched
                | AttemptStatus::Responded
                | AttemptStatus::OutcomeUnknown => {}
            }
            let held = view.ledger.held(&Key::new(id.as_str())).is_some();
            if held == attempt.status.is_settled() {
                let what = if held { "is still held for" } else { "is not held any more for" };
                return fail(format!("a reservation {what} {id}, which is {}", attempt.status));
            }
        }
        let fates = view.attempts.iter().map(|(id, attempt)| (id.clone(), attempt.status));
        self.seen.fates = fates.collect();
        Ok(())
    }

    /// The evidence of a readback.
    fn read_back<'a>(
        view: &'a View,
        readback: &ArtifactRef,
    ) -> Option<&'a closer_protocol::view::OnRecord<closer_contracts::evidence::Evidence>> {
        view.evidence.values().find(|known| known.reference() == *readback)
    }

    fn confirmed(view: &View, attempt: &Attempt, readback: Option<&ArtifactRef>) -> Result<(), String> {
        let id = &attempt.intent.attempt_id;
        let evidence = readback.and_then(|readback| Self::read_back(view, readback));
        let Some(evidence) = evidence else { return fail(format!("{id} is confirmed and no readback shows it")) };
        let body = &evidence.body;
        let own = body
            .readback
            .as_ref()
            .is_some_and(|readback| readback.attempt_id == *id && readback.outcome == ReadbackOutcome::Matched);
        let shown = attempt
            .action
            .expected_postcondition
            .expectations
            .iter()
            .all(|expected| body.observation.value.0.get(expected.field.as_str()) == Some(&expected.value.0));
        let there = body.target_binding.target == attempt.action.target;
        let after = body.observed_at >= attempt.intent.authorized_at;
        match own && shown && there && after {
            true => Ok(()),
            false => fail(format!("{id} is confirmed by a readback that does not show it")),
        }
    }

    fn absent(view: &View, attempt: &Attempt, readback: Option<&ArtifactRef>) -> Result<(), String> {
        let id = &attempt.intent.attempt_id;
        let sent_at = attempt.outcome.as_ref().and_then(|outcome| outcome.sent_at.clone());
        let Some(readback) = readback else {
            return match sent_at {
                None => Ok(()),
                Some(_) => fail(format!("{id} was sent, and nothing shows that it had no effect")),
            };
        };
        let Some(evidence) = Self::read_back(view, readback) else {
            return fail(format!("the readback of {id} is not on record"));
        };
        let settled = sent_at.is_none_or(|sent_at| evidence.body.observed_at >= sent_at.plus_ms(SETTLE_MS));
        let there = evidence.body.target_binding.target == attempt.action.target;
        let repeatable = attempt.action.operation.as_str() != ONCE;
        match settled && there && repeatable {
            true => Ok(()),
            false => fail(format!("it was established of {id} that it had no effect, by what cannot show that")),
        }
    }

    /// After a restart nothing is intended but what is running (§8.1).
    pub(super) fn check_recovered(&self, running: &BTreeSet<AttemptId>) -> Result<(), String> {
        for (id, attempt) in &self.leader.view().attempts {
            let intended = attempt.status == AttemptStatus::Intended;
            if intended != running.contains(id) && (intended || running.contains(id)) {
                return fail(format!(
                    "after a restart {id} is {} and {}",
                    attempt.status,
                    match running.contains(id) {
                        true => "is running",
                        false => "is not running",
                    }
                ));
            }
        }
        Ok(())
    }

    /// At most one attempt on a target is unsettled.
    fn check_targets(&self) -> Result<(), String> {
        let mut busy = BTreeSet::new();
        for attempt in self.leader.view().attempts.values().filter(|attempt| !attempt.status.is_settled()) {
            if !busy.insert(attempt.action.target.clone()) {
                return fail(format!("two attempts on {} are unsettled", attempt.action.target.address));
            }
        }
        Ok(())
    }

    /// Every commit stands on the one before it; an ordinary one on a positive adjudication; a grant changes by authority or
    /// restriction only; a closure has its adjudicated commit (§7, invariants 2, 6 and 8).
    fn check_commits(&mut self) -> Result<(), String> {
        let view = self.leader.view();
        let newest = view.state.reference().version;
        for (version, committed) in view.commits.range(self.seen.commits + 1..) {
            let commit = &committed.commit;
            let before = view.commits.get(&(version - 1)).map(|before| before.commit.after);
            if before.is_some_and(|before| before != commit.parent || commit.delta.parent_state != commit.parent) {
                return fail(format!("version {version} does not stand on version {}", version - 1));
            }
            let Some(receipt) = &committed.receipt else {
                return fail(format!("version {version} has no receipt"));
            };
            let positive = |cited: &ArtifactRef| {
                view.adjudications.values().any(|known| {
                    known.reference() == *cited
                        && known.body.disposition.is_positive()
                        && known.body.phase == Phase::SemanticCommit
                })
            };
            let endorsed = receipt.adjudication_refs.iter().any(positive);
            if receipt.admission_path == AdmissionPath::Ordinary && !endorsed {
                return fail(format!("version {version} was committed without a positive adjudication"));
            }
        }
        let authorized = view.commits.range(self.seen.commits + 1..).any(|(_, committed)| {
            let delta = &committed.commit.delta;
            delta.admission_path == AdmissionPath::UrgentRestrictive || !delta.required_authority_refs.is_empty()
        });
        let grants = grants_of(view);
        if !self.seen.grants.is_empty() && grants != self.seen.grants && !authorized {
            return fail("a grant changed without authority");
        }
        let open = open_of(view, self.obligations);
        if self.seen.open.iter().any(|id| !open.contains(id)) && newest == self.seen.commits {
            return fail("an obligation was closed without a commit");
        }
        (self.seen.grants, self.seen.open, self.seen.commits) = (grants, open, newest);
        Ok(())
    }

    /// Work is issued on the state that is accepted then (invariant 5).
    fn check_works(&mut self) -> Result<(), String> {
        let view = self.leader.view();
        for (id, work) in view.works.iter().filter(|(id, _)| !self.seen.works.contains(*id)) {
            let basis = work.payload.envelope().semantic_basis;
            if basis.is_some_and(|basis| basis.version > view.state.reference().version) {
                return fail(format!("{id} was issued on a state that is not accepted"));
            }
        }
        self.seen.works = view.works.keys().cloned().collect();
        Ok(())
    }

    /// Every accepted claim names evidence on record and where it applies (invariant 1).
    fn check_claims(&self) -> Result<(), String> {
        let view = self.leader.view();
        for accepted in view.state.items(ItemKind::Claim) {
            let Item::Claim(claim) = &accepted.item else { continue };
            let known = |id: &EvidenceId| view.evidence.contains_key(id);
            if claim.applicability.is_empty() || !claim.relations.iter().any(|relation| known(&relation.evidence_id)) {
                return fail(format!("{} is accepted without evidence or applicability", claim.claim_id));
            }
        }
        Ok(())
    }

    /// No open obligation is without a live trigger or a gap that is reviewed in time (invariant 7).
    fn check_obligations(&self) -> Result<(), String> {
        if !self.is_certain_of_time() {
            return Ok(());
        }
        let (state, now) = (&self.leader.view().state, self.leader.moment().now);
        for id in self.seen.open.iter().cloned().chain([ObligationId::from(CALM)]) {
            let open = state.obligation(&id).filter(|obligation| obligation.status.is_open());
            if open.is_some_and(|obligation| !closer_state::is_reconsiderable(state, obligation, &now)) {
                return fail(format!("{id} can never be reconsidered"));
            }
        }
        Ok(())
    }

    /// What rests on a conclusion or a grant that is gone does not stand (DEC-35, DEC-66).
    fn check_cascades(&self) -> Result<(), String> {
        let state = &self.leader.view().state;
        let stands = |kind, id: &Id| state.item(kind, id).map(|accepted| stands(&accepted.item));
        for accepted in state.items(ItemKind::Dependency) {
            let Item::Dependency(tie) = &accepted.item else { continue };
            for kind in [ItemKind::Method, ItemKind::Grant] {
                let (premise, dependent) = (stands(kind, &tie.premise), stands(kind, &tie.dependent));
                if premise == Some(false) && dependent == Some(true) {
                    return fail(format!("{} stands though {} is gone", tie.dependent, tie.premise));
                }
            }
        }
        Ok(())
    }

    /// Under one epoch an obligation has one owner once it was handed over, and epochs rise (§6.4).
    fn check_owners(&mut self) -> Result<(), String> {
        let view = self.leader.view();
        for id in self.seen.open.iter() {
            let Some(now) = view.ownership(id) else { continue };
            let owner = (now.epoch, now.owner.clone());
            let before = self.seen.owners.insert(id.clone(), owner.clone());
            let fell = before.as_ref().is_some_and(|before| before.0 > owner.0);
            let renamed = |before: &(u64, ActorId)| before.0 == owner.0 && before.1 != owner.1;
            let other = owner.0 > 0 && before.as_ref().is_some_and(renamed);
            if fell || other {
                return fail(format!("{id} is owned by {} under {}, and was by {before:?}", owner.1, owner.0));
            }
        }
        Ok(())
    }

    /// What is used and reserved stays within the budget, unless an incident says that it did not (invariant 9).
    fn check_budget(&self) -> Result<(), String> {
        let view = self.leader.view();
        let overshot = view.notices.values().any(|notice| notice.kind == NoticeKind::BudgetIncident);
        let budgets = self.seen.open.iter().map(closer_protocol::ledger::obligation_budget);
        for budget in budgets.chain([deployment_budget()]) {
            for (dimension, used, reserved, limit) in view.ledger.balance(&budget) {
                if limit.is_some_and(|limit| used + reserved > limit) && !overshot {
                    return fail(format!("{budget}: {used} {dimension} used and {reserved} reserved of {limit:?}"));
                }
            }
        }
        Ok(())
    }
}
