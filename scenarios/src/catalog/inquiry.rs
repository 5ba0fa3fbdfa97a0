//! Conferences in cases: what participants answer, and what happens in them.

use super::given::Cast;
use super::step::{Done, episode, stuck};
use super::words::{Unreadable, Words};
use crate::founding::{INQUIRY, proposition};
use crate::space::{Answer, Broken};
use crate::worker;
use closer_contracts::auth::SigningScope;
use closer_contracts::conference::{MoveKind, Seat, Subject};
use closer_contracts::id::{ActorId, ConferenceId};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::word_enum;
use closer_contracts::work::{Need, Objection, ReasonClass, Relation, Work, WorkResult};
use closer_protocol::View;
use closer_protocol::conference::{Proceed, Turn};
use closer_protocol::input::Input;
use std::collections::BTreeMap;

word_enum! {
    /// What a participant of an inquiry answers, about the proposition that the plan is basic.
    pub enum Voice {
        /// It claims it, on the evidence in its packet.
        Supports = "supports",
        /// It reads that evidence as contradicting it.
        Contradicts = "contradicts",
        /// It reads that evidence as saying nothing about it.
        Irrelevant = "irrelevant",
        /// It claims it, and cites nothing.
        Assents = "assents",
        /// It objects to it, and cites nothing.
        Objects = "objects",
        /// It proposes to change the plan.
        Proposes = "proposes",
        /// It leaves a tradeoff to the user.
        Tradeoff = "tradeoff",
        /// It has nothing to say.
        Nothing = "nothing",
        /// It gives no answer.
        Silence = "silence",
    }
}

fn subject() -> Subject {
    Subject::Proposition(proposition("o-1", "basic"))
}

fn says(voice: Voice, work: &Work, view: &View) -> WorkResult {
    let claimed = worker::claims(work, view, "basic", Relation::Supports);
    match voice {
        Voice::Supports => claimed,
        Voice::Contradicts => worker::reads(work, view, Relation::Contradicts),
        Voice::Irrelevant => worker::reads(work, view, Relation::Irrelevant),
        Voice::Assents => WorkResult { assessments: Vec::new(), ..claimed },
        Voice::Objects => {
            let objections = subject().digest().map(|subject| Objection {
                subject,
                reason_class: ReasonClass::Factual,
                text: "It does not look like that.".into(),
                evidence_ids: Vec::new(),
            });
            WorkResult { objections: objections.into_iter().collect(), ..worker::nothing(work) }
        }
        Voice::Proposes => {
            WorkResult { action_proposals: vec![worker::proposal("p-o-1", "basic")], ..worker::nothing(work) }
        }
        Voice::Tradeoff => worker::leaves_open(Need::Tradeoff)(work, view),
        Voice::Nothing | Voice::Silence => worker::nothing(work),
    }
}

/// Participants that answer by their role; who is given none has nothing to say.
pub(super) fn answers(voices: BTreeMap<&'static str, Voice>) -> Answer {
    Box::new(move |work, view| says(voices.get(work.role.as_str()).copied().unwrap_or(Voice::Nothing), work, view))
}

fn conference(cast: &Cast) -> Result<ConferenceId, Broken> {
    cast.conference.clone().ok_or_else(|| stuck("no conference was opened"))
}

/// The coordinator opens a conference on the proposition of `o-1`, in an episode of its own.
pub(super) fn open(cast: &mut Cast) -> Done {
    if cast.episode.is_none() {
        cast.episode = Some(cast.space.open("o-1")?);
    }
    let seat = |role: &&str| Seat {
        actor: (*role).into(),
        role: (*role).into(),
        context: format!("context-{role}").into(),
        derives_from: Vec::new(),
        model: format!("model-{role}").into(),
        tools: Vec::new(),
    };
    let contract = cast.space.conference(&episode(cast)?, vec![subject()], INQUIRY.iter().map(seat).collect())?;
    cast.conference = Some(contract.conference_id.clone());
    cast.space.convene(contract).map(drop)
}

/// Takes it on until positions can be sealed, can be released, or have been.
pub(super) fn reach(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let turn = match words.next()? {
        "sealing" => Turn::Seal,
        "release" => Turn::Release,
        "moves" => return Ok(conference(cast).and_then(|id| cast.space.confer_until_released(&id))),
        other => return Err(words.wrong(format!("a conference does not reach `{other}`"))),
    };
    Ok(conference(cast).and_then(|id| cast.space.confer_until(&id, &turn)))
}

/// Takes it to its end.
pub(super) fn conclude(cast: &mut Cast) -> Done {
    let id = conference(cast)?;
    cast.space.confer_until(&id, &Turn::Over)
}

/// Takes it to its end, and its episode after it.
pub(super) fn finish(cast: &mut Cast) -> Done {
    let (id, episode_id) = (conference(cast)?, episode(cast)?);
    cast.space.confer_until(&id, &Turn::Over)?;
    cast.space.finish(&episode_id).map(drop)
}

/// `move.made regulator challenge`: a move on the subject; `by=` says who really sends it.
pub(super) fn make(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (role, word) = (words.next()?, words.next()?);
    let kind = words.one_of(word, MoveKind::ALL, MoveKind::as_str)?;
    let by = words.named("by").unwrap_or(role);
    Ok(conference(cast).and_then(|id| {
        let made = cast.space.a_move(&id, role, kind, &subject())?;
        let producer = ActorRef { actor_id: by.into(), role: ProducerRole::Participant };
        cast.space.submit_artifact(made, producer, SigningScope::ConferenceMove).map(drop)
    }))
}

fn position(cast: &Cast, role: &str) -> Result<ArtifactRef, Broken> {
    let round = cast.space.round(&conference(cast)?)?;
    let position = round.positions.get(&ActorId::from(role)).map(|position| position.reference());
    position.ok_or_else(|| stuck(format!("{role} has taken no position")))
}

/// `position.read remainder by=regulator`
pub(super) fn read(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (role, by) = (words.next()?, words.named("by").unwrap_or("regulator"));
    let (reader, context) = (by.into(), format!("context-{by}").into());
    Ok(position(cast, role).and_then(|item| {
        let proceed = Proceed::Read { conference_id: conference(cast)?, reader, context, item };
        cast.space.submit(Input::Confer(proceed)).map(drop)
    }))
}

/// `position.leaked remainder to=regulator`
pub(super) fn leak(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (role, to) = (words.next()?, words.named("to").unwrap_or("regulator"));
    let (reader, context) = (to.into(), format!("context-{to}").into());
    Ok(position(cast, role).and_then(|item| {
        let proceed = Proceed::Leak { conference_id: conference(cast)?, reader, context, item };
        cast.space.submit(Input::Confer(proceed)).map(drop)
    }))
}
