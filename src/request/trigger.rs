//! Triggers: which are installed, how a predicate would have done, and a new one.

use super::{Answer, change, words};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::Check;
use closer_contracts::delta::Change;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ObligationId, SourceId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::reentry::{Evaluation, Reentry, TypedPredicate};
use closer_contracts::time::Timestamp;
use closer_monitor::ClockStanding;
use closer_protocol::view::View;
use closer_protocol::{Entry, Moment, predicate};
use serde_json::{Value, json};

pub(super) fn list(space: &dyn Space, obligation_id: Option<&ObligationId>) -> Answer {
    let (view, at) = (space.view(), space.moment());
    if let Some(id) = obligation_id.filter(|id| view.state.obligation(id).is_none()) {
        return Answer::not_found("obligation", id.as_str());
    }
    let mut text = Vec::new();
    let mut told = Vec::new();
    let installed = view
        .state
        .items(ItemKind::Reentry)
        .filter_map(|accepted| if let Item::Reentry(reentry) = &accepted.item { Some(reentry) } else { None });
    for reentry in installed.filter(|reentry| obligation_id.is_none_or(|id| reentry.obligation_id == *id)) {
        text.push(format!("{} for {}", reentry.reentry_id, reentry.obligation_id));
        let evaluated = words::evaluated(&reentry.predicate, &view, &at, 1, &mut text);
        told.push(json!({ "reentry": reentry, "evaluated": evaluated }));
    }
    Answer::done(json!({ "reentries": told }), text)
}

fn items(view: &View) -> Vec<Item> {
    view.state.items(ItemKind::ReadbackMethod).map(|accepted| accepted.item.clone()).collect()
}

fn typed<T: serde::de::DeserializeOwned + Check>(value: Value) -> Result<T, Fault> {
    let typed: T = serde_json::from_value(value).map_err(|error| Fault::schema(error.to_string()))?;
    typed.check()?;
    Ok(typed)
}

/// The sources that a predicate waits for and nobody has registered: from those it hears nothing.
fn unknown_sources(view: &View, predicate: &TypedPredicate) -> Vec<SourceId> {
    let own: &[SourceId] =
        if let TypedPredicate::EvidenceAdded(leaf) = predicate { &leaf.permitted_source_refs } else { &[] };
    let unknown = own.iter().filter(|id| view.state.source(id).is_none()).cloned();
    unknown.chain(predicate.children().iter().flat_map(|child| unknown_sources(view, child))).collect()
}

/// Installs a trigger beside those that its obligation has.
pub(super) async fn register(space: &dyn Space, identity: &ActorId, mut reentry: Value) -> Result<Answer, Error> {
    let view = space.view();
    if let Value::Object(table) = &mut reentry {
        let named = crate::deployment::complete_reentry(table, &items(&view));
        if let Err(reason) = named {
            return Ok(Answer::refused(&[Fault::schema(reason).within("predicate").into()]));
        }
    }
    let read = typed::<Reentry>(reentry).and_then(|reentry| {
        predicate::installable(&reentry.predicate).map_err(|fault| fault.within("predicate"))?;
        Ok(reentry)
    });
    let reentry = match read {
        Ok(reentry) => reentry,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    if let Some(unknown) = unknown_sources(&view, &reentry.predicate).first() {
        return Ok(Answer::not_found("source", unknown.as_str()));
    }
    let id = reentry.obligation_id.clone();
    let Some(obligation) = view.state.obligation(&id) else {
        return Ok(Answer::not_found("obligation", id.as_str()));
    };
    let mut reentries: Vec<Reentry> = view.state.reentries_of(&id).cloned().collect();
    let what = format!("trigger {} is installed for {id}", reentry.reentry_id);
    reentries.push(reentry);
    let changes =
        vec![Change::SetTriggers { obligation_id: id.clone(), reentries, trigger_gap: obligation.trigger_gap.clone() }];
    change::commit(space, identity, &what, vec![id], changes).await
}

/// Every instant that the predicate names.
fn instants(predicate: &TypedPredicate, into: &mut Vec<Timestamp>) {
    match predicate {
        TypedPredicate::TimeReached(leaf) => into.push(leaf.at.clone()),
        TypedPredicate::All(_) | TypedPredicate::Any(_) => {
            predicate.children().iter().for_each(|child| instants(child, into));
        }
        TypedPredicate::EvidenceAdded(_)
        | TypedPredicate::DependencyVersionChanged(_)
        | TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::Unsupported(_) => {}
    }
}

/// What a predicate came to from some moment on.
struct Turn {
    at: Timestamp,
    cursor: u64,
    id: String,
    evaluation: Evaluation,
}

/// Folds the record again, one entry after another, and notes each moment at which the predicate turned.
fn replay(space: &dyn Space, predicate: &TypedPredicate) -> Result<Vec<Turn>, Error> {
    let mut pending = Vec::new();
    instants(predicate, &mut pending);
    pending.sort();
    let mut view = View::default();
    let mut turns: Vec<Turn> = Vec::new();
    let mut broken = None;
    let turn = |turns: &mut Vec<Turn>, view: &View, at: &Timestamp, cursor: u64, id: &str| {
        let moment = Moment { now: at.clone(), clock: ClockStanding::Reliable };
        let evaluation = predicate::evaluate(predicate, view, &moment);
        if turns.last().map(|last| last.evaluation) != Some(evaluation) {
            turns.push(Turn { at: at.clone(), cursor, id: id.to_owned(), evaluation });
        }
    };
    space.log().replay(closer_contracts::record::Cursor(1), &mut |cursor, record| {
        while let Some(instant) = pending.first().filter(|instant| **instant <= record.admitted_at).cloned() {
            pending.remove(0);
            turn(&mut turns, &view, &instant, cursor.0.saturating_sub(1), "time");
        }
        let folded = Entry::read(record).map_err(Error::from);
        match folded.and_then(|entry| Ok(view.fold(&entry, &record.admitted_at)?)) {
            Ok(()) => turn(&mut turns, &view, &record.admitted_at, cursor.0, &record.id),
            Err(error) => broken = Some(error),
        }
    })?;
    let now = space.moment().now;
    let passed = pending.iter().filter(|instant| **instant <= now);
    passed.for_each(|instant| turn(&mut turns, &view, instant, space.log().durable().0, "time"));
    broken.map_or(Ok(turns), Err)
}

pub(super) fn test(space: &dyn Space, mut predicate: Value) -> Result<Answer, Error> {
    let named = crate::deployment::name_streams(&mut predicate, &items(&space.view()));
    let typed = named.map_err(Fault::schema).and_then(|()| typed::<TypedPredicate>(predicate)).and_then(|predicate| {
        predicate::installable(&predicate)?;
        Ok(predicate)
    });
    let predicate = match typed {
        Ok(predicate) => predicate,
        Err(fault) => return Ok(Answer::refused(&[fault.within("predicate").into()])),
    };
    let turns = replay(space, &predicate)?;
    let fired: Vec<&Turn> = turns.iter().filter(|turn| turn.evaluation == Evaluation::Satisfied).collect();
    let mut text = vec![format!("predicate: {}", words::predicate(&predicate))];
    text.extend(turns.iter().map(|turn| {
        format!(
            "  {} record {:<5} {}: by {}",
            turn.at.as_str(),
            turn.cursor,
            words::evaluation(turn.evaluation),
            turn.id
        )
    }));
    text.push(match fired.first() {
        Some(first) => format!(
            "it would have fired {} times, first at {}, record {}",
            fired.len(),
            first.at.as_str(),
            first.cursor
        ),
        None => "it would not have fired on anything on record".to_owned(),
    });
    let unknown = unknown_sources(&space.view(), &predicate);
    text.extend(
        unknown.iter().map(|id| format!("note: no source on record is called `{}`", words::told_id(id.as_str()))),
    );
    let told =
        |turn: &Turn| json!({ "at": turn.at, "cursor": turn.cursor, "by": turn.id, "evaluation": turn.evaluation });
    let data = json!({
        "predicate": predicate, "turns": turns.iter().map(told).collect::<Vec<_>>(),
        "fired": fired.into_iter().map(told).collect::<Vec<_>>(),
    });
    Ok(Answer::done(data, text))
}
