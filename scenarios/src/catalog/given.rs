//! What there is before anything happens: the deployment, the worker and the world.

use super::Failed;
use super::inquiry::{self, Voice};
use super::words::{Meaning, Unreadable, Words};
use crate::founding::{self, BEGINNING, Deployment, INQUIRY, plan_target};
use crate::space::{Answer, Space};
use crate::worker;
use crate::world::Mode;
use closer_contracts::Timestamp;
use closer_contracts::audit::RestrictiveAction;
use closer_contracts::delta::Delta;
use closer_contracts::id::{ActorId, ConferenceId, EpisodeId, HandoffId};
use closer_contracts::item::{EffectClass, Item, RepeatSafety, RuleBody};
use closer_contracts::profile::RestrictiveEvent;
use closer_contracts::work::{Need, Relation};
use std::collections::BTreeMap;

/// Everything that the lines of a case are about.
pub(super) struct Cast {
    pub(super) space: Space,
    /// The newest episode that was opened by name.
    pub(super) episode: Option<EpisodeId>,
    /// The newest conference.
    pub(super) conference: Option<ConferenceId>,
    /// The newest handoff that was offered by name.
    pub(super) handoff: Option<HandoffId>,
    /// Deltas by the names that the case gives them.
    pub(super) deltas: BTreeMap<String, Delta>,
    /// The newest event payload, for a second delivery.
    pub(super) event: Option<closer_contracts::Payload>,
}

struct Founding {
    deployment: Deployment,
    answer: Answer,
    mode: Mode,
    shown: Vec<(String, String)>,
    voices: BTreeMap<&'static str, Voice>,
}

impl Founding {
    fn change(&mut self, change: impl FnOnce(Deployment) -> Deployment) {
        self.deployment = change(self.deployment.clone());
    }
}

/// Founds the space of a case.
pub(super) fn found(given: &[String]) -> Result<Cast, Failed> {
    let mut founding = Founding {
        deployment: Deployment::default(),
        answer: Box::new(|work, _| worker::nothing(work)),
        mode: Mode::Normal,
        shown: Vec::new(),
        voices: BTreeMap::new(),
    };
    for line in given {
        take(&mut founding, line)?;
    }
    let broken = |source| Failed::Broken { line: "given".to_owned(), source };
    let mut space = Space::found(&founding.deployment, founding.answer).map_err(broken)?;
    space.world.effect_mode = founding.mode;
    let silent = founding.voices.iter().filter(|(_, voice)| **voice == Voice::Silence);
    space.silent.extend(silent.map(|(role, _)| ActorId::from(*role)));
    for (field, value) in founding.shown {
        space.world.set(&plan_target(), &field, value);
    }
    Ok(Cast { space, episode: None, conference: None, handoff: None, deltas: BTreeMap::new(), event: None })
}

type Given = fn(&mut Founding, &mut Words<'_>) -> Result<(), Unreadable>;

/// What can be given, and how it is said:
///
/// ```text
/// obligation.accepted O [entity=E]      grant.given G [plans=a,b] [expires_after=10s]
/// operation.registered OP [repeat=not_repeat_safe] [trusted_for=10s]
/// rule.demands SOURCES                  trigger.expires_after 10s        budget.calls N
/// event.restricts KIND [source=S] [revokes=G]
/// worker.answers nothing|proposal|proposal_on_evidence [plan=P]|relation supports|misquotation|open tradeoff
/// effect.answers MODE                   target.shows plan=P              rule.shows plan=P
/// participant.answers ROLE supports|contradicts|irrelevant|assents|objects|proposes|tradeoff|nothing|silence
/// ```
const VOCABULARY: &[Meaning<Given>] = &[
    ("obligation.accepted", obligation),
    ("grant.given", grant),
    ("operation.registered", operation),
    ("rule.demands", sources),
    ("trigger.expires_after", expiring),
    ("event.restricts", restrictive),
    ("budget.calls", budget),
    ("worker.answers", worker),
    ("effect.answers", effects),
    ("target.shows", shown),
    ("rule.shows", showing),
    ("participant.answers", participant),
];

fn take(founding: &mut Founding, line: &str) -> Result<(), Unreadable> {
    let mut words = Words::of(line);
    words.meaning(VOCABULARY)?(founding, &mut words)?;
    words.end()
}

fn obligation(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let (id, entity) = (words.next()?, words.named("entity").unwrap_or("service-a"));
    founding.change(|deployment| deployment.with_obligation(id, entity));
    Ok(())
}

fn grant(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let id = words.next()?;
    let plans: Vec<&str> = words.named("plans").unwrap_or("basic,small").split(',').collect();
    let mut grant = founding::grant(id, "plan.change", &plans);
    if let Some(within) = words.named("expires_after") {
        grant.expiry = beginning().plus_ms(words.duration(within)?);
    }
    founding.change(|deployment| deployment.with(Item::Grant(grant)));
    Ok(())
}

fn operation(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let id = words.next()?;
    let repeat = words.named("repeat").unwrap_or("repeat_safe");
    let repeat = words.one_of(repeat, RepeatSafety::ALL, RepeatSafety::as_str)?;
    let mut entry = founding::operation(id, EffectClass::ExternalReversible, repeat);
    if let Some(within) = words.named("trusted_for") {
        entry.verification.expires_at = beginning().plus_ms(words.duration(within)?);
    }
    founding.change(|deployment| deployment.with(Item::Operation(entry)));
    Ok(())
}

fn sources(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let sources = u32::try_from(words.number()?).map_err(|_| words.wrong("too many sources"))?;
    for item in &mut founding.deployment.founding.items {
        if let Item::Rule(rule) = item
            && let RuleBody::Sufficiency { distinct_sources_min, .. } = &mut rule.body
        {
            *distinct_sources_min = sources;
        }
    }
    Ok(())
}

fn expiring(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let within = words.next()?;
    let at = beginning().plus_ms(words.duration(within)?);
    let obligations = founding.deployment.founding.obligations.iter_mut();
    for reentry in obligations.flat_map(|(_, reentries)| reentries) {
        reentry.expires_at = Some(at.clone());
    }
    Ok(())
}

fn budget(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let calls = words.number()? as u64;
    founding.change(|deployment| deployment.with_profile(|profile| profile.obligation_budget.calls = Some(calls)));
    Ok(())
}

fn worker(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    founding.answer = answer(words)?;
    Ok(())
}

fn effects(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let mode = words.next()?;
    founding.mode = words.one_of(mode, Mode::ALL, Mode::as_str)?;
    Ok(())
}

fn shown(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let plan = words.named("plan").ok_or_else(|| words.wrong("the target shows a plan"))?;
    founding.shown.push(("plan".to_owned(), plan.to_owned()));
    Ok(())
}

fn showing(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let plan = words.named("plan").ok_or_else(|| words.wrong("the rule demands a plan"))?.to_owned();
    founding.change(|deployment| deployment.shown(&plan));
    Ok(())
}

/// The first participant who is given an answer brings the three of the reference configuration with it.
fn participant(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let role = words.next()?;
    let known = INQUIRY.iter().find(|known| **known == role);
    let role = *known.ok_or_else(|| words.wrong(format!("`{role}` is no role of an inquiry")))?;
    let word = words.next()?;
    let voice = words.one_of(word, Voice::ALL, Voice::as_str)?;
    if founding.voices.is_empty() {
        founding.change(Deployment::with_inquiry);
    }
    founding.voices.insert(role, voice);
    let voices = founding.voices.clone();
    founding.answer = inquiry::answers(voices);
    Ok(())
}

fn beginning() -> Timestamp {
    Timestamp::parse(BEGINNING).unwrap_or_else(|_| Timestamp::from_unix_ms(0))
}

fn restrictive(founding: &mut Founding, words: &mut Words<'_>) -> Result<(), Unreadable> {
    let listed = RestrictiveEvent {
        change_kind: words.next()?.into(),
        source: words.named("source").unwrap_or("feed").into(),
        entity_ref: None,
        issuer: "issuer-1".into(),
        action: RestrictiveAction::RevokeGrant(words.named("revokes").unwrap_or("grant-1").into()),
        reason: "The account's key is revoked.".into(),
    };
    founding.change(|deployment| deployment.with_profile(|profile| profile.restrictive_events.push(listed)));
    Ok(())
}

fn answer(words: &mut Words<'_>) -> Result<Answer, Unreadable> {
    Ok(match words.next()? {
        "nothing" => Box::new(|work, _| worker::nothing(work)),
        "proposal" => worker::proposes(words.named("plan").unwrap_or("basic").to_owned()),
        "proposal_on_evidence" => worker::proposes_on_evidence(words.named("plan").unwrap_or("basic").to_owned()),
        "relation" => {
            let relation = words.next()?;
            worker::relates(words.one_of(relation, Relation::ALL, Relation::as_str)?)
        }
        "misquotation" => worker::misquotes(),
        "open" => {
            let need = words.next()?;
            worker::leaves_open(words.one_of(need, Need::ALL, Need::as_str)?)
        }
        other => return Err(words.wrong(format!("no worker answers `{other}`"))),
    })
}
