//! What becomes due as time passes: each thing once, found through indexes, with the moment to sleep until. Spec: §7.3, C11.
//!
//! [`due`] says what is due; the sequence records it, and the record makes it not due again: an activation, a notice under
//! its key, the commit that replaces an expired trigger, the end of an episode. So a restart, or a thousand ticks, repeat
//! nothing. With a clock that cannot be trusted nothing is due. Time never approves, closes or lifts anything.

use crate::cancel;
use crate::entry::{Fired, Notice, NoticeKind};
use crate::input::Moment;
use crate::matching;
use crate::predicate;
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, AttemptId, DecisionId, EpisodeId, Key, ObligationId, PolicyId, ReentryId, Text};
use closer_contracts::item::{Policy, PolicyBody, Standing};
use closer_contracts::obligation::TriggerGap;
use closer_contracts::reentry::{
    All, Any, DependencyVersionChanged, Evaluation, EvidenceAdded, Reentry, TimeReached, TypedPredicate,
};
use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;
use std::collections::BTreeMap;

/// One thing that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// A trigger's time has come: its obligation is eligible.
    TriggerFired(Fired),
    /// A trigger of an open obligation has expired: it is disabled, and its policy's replacement or gap is to be committed.
    TriggerExpired(ReentryId),
    /// A packet's deadline passed without an answer: it is overdue, and its owner is told once.
    PacketOverdue(DecisionId),
    /// An urgent commit was not reconciled by its deadline: its independent owner is told once. By version.
    ReconciliationOverdue(u64),
    /// An owner's lease has ended.
    LeaseExpired(ObligationId),
    /// An episode has reached its bound.
    EpisodeBoundReached(EpisodeId),
    /// An effect under way has taken the time reserved for it: its cancellation is asked for once.
    CeilingReached(AttemptId),
    /// A gap's review has come: its owner's review is eligible.
    GapReviewDue(Fired),
}

/// Everything that is due at this moment, in the order of [`Due`] and then of ids.
#[must_use]
pub fn due(view: &View, at: &Moment) -> Vec<Due> {
    if !branch!("timers.clock_reliable", at.clock == ClockStanding::Reliable) {
        return Vec::new();
    }
    let passed: BTreeMap<&ReentryId, &Reentry> =
        view.state.triggers_due(&at.now).map(|reentry| (&reentry.reentry_id, reentry)).collect();
    let gaps: BTreeMap<_, _> =
        view.state.gaps_due(&at.now).map(|obligation| (&obligation.obligation_id, obligation)).collect();
    let fired = passed.values().filter_map(|reentry| matching::fire(reentry, view, at)).map(Due::TriggerFired);
    let expired = passed.values().filter(|reentry| matching::is_expired(reentry, at));
    let expired = expired.map(|reentry| Due::TriggerExpired(reentry.reentry_id.clone()));
    let reviews = gaps.values().filter_map(|obligation| matching::review(obligation, view, at)).map(Due::GapReviewDue);
    fired
        .chain(expired)
        .chain(
            packets(view)
                .filter(|deadline| deadline.is_due(view, at))
                .map(|deadline| Due::PacketOverdue(deadline.subject)),
        )
        .chain(
            reconciliations(view)
                .filter(|deadline| deadline.is_due(view, at))
                .map(|deadline| Due::ReconciliationOverdue(deadline.subject)),
        )
        .chain(
            leases(view)
                .filter(|deadline| deadline.is_due(view, at))
                .map(|deadline| Due::LeaseExpired(deadline.subject)),
        )
        .chain(
            view.bounds
                .iter()
                .take_while(|(at_last, _)| *at_last <= at.now)
                .map(|(_, episode_id)| Due::EpisodeBoundReached(episode_id.clone())),
        )
        .chain(
            ceilings(view)
                .filter(|deadline| deadline.is_due(view, at))
                .map(|deadline| Due::CeilingReached(deadline.subject)),
        )
        .chain(reviews)
        .collect()
}

/// The first moment after `now` at which something may become due, so that whoever waits sleeps exactly until then.
/// `None`: nothing will, however long it takes.
#[must_use]
pub fn next_deadline(view: &View, now: &Timestamp) -> Option<Timestamp> {
    let moments = view.state.next_moment(now).cloned().into_iter();
    let told = packets(view).map(|deadline| (deadline.at, deadline.key));
    let told = told.chain(reconciliations(view).map(|deadline| (deadline.at, deadline.key)));
    let told = told.chain(leases(view).map(|deadline| (deadline.at, deadline.key)));
    let told = told.chain(ceilings(view).map(|deadline| (deadline.at, deadline.key)));
    let pending = told.filter(|(_, key)| !view.notices.contains_key(key)).map(|(at, _)| at);
    let later = |moment: &Timestamp| branch!("timers.still_to_come", *moment > *now);
    let bound = view.bounds.iter().map(|(at, _)| at).find(|at| **at > *now).cloned();
    moments.chain(pending).chain(bound).filter(later).min()
}

/// A deadline that is told once, under its key.
struct Deadline<T> {
    at: Timestamp,
    key: Key,
    subject: T,
}

impl<T> Deadline<T> {
    fn is_due(&self, view: &View, at: &Moment) -> bool {
        branch!("timers.deadline_passed", self.at <= at.now)
            && !branch!("timers.told_before", view.notices.contains_key(&self.key))
    }
}

fn packets(view: &View) -> impl Iterator<Item = Deadline<DecisionId>> {
    view.packets.iter().filter_map(|(decision_id, packet)| {
        let waits = matches!(packet.status, PacketStatus::Open | PacketStatus::Overdue);
        let deadline = packet.packet.body.deadline.as_ref().filter(|_| branch!("timers.packet_waits", waits))?;
        let owner = deadline_owner(view, &packet.packet.body.deadline_policy_ref);
        Some(Deadline {
            at: deadline.clone(),
            key: packet_key(decision_id, deadline, owner),
            subject: decision_id.clone(),
        })
    })
}

fn reconciliations(view: &View) -> impl Iterator<Item = Deadline<u64>> {
    view.outstanding.keys().filter_map(|version| {
        let details = view.commits.get(version)?.receipt.as_ref()?.urgent_details.clone()?;
        let key = reconciliation_key(*version);
        Some(Deadline { at: details.reconciliation_due_at, key, subject: *version })
    })
}

fn leases(view: &View) -> impl Iterator<Item = Deadline<ObligationId>> {
    view.ownership.iter().filter_map(|(obligation_id, ownership)| {
        let open = view.state.obligation(obligation_id).is_some_and(|obligation| obligation.status.is_open());
        let at = ownership.lease_expiry.clone().filter(|_| open)?;
        Some(Deadline { at, key: lease_key(obligation_id, ownership.epoch), subject: obligation_id.clone() })
    })
}

fn ceilings(view: &View) -> impl Iterator<Item = Deadline<AttemptId>> {
    cancel::ceilings(view).map(|(at, attempt_id)| Deadline { at, key: cancel::key(&attempt_id), subject: attempt_id })
}

/// Whom a packet's deadline policy escalates to; `None` where no such policy was accepted beforehand, which is a gap to be
/// surfaced and never a default (§7.3).
#[must_use]
pub fn deadline_owner<'a>(view: &'a View, policy_id: &PolicyId) -> Option<&'a ActorId> {
    let policy = view.state.policy(policy_id)?;
    if !branch!("timers.policy_accepted", policy.standing == Standing::Current) {
        return None;
    }
    match &policy.body {
        PolicyBody::Deadline { escalate_to } => Some(escalate_to),
        PolicyBody::Refresh { .. } | PolicyBody::Expiry { .. } | PolicyBody::Escalation { .. } => None,
    }
}

fn key(what: &'static str, parts: &[&str]) -> Key {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let digest = closer_contracts::canonical::hash_parts(what, &parts).to_string();
    Key::new(format!("{what}:{}", digest.trim_start_matches("sha256:")))
}

/// The key of a packet's one escalation: its decision, the deadline's value and the owner (DEC-67). A new deadline is a new
/// key; a reminder is not.
#[must_use]
pub fn packet_key(decision_id: &DecisionId, deadline: &Timestamp, owner: Option<&ActorId>) -> Key {
    let instant = deadline.unix_ms().to_string();
    key("packet_overdue", &[decision_id.as_str(), &instant, owner.map_or("", ActorId::as_str)])
}

/// The key of the one escalation of an urgent commit that was not reconciled in time.
#[must_use]
pub fn reconciliation_key(version: u64) -> Key {
    Key::new(format!("reconciliation_overdue:{version}"))
}

/// The key of the one notice that a lease has ended.
#[must_use]
pub fn lease_key(obligation_id: &ObligationId, epoch: u64) -> Key {
    key("lease_expired", &[obligation_id.as_str(), &epoch.to_string()])
}

/// The notice of a packet whose deadline passed: for the owner that its policy names, or the gap in policy for all to see.
#[must_use]
pub fn packet_overdue(view: &View, decision_id: &DecisionId) -> Option<Notice> {
    let packet = &view.packets.get(decision_id)?.packet.body;
    let deadline = packet.deadline.as_ref()?;
    let owner = deadline_owner(view, &packet.deadline_policy_ref);
    let text = match owner {
        Some(owner) => {
            format!("the packet was not answered by {deadline}; {owner} is told once; nothing is permitted by it")
        }
        None => format!(
            "the packet was not answered by {deadline}, and no policy for that was accepted beforehand: what it would permit stays blocked"
        ),
    };
    Some(Notice {
        kind: NoticeKind::Overdue,
        key: packet_key(decision_id, deadline, owner),
        owner: owner.cloned(),
        subjects: std::iter::once(Key::new(decision_id.as_str()))
            .chain(packet.obligation_ids.iter().map(|id| Key::new(id.as_str())))
            .collect(),
        text: Text::new(text),
    })
}

/// The notice of an urgent commit that was not reconciled by its deadline, for its independent owner.
#[must_use]
pub fn reconciliation_overdue(view: &View, version: u64) -> Option<Notice> {
    let receipt = view.commits.get(&version)?.receipt.as_ref()?;
    let details = receipt.urgent_details.as_ref()?;
    let text = format!(
        "the urgent commit was not reconciled by {}; its restriction stays in force until an authorized reassessment",
        details.reconciliation_due_at
    );
    Some(Notice {
        kind: NoticeKind::Escalation,
        key: reconciliation_key(version),
        owner: Some(details.independent_owner.clone()),
        subjects: vec![Key::new(receipt.receipt_id.as_str()), Key::new(details.reconciliation_obligation_id.as_str())],
        text: Text::new(text),
    })
}

/// The notice that an owner's lease has ended. The owner may no longer dispatch; nothing else follows from it (§8.2).
#[must_use]
pub fn lease_expired(view: &View, obligation_id: &ObligationId) -> Option<Notice> {
    let ownership = view.ownership.get(obligation_id)?;
    Some(Notice {
        kind: NoticeKind::Overdue,
        key: lease_key(obligation_id, ownership.epoch),
        owner: Some(ownership.owner.clone()),
        subjects: vec![Key::new(obligation_id.as_str())],
        text: Text::new(format!("the lease of epoch {} has ended", ownership.epoch)),
    })
}

/// What takes an expired trigger's place, as its accepted policy says: a replacement with a name of its own that lives
/// longer, or an explicit gap whose owner reviews it in time. Exactly one of the two is given (DEC-60).
///
/// A policy that is not accepted, or is of another kind, leads to a gap reviewed at once. Nothing here can close an
/// obligation or touch a grant.
#[must_use]
pub fn replacement(
    reentry: &Reentry,
    policy: Option<&Policy>,
    owner: &ActorId,
    now: &Timestamp,
) -> (Option<Reentry>, Option<TriggerGap>) {
    let accepted =
        policy.filter(|policy| policy.standing == Standing::Current && policy.policy_id == reentry.expiry_policy_ref);
    let (replace_for_ms, review_within_ms) = match accepted.map(|policy| &policy.body) {
        Some(PolicyBody::Expiry { replace_for_ms, review_within_ms }) => (*replace_for_ms, *review_within_ms),
        Some(PolicyBody::Refresh { .. } | PolicyBody::Deadline { .. } | PolicyBody::Escalation { .. }) | None => {
            (None, 0)
        }
    };
    match replace_for_ms.filter(|replace_for_ms| branch!("timers.policy_replaces", *replace_for_ms > 0)) {
        Some(replace_for_ms) => {
            let mut replacement = reentry.clone();
            replacement.reentry_id = successor(&reentry.reentry_id, now);
            replacement.expires_at = Some(now.plus_ms(replace_for_ms));
            (Some(replacement), None)
        }
        None => {
            let reason = format!("the trigger {} has expired and its policy names no replacement", reentry.reentry_id);
            let review = TimeReached { at: now.plus_ms(review_within_ms) };
            let gap = TriggerGap {
                reason: Text::new(reason),
                responsible_owner: owner.clone(),
                review_predicate: TypedPredicate::TimeReached(review),
            };
            (None, Some(gap))
        }
    }
}

/// A trigger never changes; what follows on it has an id of its own, made from it and the moment.
fn successor(id: &ReentryId, now: &Timestamp) -> ReentryId {
    let digest = Digest::of(format!("{id}@{}", now.unix_ms()).as_bytes()).to_string();
    let short: String = digest.trim_start_matches("sha256:").chars().take(32).collect();
    ReentryId::new(crate::derived_id("reentry", &short))
}

/// What takes an activated trigger's place, as its accepted policy says: armed again with its cursors moved forward to what
/// it has seen, and its time by the policy's interval; or `None`, where it is consumed (DEC-55). A trigger that would fire
/// again at once, on nothing new, is consumed.
#[must_use]
pub fn rearmed(reentry: &Reentry, policy: Option<&Policy>, view: &View, at: &Moment) -> Option<Reentry> {
    let accepted =
        policy.filter(|policy| policy.standing == Standing::Current && policy.policy_id == reentry.refresh_policy_ref);
    match accepted.map(|policy| &policy.body) {
        Some(PolicyBody::Refresh { rearm: true, after_ms }) => {
            let mut again = reentry.clone();
            again.reentry_id = successor(&reentry.reentry_id, &at.now);
            again.predicate = advanced(&reentry.predicate, *after_ms, view, &at.now);
            let fires_at_once = predicate::evaluate(&again.predicate, view, at) == Evaluation::Satisfied;
            (!branch!("timers.rearmed_fires_at_once", fires_at_once)).then_some(again)
        }
        Some(
            PolicyBody::Refresh { rearm: false, .. }
            | PolicyBody::Expiry { .. }
            | PolicyBody::Deadline { .. }
            | PolicyBody::Escalation { .. },
        )
        | None => None,
    }
}

/// The predicate with everything it has seen behind it.
fn advanced(predicate: &TypedPredicate, after_ms: Option<u64>, view: &View, now: &Timestamp) -> TypedPredicate {
    let children = |items: &[TypedPredicate]| items.iter().map(|item| advanced(item, after_ms, view, now)).collect();
    match (predicate, after_ms) {
        (TypedPredicate::EvidenceAdded(leaf), _) => {
            let seen = predicate::inputs(predicate, view).cursor;
            let after_cursor = leaf.after_cursor.iter().map(|(stream, after)| {
                let newest = seen.get(stream).copied().unwrap_or(*after);
                (stream.clone(), newest.max(*after))
            });
            TypedPredicate::EvidenceAdded(EvidenceAdded { after_cursor: after_cursor.collect(), ..leaf.clone() })
        }
        (TypedPredicate::DependencyVersionChanged(leaf), _) => {
            let newest = view.state.locate(&leaf.dependency_ref).next().map(|accepted| accepted.digest);
            let compared_version = newest.unwrap_or(leaf.compared_version);
            TypedPredicate::DependencyVersionChanged(DependencyVersionChanged { compared_version, ..leaf.clone() })
        }
        (TypedPredicate::TimeReached(leaf), Some(after_ms)) if leaf.at <= *now => {
            TypedPredicate::TimeReached(TimeReached { at: now.plus_ms(after_ms) })
        }
        (TypedPredicate::All(all), _) => TypedPredicate::All(All { items: children(&all.items) }),
        (TypedPredicate::Any(any), _) => TypedPredicate::Any(Any { items: children(&any.items) }),
        (
            TypedPredicate::TimeReached(_)
            | TypedPredicate::UserDecisionReceived(_)
            | TypedPredicate::CapabilityVerified(_)
            | TypedPredicate::HandoffAccepted(_)
            | TypedPredicate::Unsupported(_),
            _,
        ) => predicate.clone(),
    }
}
