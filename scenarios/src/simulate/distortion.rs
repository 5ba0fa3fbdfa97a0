//! A distiller that proposes what may not be accepted. Each kind is made so that nothing but its own fault speaks against it: it is
//! offered to the state's own admission as if everything before that had been deceived, the endorsement, the lineage and, where
//! the user's word is needed, the user's word among it. What the state refuses, the protocol is offered too.

use super::machine::Simulation;
use super::world::{DEPENDENT, KEPT, LENT, PREMISE, obligation, one_of};
use crate::founding::{grant, obligation as founded, proposition, scope};
use crate::space::{Broken, Space};
use crate::worker;
use closer_contracts::adjudication::Disposition;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, ChangeClass, Delta};
use closer_contracts::id::{ArtifactId, DeltaId, EvidenceId, Id, ObligationId};
use closer_contracts::item::{AffectedScope, Claim, Item, ItemKind, Restriction, Standing};
use closer_contracts::obligation::{AssessmentStatus, Condition, Obligation, ObligationStatus, Origin, TriggerGap};
use closer_contracts::reentry::{DependencyVersionChanged, Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::{ArtifactRef, ProducerRole, StateRef, VersionedRef};
use closer_contracts::work::Relation;
use closer_contracts::{Digest, Fault, Timestamp, word_enum};
use closer_protocol::View;
use closer_protocol::input::{Input, Reply};
use closer_state::{Commit, Derivation, Duty, State};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

/// How many distortions a step tries.
const DISTORTIONS: usize = 5;

word_enum! {
    /// What a dishonest distiller proposes.
    pub enum Distortion {
        /// A grant that nobody gave.
        Ungiven = "ungiven",
        /// A grant on an authority that does not exist.
        ForgedAuthority = "forged_authority",
        /// A grant of somebody who may not give it.
        Rootless = "rootless",
        /// An obligation that is closed from the beginning.
        AdmittedClosed = "admitted_closed",
        /// An obligation that comes from nowhere.
        NoOrigin = "no_origin",
        /// An obligation that nothing ever brings back.
        NoTrigger = "no_trigger",
        /// An obligation whose only trigger is over.
        OverTrigger = "over_trigger",
        /// An obligation that waits for a source which is not registered.
        UnknownSource = "unknown_source",
        /// An obligation whose gap is looked at in a hundred years.
        LateReview = "late_review",
        /// A closure whose conditions are not met.
        Unmet = "unmet",
        /// A closure without the one who may close.
        ClosedByOthers = "closed_by_others",
        /// A closure in favour of an obligation that demands something else.
        UncoveredSuccessor = "uncovered_successor",
        /// Another demand in place of an assessment.
        OtherDemand = "other_demand",
        /// A settled obligation changes its owner.
        ClosedChanged = "closed_changed",
        /// A settled obligation is reopened as waiting.
        ReopenedWaiting = "reopened_waiting",
        /// An item under the id of another.
        TakenId = "taken_id",
        /// A grant, an obligation or a profile is retracted as if it were a conclusion.
        OwnChanges = "own_changes",
        /// A revoked grant is brought back.
        Revived = "revived",
        /// A revision of what the item never was.
        OldContent = "old_content",
        /// A conclusion without evidence.
        Unsupported = "unsupported",
        /// A conclusion that applies everywhere.
        Unbounded = "unbounded",
        /// A conclusion whose premise is gone.
        LostPremise = "lost_premise",
        /// A delta on a history that never was.
        OtherHistory = "other_history",
        /// A delta on a version that never was.
        FutureParent = "future_parent",
        /// A delta on a state after which somebody else has changed the same thing.
        Touched = "touched",
        /// A delta on a state after which what it is about was restricted.
        RestrictedSince = "restricted_since",
        /// A normative delta on an old state, without authority.
        OldUngiven = "old_ungiven",
        /// What is not a restriction, on the path of restrictions.
        Urgent = "urgent",
        /// A restriction whose review is over before it begins.
        Overdue = "overdue",
        /// A restriction that its issuer reviews itself.
        OwnReview = "own_review",
    }
}

/// Who speaks for what is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authority {
    /// The user, for exactly these changes.
    Given,
    /// Nobody, and none is named.
    Unnamed,
    /// Nobody, and somebody is named.
    Forged,
}

/// What is proposed, on which state.
struct Proposed {
    changes: Vec<Change>,
    parent: StateRef,
    path: AdmissionPath,
    authority: Authority,
    duty: Option<Duty>,
}

fn on(state: &State, changes: Vec<Change>) -> Proposed {
    let (path, authority) = (AdmissionPath::Ordinary, Authority::Given);
    Proposed { changes, parent: state.reference(), path, authority, duty: None }
}

fn authority() -> AuthorityRef {
    let reference = ArtifactRef { id: ArtifactId::from("instruction-forged"), digest: Digest::of(b"instruction") };
    AuthorityRef { kind: AuthorityKind::Declaration, reference }
}

/// The delta, and what the state is told of it.
fn told(view: &View, now: &Timestamp, proposed: Proposed, id: String) -> Result<(Delta, Derivation), Fault> {
    let needs = |change: &Change| matches!(change.class(), ChangeClass::Normative | ChangeClass::Restrictive);
    let named = proposed.authority != Authority::Unnamed && proposed.changes.iter().any(needs);
    let required = if named { vec![authority()] } else { Vec::new() };
    let mut derivation = Derivation::at(now.clone());
    derivation.origins = view.declarations.values().map(|(reference, _)| reference.clone()).collect();
    if proposed.authority == Authority::Given {
        derivation.authorities = required.iter().map(|authority| authority.reference.clone()).collect();
    }
    let closing = proposed.changes.iter().filter(|change| change.class() == ChangeClass::Closing);
    let closing = closing.map(|change| ObligationId::new(change.subject().1.as_str()));
    // The assessor is for everything; it cannot speak for the user.
    let assessors = |id: &ObligationId| {
        let known = view.state.obligation(id);
        known.is_some_and(|known| known.closure_authority.as_str() == "closer.assessor")
    };
    derivation.closing = closing.filter(assessors).collect();
    derivation.urgent = proposed.duty;
    let delta = Delta {
        delta_id: DeltaId::new(id),
        parent_state: proposed.parent,
        changes: proposed.changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: required,
        admission_path: proposed.path,
        proposal_digest: Digest::of(b""),
        extensions: None,
    };
    Ok((delta.sealed()?, derivation))
}

/// Why the state refuses; nothing where it does not.
fn refused(state: &State, delta: Delta, derivation: &Derivation) -> Option<String> {
    let denied = closer_state::propose(state, delta, derivation).err()?;
    Some(denied.first().map_or_else(String::new, |denied| format!("{} ({})", denied.code, denied.reason)))
}

/// What the protocol says to it, with an endorsement.
fn submitted(space: &mut Space, delta: Delta) -> Result<Reply, Broken> {
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

/// A fresh obligation as the user could have declared it, to be spoiled.
fn admitted(rng: &mut Rng, spoil: impl FnOnce(&mut Obligation, &mut Vec<Reentry>)) -> Vec<Change> {
    let id = format!("forged-obligation-{}", rng.random::<u32>());
    let (mut obligation, mut reentries) = founded(&id, "entity-forged");
    spoil(&mut obligation, &mut reentries);
    obligation.reentry_refs = reentries.iter().map(|reentry| reentry.reentry_id.clone()).collect();
    vec![Change::AdmitObligation { obligation: Box::new(obligation), reentries }]
}

fn set_status(id: ObligationId, status: ObligationStatus, successor: Option<ObligationId>) -> Vec<Change> {
    let reason = "It is said to be so.".into();
    vec![Change::SetStatus { obligation_id: id, status, successor, reason }]
}

fn set_owner(id: &ObligationId, owner: &str) -> Vec<Change> {
    vec![Change::SetOwner { obligation_id: id.clone(), responsible_owner: owner.into() }]
}

/// What revises an accepted item into this one.
fn revised(state: &State, item: Item) -> Option<Vec<Change>> {
    let replaces = state.item(item.kind(), &item.id())?.digest;
    Some(vec![Change::Revise { item: Box::new(item), replaces }])
}

/// A method of the deployment that stands like this.
fn method(state: &State, id: &str, standing: Standing) -> Option<Item> {
    let mut method = state.method(&id.into())?.clone();
    method.standing = standing;
    Some(Item::Method(method))
}

fn claim(view: &View, rng: &mut Rng, supported: bool, bounded: bool) -> Vec<Change> {
    let newest: Option<EvidenceId> = view.evidence.keys().next_back().cloned();
    let relation = newest.map(|id| worker::relation(view, "p-o-1", &id, Relation::Supports));
    vec![Change::Add {
        item: Box::new(Item::Claim(Claim {
            claim_id: format!("claim-forged-{}", rng.random::<u32>()).as_str().into(),
            proposition: proposition("o-1", "basic"),
            applicability: if bounded { vec!["as observed".into()] } else { Vec::new() },
            relations: relation.into_iter().filter(|_| supported).collect(),
            limitations: Vec::new(),
            exceptions: Vec::new(),
            sufficiency_rule_ref: VersionedRef { id: "rule.sufficiency".into(), version: 1 },
            standing: Standing::Current,
        })),
    }]
}

/// A new grant in these words.
fn given(rng: &mut Rng, issuer: &str) -> Vec<Change> {
    let mut wider = grant(&format!("grant-wide-{}", rng.random::<u32>()), "plan.change", &["everything"]);
    wider.authenticated_issuer.identity = issuer.into();
    vec![Change::Add { item: Box::new(Item::Grant(wider)) }]
}

/// A review so late that it is none.
fn late_gap() -> TriggerGap {
    let at = closer_contracts::Timestamp::from_unix_ms(4_900_000_000_000);
    TriggerGap {
        reason: "Nothing tells of it.".into(),
        responsible_owner: "user".into(),
        review_predicate: TypedPredicate::TimeReached(TimeReached { at }),
    }
}

/// The duty to review a restriction.
fn duty(now: &Timestamp, distortion: Distortion) -> Duty {
    let proposition = "p-o-1".into();
    let rule = VersionedRef { id: "rule.sufficiency".into(), version: 1 };
    Duty {
        issuer: "issuer-1".into(),
        obligation_id: "duty-forged".into(),
        reentry_id: "reentry-forged".into(),
        origin: authority().reference,
        scope: scope(),
        text: "It is to be reviewed.".into(),
        condition: Condition {
            id: "condition-forged".into(),
            proposition,
            evidence_rule_ref: rule,
            assessment_status: AssessmentStatus::Unassessed,
        },
        due_at: if distortion == Distortion::Overdue { now.clone() } else { now.plus_ms(60_000) },
        independent_owner: if distortion == Distortion::OwnReview { "issuer-1" } else { "user" }.into(),
        refresh_policy_ref: "policy.refresh".into(),
        expiry_policy_ref: "policy.expiry".into(),
    }
}

impl Simulation {
    /// Proposes something distorted. Whatever else is true it must be refused.
    pub(super) fn distort(&mut self, rng: &mut Rng) -> Result<String, String> {
        let mut told = Vec::new();
        for _ in 0..DISTORTIONS {
            let distortion = one_of(rng, Distortion::ALL).unwrap_or(Distortion::Ungiven);
            let number = self.number(rng);
            let offered = self.offer_distorted(rng, distortion, number)?;
            told.push(format!("{distortion}: {}", offered.unwrap_or_else(|| "nothing to distort".into())));
        }
        Ok(told.join("; "))
    }

    fn offer_distorted(
        &mut self,
        rng: &mut Rng,
        distortion: Distortion,
        number: usize,
    ) -> Result<Option<String>, String> {
        let (view, now) = (View::clone(self.leader.view()), self.leader.moment().now);
        let accepted = || Err(format!("a distorted delta was accepted: {distortion}"));
        let id = self.leader.fresh("delta-forged");
        let fault = |fault: Fault| fault.to_string();
        if distortion == Distortion::LostPremise {
            return lost_premise(&view, &now, id).map_err(|()| "what lost its premise stands".to_owned());
        }
        if matches!(distortion, Distortion::Touched | Distortion::RestrictedSince | Distortion::OldUngiven) {
            let refused = on_old_state(&view, rng, &now, distortion, number).map_err(fault)?;
            return refused.map_or(Ok(None), |refused| refused.map_or_else(accepted, |why| Ok(Some(why))));
        }
        let Some(proposed) = distorted(&view, rng, &now, distortion, number) else { return Ok(None) };
        let (delta, mut derivation) = told(&view, &now, proposed, id).map_err(fault)?;
        derivation.origins.extend(derivation.urgent.iter().map(|duty| duty.origin.clone()));
        let Some(why) = refused(&view.state, delta.clone(), &derivation) else { return accepted() };
        let reply = self.attempt(|space| match submitted(space, delta) {
            Err(Broken::Fault(fault)) => Ok(Reply::Refused(vec![fault.into()])),
            done => done,
        })?;
        self.flush()?;
        match reply {
            Some(Reply::Recorded(_)) => accepted(),
            Some(Reply::Refused(_)) | None => Ok(Some(why)),
        }
    }
}

fn distorted(view: &View, rng: &mut Rng, now: &Timestamp, distortion: Distortion, number: usize) -> Option<Proposed> {
    match distortion {
        Distortion::Ungiven | Distortion::ForgedAuthority | Distortion::Rootless => {
            let issuer = if distortion == Distortion::Rootless { "worker" } else { "user" };
            let mut proposed = on(&view.state, given(rng, issuer));
            if distortion == Distortion::Ungiven {
                proposed.authority = Authority::Unnamed;
            } else if distortion == Distortion::ForgedAuthority {
                proposed.authority = Authority::Forged;
            }
            Some(proposed)
        }
        Distortion::Urgent | Distortion::Overdue | Distortion::OwnReview => {
            let revoked = Change::RevokeGrant { grant_id: "grant-narrow".into(), reason: "It is doubted.".into() };
            let changes = if distortion == Distortion::Urgent { given(rng, "user") } else { vec![revoked] };
            let (path, duty) = (AdmissionPath::UrgentRestrictive, Some(duty(now, distortion)));
            Some(Proposed { path, duty, ..on(&view.state, changes) })
        }
        Distortion::AdmittedClosed
        | Distortion::NoOrigin
        | Distortion::NoTrigger
        | Distortion::OverTrigger
        | Distortion::UnknownSource
        | Distortion::LateReview => Some(admission(view, rng, now, distortion)),
        Distortion::Unmet
        | Distortion::ClosedByOthers
        | Distortion::UncoveredSuccessor
        | Distortion::OtherDemand
        | Distortion::ClosedChanged
        | Distortion::ReopenedWaiting => of_obligation(view, rng, distortion, number),
        Distortion::TakenId
        | Distortion::OwnChanges
        | Distortion::Revived
        | Distortion::OldContent
        | Distortion::Unsupported
        | Distortion::Unbounded => of_item(view, rng, distortion),
        Distortion::OtherHistory | Distortion::FutureParent => {
            let mut proposed = on(&view.state, set_owner(&KEPT.into(), "helper"));
            if distortion == Distortion::OtherHistory {
                proposed.parent.digest = Digest::of(b"another history");
            } else {
                proposed.parent.version += 1;
            }
            Some(proposed)
        }
        Distortion::LostPremise | Distortion::Touched | Distortion::RestrictedSince | Distortion::OldUngiven => None,
    }
}

fn admission(view: &View, rng: &mut Rng, now: &Timestamp, distortion: Distortion) -> Proposed {
    let changes = admitted(rng, |obligation, reentries| {
        if distortion == Distortion::AdmittedClosed {
            obligation.status = ObligationStatus::Resolved;
        } else if distortion == Distortion::NoOrigin {
            let nowhere = ArtifactRef { id: ArtifactId::from("declaration-of-nobody"), digest: Digest::of(b"nobody") };
            obligation.origin = Origin::Declaration(nowhere);
        } else if distortion == Distortion::OverTrigger {
            reentries.iter_mut().for_each(|reentry| reentry.expires_at = Some(now.clone()));
        } else if distortion == Distortion::UnknownSource {
            for reentry in reentries {
                reentry.predicate = TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
                    dependency_ref: "nothing-accepted".into(),
                    compared_version: Digest::of(b"nothing"),
                });
            }
        } else {
            reentries.clear();
            obligation.trigger_gap = (distortion == Distortion::LateReview).then(late_gap);
        }
    });
    on(&view.state, changes)
}

fn of_obligation(view: &View, rng: &mut Rng, distortion: Distortion, number: usize) -> Option<Proposed> {
    let id = obligation(number);
    let state = &view.state;
    let is_open = |id: &ObligationId| state.obligation(id).is_some_and(|known| known.status.is_open());
    let closed: Vec<ObligationId> = (1..=number + 40)
        .map(obligation)
        .filter(|id| state.obligation(id).is_some_and(|known| !known.status.is_open()))
        .collect();
    let changes = if distortion == Distortion::ClosedByOthers {
        set_status(KEPT.into(), ObligationStatus::Withdrawn, None)
    } else if distortion == Distortion::ClosedChanged {
        set_owner(&one_of(rng, &closed)?, "helper")
    } else if distortion == Distortion::ReopenedWaiting {
        set_status(one_of(rng, &closed)?, ObligationStatus::AwaitingEvent, None)
    } else if !is_open(&id) {
        return None;
    } else if distortion == Distortion::Unmet {
        set_status(id, ObligationStatus::Resolved, None)
    } else if distortion == Distortion::UncoveredSuccessor {
        set_status(id, ObligationStatus::Superseded, Some(KEPT.into()))
    } else {
        let mut conditions = state.obligation(&id)?.resolution_conditions.clone();
        conditions.first_mut()?.proposition = "p-something-easier".into();
        vec![Change::SetConditions { obligation_id: id, conditions }]
    };
    Some(on(state, changes))
}

fn of_item(view: &View, rng: &mut Rng, distortion: Distortion) -> Option<Proposed> {
    let state = &view.state;
    let changes = if distortion == Distortion::TakenId {
        let mut method = state.method(&PREMISE.into())?.clone();
        method.method_id = one_of(rng, &["o-1", "grant-1", "worker", "rule.sufficiency"])?.into();
        vec![Change::Add { item: Box::new(Item::Method(method)) }]
    } else if distortion == Distortion::OwnChanges {
        let restriction = state.restrictions_in_force().next().map(|known| Id::from(&known.restriction_id));
        let choices = [
            restriction.map(|id| (ItemKind::Restriction, id)),
            Some((ItemKind::Grant, "grant-narrow".into())),
            Some((ItemKind::Obligation, KEPT.into())),
            Some((ItemKind::Dependency, "tie-methods".into())),
        ];
        let choices: Vec<_> = choices.into_iter().flatten().collect();
        let (kind, id) = one_of(rng, &choices)?;
        vec![Change::Retract { kind, id, reason: "It is said not to hold.".into() }]
    } else if distortion == Distortion::Revived {
        let mut lent = state.grant(&LENT.into()).filter(|known| known.revocation.revoked_by.is_some())?.clone();
        lent.revocation.revoked_by = None;
        revised(state, Item::Grant(lent))?
    } else if distortion == Distortion::OldContent {
        let item = method(state, PREMISE, Standing::Current)?;
        vec![Change::Revise { item: Box::new(item), replaces: Digest::of(b"what it never was") }]
    } else if distortion == Distortion::Unbounded && view.evidence.is_empty() {
        return None;
    } else {
        claim(view, rng, distortion == Distortion::Unbounded, distortion == Distortion::Unsupported)
    };
    Some(on(state, changes))
}

/// A premise is suspended in order: what rests on it falls with it, and may not be current again before it is. Gives why not.
fn lost_premise(view: &View, now: &Timestamp, id: String) -> Result<Option<String>, ()> {
    let change = Change::Suspend { kind: ItemKind::Method, id: PREMISE.into(), reason: "It is doubted.".into() };
    let Some(after) = accepted(view, now, &view.state, vec![change]) else { return Ok(None) };
    if after.1.method(&DEPENDENT.into()).is_none_or(|method| method.standing == Standing::Current) {
        return Err(());
    }
    let promoted = method(&after.1, DEPENDENT, Standing::Current).and_then(|item| revised(&after.1, item));
    let Some(changes) = promoted else { return Ok(None) };
    let Ok((delta, derivation)) = told(view, now, on(&after.1, changes), id) else { return Ok(None) };
    refused(&after.1, delta, &derivation).map(Some).ok_or(())
}

/// The state after changes that are in order.
fn accepted(view: &View, now: &Timestamp, state: &State, changes: Vec<Change>) -> Option<(Commit, State)> {
    let (delta, derivation) = told(view, now, on(state, changes), "delta-between".into()).ok()?;
    closer_state::propose(state, delta, &derivation).ok()
}

/// A delta on a state after which something else was accepted; gives why it is not reissued on the new one.
fn on_old_state(
    view: &View,
    rng: &mut Rng,
    now: &Timestamp,
    distortion: Distortion,
    number: usize,
) -> Result<Option<Option<String>>, Fault> {
    let state = &view.state;
    let (mut old, kept) = (on(state, set_owner(&KEPT.into(), "helper")), ObligationId::from(KEPT));
    let mut between = set_owner(&kept, "worker");
    if distortion == Distortion::RestrictedSince {
        between = vec![Change::SuspendEligibility {
            restriction: Restriction {
                restriction_id: "restriction-between".into(),
                affected_scope: AffectedScope::Obligation { obligation_id: kept },
                issued_by: "issuer-1".into(),
                reason: "It is doubted.".into(),
                standing: Standing::Current,
            },
        }];
    }
    if distortion == Distortion::OldUngiven {
        (old.changes, old.authority) = (given(rng, "user"), Authority::Unnamed);
        between = set_owner(&obligation(number), "worker");
    }
    let Some((commit, after)) = accepted(view, now, state, between) else { return Ok(None) };
    let (delta, derivation) = told(view, now, old, "delta-old".into())?;
    let reissued = match closer_state::rebase(&delta, &after, [&commit], "delta-reissued".into()) {
        Ok(reissued) => reissued,
        Err(denied) => return Ok(Some(Some(format!("{} ({})", denied.code, denied.reason)))),
    };
    Ok(Some(refused(&after, reissued, &derivation)))
}
