//! What is told of looks that show nothing: the cause that stands now, and that it is over. Spec: SR14, §6.3.

use super::stream_of;
use crate::entry::{Notice, NoticeKind};
use crate::input::Reply;
use crate::sequence::Deciding;
use crate::view::View;
use closer_contracts::Fault;
use closer_contracts::id::{Key, ObligationId, ObservationStreamId, ReadbackMethodId, Text};
use closer_contracts::refs::Target;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often a changed cause is told anew while nothing is seen: a program that says something else each time is not a
/// reason to write without end.
const CAUSES_MAX: usize = 32;

/// What ends a notice that nothing is seen, without a new observation: the same is seen again.
const SEEN_AGAIN: &str = "seen_again";

/// What was told about the looks at a stream since its newest observation, oldest first: that nothing is seen and why, or
/// that it is seen again.
fn told_of_looks<'a>(
    view: &'a View,
    stream: &'a ObservationStreamId,
    obligation_id: &'a ObligationId,
) -> impl Iterator<Item = &'a Notice> {
    (0..).map_while(move |turn| view.notices.get(&look_key(view, stream, obligation_id, turn)).map(|notice| &**notice))
}

/// The key of such a notice, by its place among them.
fn look_key(view: &View, stream: &ObservationStreamId, obligation_id: &ObligationId, turn: usize) -> Key {
    let number = view.observed.get(stream).map_or(0, |(number, _)| *number);
    let turn = if turn == 0 { String::new() } else { format!(".{turn}") };
    Key::new(crate::derived_id("unseen", &format!("{stream}.{number}.{obligation_id}{turn}")))
}

fn is_seen_again(notice: &Notice) -> bool {
    notice.subjects.get(2).is_some_and(|subject| subject.as_str() == SEEN_AGAIN)
}

/// What is told now of the looks at a stream: that nothing is seen, or nothing.
fn unseen_now<'a>(
    view: &'a View,
    stream: &'a ObservationStreamId,
    obligation_id: &'a ObligationId,
) -> Option<&'a Notice> {
    told_of_looks(view, stream, obligation_id).last().filter(|notice| !is_seen_again(notice))
}

/// What an obligation waits to see and nobody can look at, as it was told last.
pub fn unseen_by<'a>(view: &'a View, obligation_id: &'a ObligationId) -> impl Iterator<Item = &'a Notice> {
    let of_it = |notice: &&Arc<Notice>| {
        notice.kind == NoticeKind::ResidualInterval
            && notice.subjects.get(1).is_some_and(|subject| subject.as_str() == obligation_id.as_str())
    };
    let streams = view.notices.values().filter(of_it).filter_map(|notice| notice.subjects.first());
    let streams: BTreeSet<&Key> = streams.collect();
    streams.into_iter().filter_map(move |stream| {
        let stream = ObservationStreamId::new(stream.as_str());
        let newest = told_of_looks(view, &stream, obligation_id).last()?.key.clone();
        view.notices.get(&newest).map(|notice| &**notice).filter(|notice| !is_seen_again(notice))
    })
}

/// Whether it stands on record that nobody can look at this target for the obligation.
#[must_use]
pub fn is_unseen(view: &View, target: &Target, method: &ReadbackMethodId, obligation_id: &ObligationId) -> bool {
    unseen_now(view, &stream_of(method, target), obligation_id).is_some()
}

/// The words of a cause without its figures: an address or a time that differs is no other cause.
fn wording(text: &str) -> String {
    text.chars().filter(|character| !character.is_ascii_hexdigit()).collect()
}

/// Tells that a target cannot be looked at, once for each cause, and refuses to have seen anything (SR14, §6.3).
pub(crate) fn unseen(
    deciding: &mut Deciding<'_>,
    target: &Target,
    method: &ReadbackMethodId,
    obligation_id: &ObligationId,
    reason: &Text,
) -> Result<Reply, Fault> {
    let stream = stream_of(method, target);
    let text = format!("`{}` of `{}` cannot be looked at by `{method}`: {reason}", target.address, target.account);
    let told = crate::intake::bounded(&text);
    let turns = told_of_looks(deciding.view, &stream, obligation_id).count();
    let stands = unseen_now(deciding.view, &stream, obligation_id)
        .is_some_and(|notice| turns >= CAUSES_MAX || wording(notice.text.as_str()) == wording(told.as_str()));
    if !stands {
        tell_of_looks(deciding, &stream, obligation_id, turns, None, told)?;
    }
    let denial = Denial::new(Code::UnresolvedRef, CheckKind::Readback, text).of(&target.address);
    Ok(Reply::Refused(vec![denial]))
}

/// Tells that a target is seen again as it was seen last: why it could not be looked at is over.
pub(crate) fn seen_again(
    deciding: &mut Deciding<'_>,
    target: &Target,
    method: &ReadbackMethodId,
    obligation_id: &ObligationId,
) -> Result<Reply, Fault> {
    let stream = stream_of(method, target);
    if unseen_now(deciding.view, &stream, obligation_id).is_some() {
        let turns = told_of_looks(deciding.view, &stream, obligation_id).count();
        let text = format!("`{}` of `{}` can be looked at by `{method}` again", target.address, target.account);
        tell_of_looks(deciding, &stream, obligation_id, turns, Some(SEEN_AGAIN), crate::intake::bounded(&text))?;
    }
    Ok(Reply::Recorded(Vec::new()))
}

fn tell_of_looks(
    deciding: &mut Deciding<'_>,
    stream: &ObservationStreamId,
    obligation_id: &ObligationId,
    turn: usize,
    ends: Option<&str>,
    text: Text,
) -> Result<(), Fault> {
    let owner = deciding.view.state.obligation(obligation_id).map(|obligation| obligation.responsible_owner.clone());
    let concerned = [stream.as_str(), obligation_id.as_str()].into_iter().chain(ends);
    let notice = Notice {
        kind: NoticeKind::ResidualInterval,
        key: look_key(deciding.view, stream, obligation_id, turn),
        owner,
        subjects: concerned.map(Key::new).collect(),
        text,
    };
    crate::urgent::record_notice(deciding, notice)
}
