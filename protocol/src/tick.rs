//! Time passes: whatever is due is recorded, each thing once. Spec: §7.2, §7.3, C11, DEC-53, DEC-60.

use crate::commit::{self, Routine};
use crate::entry::{ActivationEntry, Entry, EpisodeEnd, Fired, OwnershipEntry};
use crate::input::{Effect, Reply};
use crate::sequence::Deciding;
use crate::services::{self, Lineage};
use crate::timers::{self, Due};
use crate::view::View;
use crate::{bench, cancel, episode, handoff, people, streams, urgent};
use closer_contracts::branch;
use closer_contracts::delta::Change;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, DeltaId, ObligationId, ReentryId, Text};
use closer_contracts::obligation::TriggerGap;
use closer_contracts::reentry::{Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::ProducerRole;

/// Records everything that is due.
pub(crate) fn tick(deciding: &mut Deciding<'_>) -> Result<Reply, Fault> {
    for due in timers::due(deciding.view, deciding.at) {
        match due {
            Due::TriggerFired(fired) | Due::GapReviewDue(fired) => fire(deciding, fired)?,
            Due::TriggerExpired(reentry_id) => expire(deciding, &reentry_id)?,
            Due::PacketOverdue(decision_id) => {
                let packet = deciding.view.packets.get(&decision_id).map(|packet| packet.packet.body.clone());
                let notice = timers::packet_overdue(deciding.view, &decision_id);
                if let Some((notice, packet)) = notice.zip(packet) {
                    let notice = people::addressed(deciding.view, notice, &packet, &deciding.at.now);
                    urgent::record_notice(deciding, notice)?;
                }
            }
            Due::ReconciliationOverdue(version) => {
                if let Some(notice) = timers::reconciliation_overdue(deciding.view, version) {
                    urgent::record_notice(deciding, notice)?;
                    suspend_issuer(deciding, version)?;
                }
            }
            Due::LeaseExpired(obligation_id) => fence(deciding, &obligation_id)?,
            Due::CeilingReached(attempt_id) => cancel::at_ceiling(deciding, &attempt_id)?,
            Due::EpisodeBoundReached(episode_id) => {
                let known = deciding.view.episodes.get(&episode_id).map(|episode| episode.obligation_id.clone());
                if let Some(obligation_id) = known {
                    let reason = Text::from("the episode's time is over");
                    episode::record_end(deciding, &episode_id, &obligation_id, EpisodeEnd::BoundReached, &reason)?;
                }
            }
        }
    }
    for handoff in handoff::unverified(deciding.view) {
        handoff::verify(deciding, handoff)?;
    }
    bench::withdraw_stale(deciding)?;
    Ok(Reply::Recorded(Vec::new()))
}

/// Records that a trigger fired, and arms it again in the same append where its policy says so (DEC-55).
pub(crate) fn fire(deciding: &mut Deciding<'_>, fired: Fired) -> Result<(), Fault> {
    let key =
        fired.cause.activation_key.map_or_else(String::new, |key| key.to_string().chars().skip(7).take(24).collect());
    let reentry_id = fired.cause.reentry_id.clone();
    let name = reentry_id.as_ref().map_or_else(|| fired.obligation_id.to_string(), ToString::to_string);
    let obligation_id = fired.obligation_id.clone();
    deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    let streams = vec![streams::history(&obligation_id)];
    let id = crate::derived_id(&format!("fired.{key}"), &name);
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    let view = deciding.so_far()?;
    let Some(reentry) = reentry_id.and_then(|id| view.state.reentry(&id).cloned()) else {
        return Ok(());
    };
    let policy = view.state.policy(&reentry.refresh_policy_ref);
    match timers::rearmed(&reentry, policy, &view, deciding.at) {
        Some(again) => replace(deciding, &reentry, Some(again), None, "rearm"),
        None => consume(deciding, &view, &reentry),
    }
}

/// A fired trigger that its policy does not arm again is spent: it is taken off, and where it was the last one the
/// obligation says so in a gap that is reviewed in time (invariant 7).
fn consume(deciding: &mut Deciding<'_>, view: &View, spent: &Reentry) -> Result<(), Fault> {
    let Some(obligation) = view.state.obligation(&spent.obligation_id).filter(|obligation| obligation.status.is_open())
    else {
        return Ok(());
    };
    let last = view.state.reentries_of(&spent.obligation_id).all(|reentry| reentry.reentry_id == spent.reentry_id);
    let gap = (last && obligation.trigger_gap.is_none()).then(|| TriggerGap {
        reason: Text::new(format!("the trigger {} has fired and is spent", spent.reentry_id)),
        responsible_owner: obligation.responsible_owner.clone(),
        review_predicate: TypedPredicate::TimeReached(TimeReached {
            at: deciding.at.now.plus_ms(view.state.limits().review_interval_ms_max),
        }),
    });
    replace(deciding, spent, None, gap, "consume")
}

/// Disables an expired trigger and installs its replacement or an explicit gap, in one commit (§7.3).
fn expire(deciding: &mut Deciding<'_>, reentry_id: &ReentryId) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let Some(reentry) = view.state.reentry(reentry_id).cloned() else {
        return Ok(());
    };
    let owner = view.state.obligation(&reentry.obligation_id).map(|obligation| obligation.responsible_owner.clone());
    let owner = owner.unwrap_or_else(|| services::actor(ProducerRole::Coordinator));
    let policy = view.state.policy(&reentry.expiry_policy_ref);
    let (replacement, gap) = timers::replacement(&reentry, policy, &owner, &deciding.at.now);
    replace(deciding, &reentry, replacement, gap, "expire")
}

/// Says on an open obligation that something may have been missed, for its owner to review in time. One gap stands for all
/// that comes after it, so that whatever is told again changes nothing (§1.1, DEC-22).
pub(crate) fn leave_gap(deciding: &mut Deciding<'_>, obligation_id: &ObligationId, reason: &str) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let Some(obligation) = view.state.obligation(obligation_id).filter(|obligation| obligation.status.is_open()) else {
        return Ok(());
    };
    if branch!("tick.gap_stands", obligation.trigger_gap.is_some()) {
        return Ok(());
    }
    let gap = TriggerGap {
        reason: Text::new(reason),
        responsible_owner: obligation.responsible_owner.clone(),
        review_predicate: TypedPredicate::TimeReached(TimeReached {
            at: deciding.at.now.plus_ms(view.state.limits().review_interval_ms_max),
        }),
    };
    let reentries = view.state.reentries_of(obligation_id).cloned().collect();
    let change = Change::SetTriggers { obligation_id: obligation_id.clone(), reentries, trigger_gap: Some(gap) };
    let seed = format!("{obligation_id}.{}", deciding.at.now.unix_ms());
    set_triggers(deciding, DeltaId::new(crate::derived_id("gap", &seed)), obligation_id, change)
}

/// Gives an obligation a trigger beside those it has; a gap stays for its owner to review in time all the same.
pub(crate) fn install(
    deciding: &mut Deciding<'_>,
    obligation_id: &ObligationId,
    reentry: Reentry,
) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let Some(obligation) = view.state.obligation(obligation_id) else {
        return Ok(());
    };
    let delta_id = DeltaId::new(crate::derived_id("install", reentry.reentry_id.as_str()));
    let mut reentries: Vec<Reentry> = view.state.reentries_of(obligation_id).cloned().collect();
    reentries.push(reentry);
    let trigger_gap = obligation.trigger_gap.clone();
    let change = Change::SetTriggers { obligation_id: obligation_id.clone(), reentries, trigger_gap };
    set_triggers(deciding, delta_id, obligation_id, change)
}

/// Commits the obligation's triggers with one of them replaced.
fn replace(
    deciding: &mut Deciding<'_>,
    old: &Reentry,
    new: Option<Reentry>,
    gap: Option<TriggerGap>,
    verb: &str,
) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let others = view.state.reentries_of(&old.obligation_id).filter(|reentry| reentry.reentry_id != old.reentry_id);
    let mut reentries: Vec<Reentry> = others.cloned().collect();
    reentries.extend(new);
    let kept = view.state.obligation(&old.obligation_id).and_then(|obligation| obligation.trigger_gap.clone());
    let change = Change::SetTriggers { obligation_id: old.obligation_id.clone(), reentries, trigger_gap: gap.or(kept) };
    let seed = format!("{}.{}", old.reentry_id, deciding.at.now.unix_ms());
    set_triggers(deciding, DeltaId::new(crate::derived_id(verb, &seed)), &old.obligation_id, change)
}

fn set_triggers(
    deciding: &mut Deciding<'_>,
    delta_id: DeltaId,
    obligation_id: &ObligationId,
    change: Change,
) -> Result<(), Fault> {
    let routine = Routine {
        delta_id,
        changes: vec![change],
        support_relations: Vec::new(),
        authorities: Vec::new(),
        lineage: Lineage {
            parents: Vec::new(),
            obligation_ids: vec![obligation_id.clone()],
            episode_id: None,
            causation_event_id: None,
            budget_ref: None,
        },
    };
    commit::by_rule(deciding, routine).map(|_| ())
}

/// A missed review has the consequences of an exceeded limit: its issuer makes no further broad restrictions (§7.2).
fn suspend_issuer(deciding: &mut Deciding<'_>, version: u64) -> Result<(), Fault> {
    let receipt = deciding.view.commits.get(&version).and_then(|committed| committed.receipt.clone());
    let issuer =
        receipt.and_then(|receipt| receipt.urgent_details.clone()).map(|details| details.restrictive_authority_ref);
    match issuer {
        Some(issuer) if branch!("tick.review_missed", true) => {
            urgent::suspend_broad(deciding, &ActorId::new(issuer.as_str()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Fences an expired lease: the epoch rises and the coordinator answers for the obligation until somebody accepts (DEC-53).
fn fence(deciding: &mut Deciding<'_>, obligation_id: &ObligationId) -> Result<(), Fault> {
    let Some(ownership) = deciding.view.ownership(obligation_id) else {
        return Ok(());
    };
    if let Some(notice) = timers::lease_expired(deciding.view, obligation_id) {
        urgent::record_notice(deciding, notice)?;
    }
    let entry = OwnershipEntry {
        obligation_id: obligation_id.clone(),
        epoch: ownership.epoch + 1,
        owner: services::actor(ProducerRole::Coordinator),
        lease_expiry: None,
        reason: Text::from("the lease has expired"),
    };
    let id = crate::derived_id(&format!("fence.{}", entry.epoch), obligation_id.as_str());
    deciding.batch.push(&id, Entry::Ownership(entry), vec![streams::owner(obligation_id)], Vec::new())?;
    Ok(())
}
