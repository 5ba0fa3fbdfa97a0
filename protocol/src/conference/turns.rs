//! Whose turn it is: the same for a live coordinator and for one that was restarted. Spec: §4.1.
//!
//! After the release everybody who took a position is asked for one move, pass by pass, on what the group shared before
//! the pass. A pass in which nobody has more to say, and every declared bound, ends it.

use super::proceeding::Ending;
use super::table::{Round, Turned};
use crate::input::Moment;
use closer_contracts::branch;
use closer_contracts::conference::{MoveKind, Seat};
use closer_contracts::id::{ActorId, WorkId};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;

/// What a conference waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Ask this participant for its position.
    Work(Box<Seat>),
    /// Get the answers of these participants. Who has said nothing by then has said nothing, and has not agreed.
    Answers {
        /// The work and whose it is.
        asked: Vec<(WorkId, ActorId)>,
        /// When the first of them has waited long enough.
        by: Timestamp,
    },
    /// Seal.
    Seal,
    /// Release.
    Release,
    /// Ask this participant for a move.
    Move(Box<Seat>),
    /// Apply the declared rule.
    Conclude,
    /// It is over.
    Over,
}

/// The next turn that the records of a conference show.
#[must_use]
pub fn turn(round: &Round, at: &Moment) -> Turn {
    let seats = &round.contract.seats;
    if round.report.is_some() {
        return Turn::Over;
    }
    if let Some(seat) = seats.iter().find(|seat| !round.asked.contains_key(&seat.actor)) {
        return Turn::Work(Box::new(seat.clone()));
    }
    match (&round.seal, &round.release) {
        (Some(_), Some(_)) => moving(round, at),
        (Some(_), None) => Turn::Release,
        (None, _) => {
            let silent = seats.iter().filter(|seat| !round.positions.contains_key(&seat.actor));
            let asked = silent.filter_map(|seat| round.asked.get_key_value(&seat.actor));
            let asked = asked.filter(|(_, work_id)| !has_failed(round, work_id));
            let asked: Vec<_> = asked.map(|(actor, work_id)| (work_id.clone(), actor.clone())).collect();
            match asked.is_empty() || is_due(round, at) {
                true => Turn::Seal,
                false => Turn::Answers { asked, by: round.opened_at.plus_ms(round.contract.seal_within_ms) },
            }
        }
    }
}

fn has_failed(round: &Round, work_id: &WorkId) -> bool {
    branch!("conference.answer_failed", round.failed.contains(work_id))
}

/// Whether the declared time for positions is over, by a clock that can be trusted.
pub(crate) fn is_due(round: &Round, at: &Moment) -> bool {
    let over = round.opened_at.plus_ms(round.contract.seal_within_ms) <= at.now;
    at.clock == ClockStanding::Reliable && branch!("conference.seal_due", over)
}

/// The turn once positions are released.
fn moving(round: &Round, at: &Moment) -> Turn {
    if ending(round, at) != Ending::RuleApplied {
        return Turn::Conclude;
    }
    if let Some(seat) = next_mover(round, at) {
        return Turn::Move(Box::new(seat.clone()));
    }
    let open = round.turned.iter().filter(|(actor, turned)| awaits(round, actor, turned, at));
    let (asked, by): (Vec<_>, Vec<_>) =
        open.map(|(actor, turned)| ((turned.work_id.clone(), actor.clone()), until(round, turned))).unzip();
    match by.into_iter().min() {
        Some(by) => Turn::Answers { asked, by },
        None => Turn::Conclude,
    }
}

/// How long a move is waited for: as long as a position was, and no longer than the conference lasts.
fn until(round: &Round, turned: &Turned) -> Timestamp {
    let own = turned.asked_at.plus_ms(round.contract.seal_within_ms);
    own.min(round.opened_at.plus_ms(round.contract.stop.time_ms_max))
}

/// The move that answers a turn.
fn answered<'a>(
    round: &'a Round,
    actor: &ActorId,
    turned: &Turned,
) -> Option<&'a super::Placed<closer_contracts::conference::ConferenceMove>> {
    round.moves.iter().rev().find(|made| made.body.actor == *actor && made.place > turned.place)
}

/// The turn that a participant's next move answers.
pub(crate) fn open_turn<'a>(round: &'a Round, actor: &ActorId) -> Option<&'a Turned> {
    let turned = round.turned.get(actor)?;
    (answered(round, actor, turned).is_none() && !round.failed.contains(&turned.work_id)).then_some(turned)
}

/// Whether a participant that was asked for a move may still make it.
fn awaits(round: &Round, actor: &ActorId, turned: &Turned, at: &Moment) -> bool {
    let late = branch!("conference.turn_due", until(round, turned) <= at.now);
    answered(round, actor, turned).is_none() && !has_failed(round, &turned.work_id) && !late
}

/// Who is to be asked for a move next: everybody with a position once in a pass; in a further pass, if somebody said more
/// than that he defers, everybody who has answered so far.
pub(crate) fn next_mover<'a>(round: &'a Round, at: &Moment) -> Option<&'a Seat> {
    let stop = &round.contract.stop;
    let movers = || round.contract.seats.iter().filter(|seat| round.positions.contains_key(&seat.actor));
    let turned = |seat: &Seat| round.turned.get(&seat.actor);
    let open = round.turned.iter().filter(|(actor, turned)| awaits(round, actor, turned, at)).count();
    let calls = round.positions.len() + round.moves.len() + open;
    if branch!("conference.no_call_left", calls >= stop.calls_max as usize) {
        return None;
    }
    let in_pass = |seat: &Seat| turned(seat).is_some_and(|turned| turned.pass == round.pass);
    if let Some(seat) = movers().find(|seat| !in_pass(seat) && !is_silent(round, seat)) {
        return Some(seat);
    }
    let more =
        round.turned.iter().filter(|(_, turned)| turned.pass == round.pass).any(|(actor, turned)| {
            answered(round, actor, turned).is_some_and(|made| made.body.r#move != MoveKind::Defer)
        });
    let further = open == 0 && branch!("conference.somebody_said_more", more) && round.pass < stop.rounds_max;
    movers().find(|seat| further && !is_silent(round, seat))
}

/// Whether a participant was asked for a move and did not make it: it is not asked again.
fn is_silent(round: &Round, seat: &Seat) -> bool {
    let last = round.turned.get(&seat.actor);
    branch!("conference.not_asked_again", last.is_some_and(|turned| answered(round, &seat.actor, turned).is_none()))
}

/// Why a conference whose declared rule is applied at this moment is over.
pub(crate) fn ending(round: &Round, at: &Moment) -> Ending {
    let stop = &round.contract.stop;
    if branch!("conference.time_used_up", round.opened_at.plus_ms(stop.time_ms_max) <= at.now) {
        return Ending::Time;
    }
    let calls = round.positions.len() + round.moves.len();
    match branch!("conference.calls_used_up", calls >= stop.calls_max as usize) {
        true => Ending::Calls,
        false => Ending::RuleApplied,
    }
}

/// The bound that a further move would exceed, and the ending where nobody can move any more.
pub(crate) fn used_up(round: &Round, actor: &ActorId, at: &Moment) -> Option<(Denial, Option<Ending>)> {
    let over =
        |reason: &str| Denial::new(Code::RoundLimit, CheckKind::Runtime, reason).of(&round.contract.conference_id);
    if branch!("conference.is_over", round.report.is_some() || round.replaced) {
        return Some((over("the conference is over"), None));
    }
    match ending(round, at) {
        Ending::Time => return Some((over("the declared time is over"), Some(Ending::Time))),
        Ending::Calls => return Some((over("the declared calls are used up"), Some(Ending::Calls))),
        Ending::Rounds | Ending::RuleApplied => {}
    }
    let rounds_max = round.contract.stop.rounds_max as usize;
    let rounds = |actor: &ActorId| round.moves.iter().filter(|made| made.body.actor == *actor).count();
    if branch!("conference.rounds_used_up", rounds(actor) >= rounds_max) {
        let everybody = round.positions.keys().all(|actor| rounds(actor) >= rounds_max);
        return Some((over("the participant's declared rounds are used up"), everybody.then_some(Ending::Rounds)));
    }
    None
}
