//! A distiller that proposes what may not be accepted, and an assessor that endorses it. Each kind is made so that nothing but
//! its own fault speaks against it: where the user's word is needed, the user has really given it for exactly these changes.

use super::machine::Simulation;
use super::steps::said;
use super::world::{DEPENDENT, KEPT, LENT, PREMISE, obligation, one_of};
use crate::founding::{grant, obligation as founded, proposition};
use crate::space::{Broken, Space};
use crate::worker;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, ChangeClass, Delta};
use closer_contracts::id::{ArtifactId, DeltaId, EvidenceId, Id, ObligationId};
use closer_contracts::item::{AffectedScope, Claim, Item, ItemKind, Standing};
use closer_contracts::obligation::{Obligation, ObligationStatus, Origin, TriggerGap};
use closer_contracts::reentry::{DependencyVersionChanged, Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::{ArtifactRef, ProducerRole, StateRef, VersionedRef};
use closer_contracts::work::Relation;
use closer_contracts::{Digest, word_enum};
use closer_protocol::input::{Input, Reply};
use rand::rngs::Xoshiro256PlusPlus as Rng;

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
    }
}

/// What is proposed, on which state, by which path, with which authority.
struct Proposed {
    changes: Vec<Change>,
    parent: StateRef,
    path: AdmissionPath,
    authorities: Option<Vec<AuthorityRef>>,
}

fn of(space: &Space, changes: Vec<Change>) -> Proposed {
    Proposed { changes, parent: space.view().state.reference(), path: AdmissionPath::Ordinary, authorities: None }
}

/// Proposes, has it endorsed, and asks for the commit. Where the user's word is needed and no authority is given, the user
/// gives it.
fn propose(space: &mut Space, proposed: Proposed) -> Result<Reply, Broken> {
    let needs = |change: &Change| matches!(change.class(), ChangeClass::Normative | ChangeClass::Restrictive);
    let authorities = match proposed.authorities {
        Some(authorities) => authorities,
        None if proposed.changes.iter().any(needs) => vec![space.instruct(&proposed.changes)?],
        None => Vec::new(),
    };
    let delta = Delta {
        delta_id: DeltaId::new(space.fresh("delta-forged")),
        parent_state: proposed.parent,
        changes: proposed.changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: authorities,
        admission_path: proposed.path,
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

/// A fresh obligation as the user could have declared it, to be spoiled.
fn admitted(space: &mut Space, spoil: impl FnOnce(&mut Obligation, &mut Vec<Reentry>)) -> Vec<Change> {
    let id = space.fresh("forged-obligation");
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
fn revised(space: &Space, item: Item) -> Option<Vec<Change>> {
    let replaces = space.view().state.item(item.kind(), &item.id())?.digest;
    Some(vec![Change::Revise { item: Box::new(item), replaces }])
}

/// A method of the deployment that stands like this.
fn method(space: &Space, id: &str, standing: Standing) -> Option<Item> {
    let mut method = space.view().state.method(&id.into())?.clone();
    method.standing = standing;
    Some(Item::Method(method))
}

fn claim(space: &mut Space, supported: bool, bounded: bool) -> Vec<Change> {
    let newest: Option<EvidenceId> = space.view().evidence.keys().next_back().cloned();
    let relation = newest.map(|id| worker::relation(space.view(), "p-o-1", &id, Relation::Supports));
    vec![Change::Add {
        item: Box::new(Item::Claim(Claim {
            claim_id: space.fresh("claim-forged").as_str().into(),
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
fn given(space: &mut Space, issuer: &str) -> Vec<Change> {
    let mut wider = grant(&space.fresh("grant-wide"), "plan.change", &["everything"]);
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

impl Simulation {
    /// Proposes something distorted. Whatever else is true it must be refused.
    pub(super) fn distort(&mut self, rng: &mut Rng) -> Result<String, String> {
        let distortion = one_of(rng, Distortion::ALL).unwrap_or(Distortion::Ungiven);
        let number = self.number(rng);
        let mut choices = rng.clone();
        let reply = self.attempt(|space| match distorted(space, &mut choices, distortion, number) {
            Err(Broken::Fault(fault)) => Ok(Some(Reply::Refused(vec![fault.into()]))),
            done => done,
        })?;
        self.flush()?;
        match reply.flatten() {
            Some(Reply::Recorded(_)) => Err(format!("a distorted delta was accepted: {distortion}")),
            Some(reply @ Reply::Refused(_)) => Ok(format!("{distortion}: {}", said(&reply))),
            None => Ok(format!("{distortion}: nothing to distort")),
        }
    }
}

fn distorted(
    space: &mut Space,
    rng: &mut Rng,
    distortion: Distortion,
    number: usize,
) -> Result<Option<Reply>, Broken> {
    let proposed = match distortion {
        Distortion::Ungiven | Distortion::ForgedAuthority | Distortion::Rootless | Distortion::Urgent => {
            Some(without_authority(space, distortion))
        }
        Distortion::AdmittedClosed
        | Distortion::NoOrigin
        | Distortion::NoTrigger
        | Distortion::OverTrigger
        | Distortion::UnknownSource
        | Distortion::LateReview => Some(admission(space, distortion)),
        Distortion::Unmet
        | Distortion::ClosedByOthers
        | Distortion::UncoveredSuccessor
        | Distortion::OtherDemand
        | Distortion::ClosedChanged
        | Distortion::ReopenedWaiting => of_obligation(space, rng, distortion, number),
        Distortion::TakenId
        | Distortion::OwnChanges
        | Distortion::Revived
        | Distortion::OldContent
        | Distortion::Unsupported
        | Distortion::Unbounded => of_item(space, rng, distortion),
        Distortion::LostPremise => return lost_premise(space),
        Distortion::OtherHistory
        | Distortion::FutureParent
        | Distortion::Touched
        | Distortion::RestrictedSince
        | Distortion::OldUngiven => on_another_state(space, distortion, number)?,
    };
    proposed.map(|proposed| propose(space, proposed)).transpose()
}

fn without_authority(space: &mut Space, distortion: Distortion) -> Proposed {
    let forged = AuthorityRef {
        kind: AuthorityKind::Declaration,
        reference: ArtifactRef { id: ArtifactId::from("declaration-of-nobody"), digest: Digest::of(b"nobody") },
    };
    let issuer = if distortion == Distortion::Rootless { "worker" } else { "user" };
    let changes = given(space, issuer);
    let mut proposed = of(space, changes);
    if distortion == Distortion::Ungiven {
        proposed.authorities = Some(Vec::new());
    } else if distortion == Distortion::ForgedAuthority {
        proposed.authorities = Some(vec![forged]);
    } else if distortion == Distortion::Urgent {
        proposed.path = AdmissionPath::UrgentRestrictive;
    }
    proposed
}

fn admission(space: &mut Space, distortion: Distortion) -> Proposed {
    let now = space.moment().now;
    let changes = admitted(space, |obligation, reentries| {
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
    of(space, changes)
}

fn of_obligation(space: &mut Space, rng: &mut Rng, distortion: Distortion, number: usize) -> Option<Proposed> {
    let id = obligation(number);
    let state = &space.view().state;
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
    Some(of(space, changes))
}

fn of_item(space: &mut Space, rng: &mut Rng, distortion: Distortion) -> Option<Proposed> {
    let state = &space.view().state;
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
        revised(space, Item::Grant(lent))?
    } else if distortion == Distortion::OldContent {
        let item = method(space, PREMISE, Standing::Current)?;
        vec![Change::Revise { item: Box::new(item), replaces: Digest::of(b"what it never was") }]
    } else if distortion == Distortion::Unbounded && space.view().evidence.is_empty() {
        return None;
    } else {
        claim(space, distortion == Distortion::Unbounded, distortion == Distortion::Unsupported)
    };
    Some(of(space, changes))
}

/// A premise is suspended in order, and what rests on it is to be current all the same. At the end both are again.
fn lost_premise(space: &mut Space) -> Result<Option<Reply>, Broken> {
    let id = Id::from(PREMISE);
    let change = Change::Suspend { kind: ItemKind::Method, id, reason: "It is doubted.".into() };
    let proposed = of(space, vec![change]);
    if propose(space, proposed)?.refusal().is_some() {
        return Ok(None);
    }
    let promoted = method(space, DEPENDENT, Standing::Current).and_then(|item| revised(space, item));
    let Some(changes) = promoted else { return Ok(None) };
    let proposed = of(space, changes);
    let reply = propose(space, proposed)?;
    for again in [PREMISE, DEPENDENT] {
        if let Some(changes) = method(space, again, Standing::Current).and_then(|item| revised(space, item)) {
            let proposed = of(space, changes);
            propose(space, proposed)?;
        }
    }
    Ok(Some(reply))
}

/// Deltas on a state that is not the accepted one, or was the accepted one before something else.
fn on_another_state(space: &mut Space, distortion: Distortion, number: usize) -> Result<Option<Proposed>, Broken> {
    let id = obligation(number);
    if space.view().state.obligation(&id).is_none_or(|known| !known.status.is_open()) {
        return Ok(None);
    }
    let mut proposed = of(space, set_owner(&id, "helper"));
    if distortion == Distortion::OtherHistory {
        proposed.parent.digest = Digest::of(b"another history");
        return Ok(Some(proposed));
    }
    if distortion == Distortion::FutureParent {
        proposed.parent.version += 1;
        return Ok(Some(proposed));
    }
    if distortion == Distortion::RestrictedSince {
        let scope = AffectedScope::Obligation { obligation_id: KEPT.into() };
        if space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(scope))?.refusal().is_some() {
            return Ok(None);
        }
        proposed = of(space, set_owner(&KEPT.into(), "helper"));
    }
    if distortion == Distortion::OldUngiven {
        proposed.changes = given(space, "user");
        proposed.authorities = Some(Vec::new());
    }
    let between = of(space, set_owner(&id, "worker"));
    Ok(match propose(space, between)?.refusal() {
        Some(_) => None,
        None => Some(proposed),
    })
}
