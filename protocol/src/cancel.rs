//! Calling back what is under way: asked for at the provider, once, where the registry says that it can be. It proves
//! nothing: the reservation stays held, and what became of the attempt only its readback tells. Spec: §8.3, CP-8.3-07.

use crate::entry::{AttemptStatus, Notice, NoticeKind};
use crate::input::Effect;
use crate::port::Order;
use crate::sequence::Deciding;
use crate::urgent::record_notice;
use crate::view::{Attempt, View};
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::{AttemptId, Key};
use closer_contracts::item::AffectedScope;
use closer_contracts::time::Timestamp;
use std::sync::Arc;

/// The key of the one request to call an attempt back.
#[must_use]
pub fn key(attempt_id: &AttemptId) -> Key {
    Key::new(crate::derived_id("cancel", attempt_id.as_str()))
}

/// The attempts whose call has not told what it came to and that can be called back.
fn cancellable(view: &View) -> impl Iterator<Item = &Attempt> {
    let under_way = view.unsettled.values().filter_map(|attempt_id| view.attempts.get(attempt_id));
    under_way.filter(|attempt| {
        let entry = view.state.operation(&attempt.action.operation);
        attempt.status == AttemptStatus::Intended
            && branch!("cancel.provider_supports_it", entry.is_some_and(|entry| entry.cancellable))
    })
}

/// When each of them has taken the time that was reserved for it: its ceiling.
pub(crate) fn ceilings(view: &View) -> impl Iterator<Item = (Timestamp, AttemptId)> {
    cancellable(view).filter_map(|attempt| {
        // The ceiling is that of the work itself; what is reserved beyond it is for the cancellation to take effect.
        let entry = view.state.operation(&attempt.action.operation)?;
        let time_ms = attempt.intent.reserved.time_ms?.min(entry.worst_case.time_ms?);
        let at = attempt.intent.authorized_at.plus_ms(time_ms);
        Some((at, attempt.intent.attempt_id.clone()))
    })
}

/// Asks for the cancellation of an attempt that has reached its ceiling.
pub(crate) fn at_ceiling(deciding: &mut Deciding<'_>, attempt_id: &AttemptId) -> Result<(), Fault> {
    let attempt = cancellable(deciding.view).find(|attempt| attempt.intent.attempt_id == *attempt_id).cloned();
    match attempt {
        Some(attempt) => request(deciding, &attempt, "it has taken the time that was reserved for it"),
        None => Ok(()),
    }
}

/// Asks for the cancellation of what a restriction covers and is under way.
pub(crate) fn covered(deciding: &mut Deciding<'_>, scope: &AffectedScope) -> Result<(), Fault> {
    let covers = |attempt: &&Attempt| closer_monitor::covers(scope, &attempt.action, &attempt.intent.obligation_id);
    let attempts: Vec<Attempt> = cancellable(deciding.view).filter(covers).cloned().collect();
    attempts.iter().try_for_each(|attempt| request(deciding, attempt, "a restriction covers it"))
}

fn request(deciding: &mut Deciding<'_>, attempt: &Attempt, why: &str) -> Result<(), Fault> {
    let (view, attempt_id) = (deciding.view, &attempt.intent.attempt_id);
    let key = key(attempt_id);
    let Some(entry) = view.state.operation(&attempt.action.operation).filter(|_| !view.notices.contains_key(&key))
    else {
        return Ok(());
    };
    let owner = view.state.obligation(&attempt.intent.obligation_id);
    let text = format!("the cancellation of {attempt_id} is asked for: {why}; what became of it is read back");
    let notice = Notice {
        kind: NoticeKind::ResidualInterval,
        key,
        owner: owner.map(|obligation| obligation.responsible_owner.clone()),
        subjects: vec![Key::new(attempt_id.as_str()), Key::new(attempt.intent.obligation_id.as_str())],
        text: crate::intake::bounded(&text),
    };
    let order = Order { action: attempt.action.clone(), entry: Arc::new(entry.clone()) };
    record_notice(deciding, notice)?;
    deciding.effects.push(Effect::Cancel { attempt_id: attempt_id.clone(), order });
    Ok(())
}
