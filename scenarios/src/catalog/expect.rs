//! What must hold at the end of a case: one line, one demand on what is on record or what the world shows.

use super::Failed;
use super::given::Cast;
use super::words::{Meaning, Words};
use crate::founding::plan_target;
use crate::space::{Broken, Space};
use closer_contracts::RefusalCode;
use closer_contracts::audit::DecisionType;
use closer_contracts::briefcase::PacketStatus;
use closer_contracts::delta::{AdmissionPath, Change};
use closer_contracts::event::MatchOutcome;
use closer_contracts::id::ObligationId;
use closer_contracts::item::ItemKind;
use closer_contracts::obligation::{AssessmentStatus, ObligationStatus};
use closer_protocol::conference::{Claim, Label, Report};
use closer_protocol::entry::{AttemptStatus, Entry, NoticeKind};
use closer_protocol::incident::IncidentState;
use closer_protocol::trace::{Stage, check_judgment, check_ordinary, check_urgent};

/// What a demand came to: nothing, or what there is instead.
type Found = Result<Option<String>, Failed>;

/// Checks one line.
pub(super) fn check(cast: &Cast, line: &str) -> Result<(), Failed> {
    let mut words = Words::of(line);
    let found = demand(&cast.space, &mut words)?;
    words.end()?;
    match found {
        None => Ok(()),
        Some(found) => Err(Failed::Unmet { line: line.to_owned(), found }),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(expected: T, actual: T) -> Found {
    Ok((expected != actual).then(|| format!("{actual:?}")))
}

fn holds(holds: bool, instead: impl std::fmt::Debug) -> Found {
    Ok((!holds).then(|| format!("{instead:?}")))
}

type Demand = fn(&Space, &mut Words<'_>) -> Found;

/// What can be demanded, and how it is said:
///
/// ```text
/// obligation O STATUS        owner O A                held O A epoch=N
/// trigger O kept|gap        claim P accepted|absent
/// effects N                  target plan=P            works N                   events N
/// grants N                   restrictions N           matched OUTCOME           packet STATUS
/// decision KIND              outcomes STATUS...       notices KIND N            refused CODE [of=TEXT]
/// incident STATE
/// finding STATUS             dissent ROLE...          independence CLAIM        label ROLE LABEL
/// nothing refused            replay agrees            trace ordinary|urgent|judgment holds [with=STAGE]
/// ```
const VOCABULARY: &[Meaning<Demand>] = &[
    ("obligation", obligation),
    ("owner", owner),
    ("held", held),
    ("trigger", trigger),
    ("claim", claim),
    ("effects", |space, words| equal(words.number()?, space.world.effects().len())),
    ("target", target),
    ("works", |space, words| equal(words.number()?, space.view().works.len())),
    ("events", |space, words| equal(words.number()?, space.view().events.len())),
    ("grants", |space, words| equal(words.number()?, space.view().state.items(ItemKind::Grant).count())),
    ("restrictions", |space, words| equal(words.number()?, space.view().state.restrictions_in_force().count())),
    ("matched", matched),
    ("packet", packet),
    ("decision", decision),
    ("outcomes", outcomes),
    ("notices", notices),
    ("incident", incident),
    ("refused", refused),
    ("finding", finding),
    ("dissent", dissent),
    ("independence", independence),
    ("label", label),
    ("nothing", nothing),
    ("replay", replay),
    ("trace", trace),
];

fn demand(space: &Space, words: &mut Words<'_>) -> Found {
    words.meaning(VOCABULARY)?(space, words)
}

/// `obligation o-1 resolved`: where it stands.
fn obligation(space: &Space, words: &mut Words<'_>) -> Found {
    let (id, word) = (ObligationId::from(words.next()?), words.next()?);
    let status = words.one_of(word, ObligationStatus::ALL, ObligationStatus::as_str)?;
    equal(Some(status), space.view().state.obligation(&id).map(|obligation| obligation.status))
}

/// `owner o-1 closer.planner`: who answers for it.
fn owner(space: &Space, words: &mut Words<'_>) -> Found {
    let (id, owner) = (ObligationId::from(words.next()?), words.next()?);
    equal(Some(owner), space.view().state.obligation(&id).map(|obligation| obligation.responsible_owner.as_str()))
}

/// `held o-1 worker epoch=1`: who answers for it under which epoch.
fn held(space: &Space, words: &mut Words<'_>) -> Found {
    let (id, owner) = (ObligationId::from(words.next()?), words.next()?);
    let epoch = words.named("epoch").and_then(|epoch| epoch.parse().ok());
    let held = space.view().ownership(&id);
    equal(Some((owner, epoch)), held.as_ref().map(|held| (held.owner.as_str(), Some(held.epoch))))
}

/// `target plan=basic`: what the world shows.
fn target(space: &Space, words: &mut Words<'_>) -> Found {
    let plan = words.named("plan").map(serde_json::Value::from);
    equal(plan.as_ref(), space.world.get(&plan_target(), "plan"))
}

/// `matched unmatched`: some event came to this.
fn matched(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let outcome = words.one_of(word, MatchOutcome::ALL, MatchOutcome::as_str)?;
    let outcomes: Vec<MatchOutcome> = space.view().matches.values().map(|(_, receipt)| receipt.outcome).collect();
    holds(outcomes.contains(&outcome), outcomes)
}

/// `packet open`: some packet stands there.
fn packet(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let status = words.one_of(word, PacketStatus::ALL, PacketStatus::as_str)?;
    let statuses: Vec<PacketStatus> = space.view().packets.values().map(|packet| packet.status).collect();
    holds(statuses.contains(&status), statuses)
}

/// `decision preference`: the user answered this.
fn decision(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let kind = words.one_of(word, DecisionType::ALL, DecisionType::as_str)?;
    let decisions = space.view().decisions.values().flatten();
    let given: Vec<DecisionType> = decisions.map(|(_, decision)| decision.decision_type).collect();
    holds(given.contains(&kind), given)
}

/// `notices overdue 1`: how many of this kind are on record.
fn notices(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let kind = words.one_of(word, NoticeKind::ALL, NoticeKind::as_str)?;
    equal(words.number()?, space.view().notices.values().filter(|notice| notice.kind == kind).count())
}

/// `incident contained`: where the incident stands.
fn incident(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let state = words.one_of(word, IncidentState::ALL, IncidentState::as_str)?;
    let states: Vec<IncidentState> = space.view().incidents.values().map(|case| case.state).collect();
    holds(states.contains(&state), states)
}

/// `nothing refused`: no refusal is on record.
fn nothing(space: &Space, words: &mut Words<'_>) -> Found {
    match words.next()? {
        "refused" => equal(Vec::new(), broken(space.refusals())?),
        other => Err(words.wrong(format!("`nothing {other}` is no demand")).into()),
    }
}

/// `replay agrees`: the log folds to the same accepted state.
fn replay(space: &Space, words: &mut Words<'_>) -> Found {
    match words.next()? {
        "agrees" => equal(space.view().state.reference(), broken(space.replay())?.state.reference()),
        other => Err(words.wrong(format!("a replay does not `{other}`")).into()),
    }
}

fn broken<T>(result: Result<T, Broken>) -> Result<T, Failed> {
    result.map_err(|source| Failed::Broken { line: "then".to_owned(), source })
}

/// The report of the newest conference that is over.
fn report(space: &Space) -> Option<&Report> {
    let over = space.view().conferences.rounds().filter_map(|round| round.report.as_ref());
    over.map(|report| &*report.body).last()
}

/// `finding met`: what the declared rule came to for the first subject.
fn finding(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let status = words.one_of(word, AssessmentStatus::ALL, AssessmentStatus::as_str)?;
    equal(Some(status), report(space).and_then(|report| report.findings.first()).map(|finding| finding.status))
}

/// `dissent regulator`: everybody who dissents from the first subject, in order.
fn dissent(space: &Space, words: &mut Words<'_>) -> Found {
    let expected: Vec<&str> = std::iter::from_fn(|| words.maybe()).collect();
    let first = report(space).and_then(|report| report.findings.first());
    let told = first.map(|finding| finding.dissent.iter().map(|dissent| dissent.actor.as_str()).collect());
    equal(Some(expected), told)
}

/// `independence held`: what may be said about it.
fn independence(space: &Space, words: &mut Words<'_>) -> Found {
    let word = words.next()?;
    let claim = words.one_of(word, Claim::ALL, Claim::as_str)?;
    equal(Some(claim), report(space).map(|report| report.independence.claim))
}

/// `label regulator informed`: what its position counts as.
fn label(space: &Space, words: &mut Words<'_>) -> Found {
    let (role, word) = (words.next()?, words.next()?);
    let label = words.one_of(word, Label::ALL, Label::as_str)?;
    let attended = report(space).into_iter().flat_map(|report| &report.attendance);
    let of_role = attended.into_iter().find(|attended| attended.seat.role.as_str() == role);
    equal(Some(label), of_role.map(|attended| attended.label))
}

/// `trigger o-1 kept`: a live trigger or an explicit gap.
fn trigger(space: &Space, words: &mut Words<'_>) -> Found {
    let id = ObligationId::from(words.next()?);
    let state = &space.view().state;
    let obligation = state.obligation(&id);
    let live = state.reentries_of(&id).count();
    let gap = obligation.is_some_and(|obligation| obligation.trigger_gap.is_some());
    match words.next()? {
        "kept" => holds(live > 0 || gap, (live, gap)),
        "gap" => holds(gap, (live, gap)),
        other => Err(words.wrong(format!("a trigger is `kept` or a `gap`, not `{other}`")).into()),
    }
}

fn claim(space: &Space, words: &mut Words<'_>) -> Found {
    let claims = space.view().state.claims_on(&words.next()?.into()).count();
    match words.next()? {
        "accepted" => holds(claims > 0, claims),
        "absent" => holds(claims == 0, claims),
        other => Err(words.wrong(format!("a claim is `accepted` or `absent`, not `{other}`")).into()),
    }
}

/// `outcomes outcome_unknown effect_confirmed`: every outcome on record, in this order.
fn outcomes(space: &Space, words: &mut Words<'_>) -> Found {
    let mut expected = Vec::new();
    while let Some(word) = words.maybe() {
        expected.push(words.one_of(word, AttemptStatus::ALL, AttemptStatus::as_str)?);
    }
    let entries = broken(space.entries())?.into_iter();
    let actual =
        entries.filter_map(|(_, entry)| if let Entry::Outcome(outcome) = entry { Some(outcome.status) } else { None });
    equal(expected, actual.collect())
}

/// `refused stale_version of=target:`: a refusal of this code, and where it is said, of something named like this.
fn refused(space: &Space, words: &mut Words<'_>) -> Found {
    let code = words.next()?;
    let code = words.one_of(code, RefusalCode::ALL, RefusalCode::as_str)?;
    let of = words.named("of");
    let entries = broken(space.entries())?.into_iter();
    let refusals: Vec<(RefusalCode, String)> = entries
        .filter_map(|(_, entry)| if let Entry::Refusal(refusal) = entry { Some(refusal) } else { None })
        .map(|refusal| (refusal.code, refusal.offending.map_or_else(String::new, |offending| offending.to_string())))
        .collect();
    let found = refusals.iter().any(|(known, offending)| *known == code && of.is_none_or(|of| offending.contains(of)));
    holds(found, refusals)
}

/// `trace urgent holds with=overdue`: it is walked from its last record to its first, and goes through this stage.
fn trace(space: &Space, words: &mut Words<'_>) -> Found {
    let view = space.view();
    let kind = words.next()?;
    match words.next()? {
        "holds" => {}
        other => return Err(words.wrong(format!("a trace does not `{other}`")).into()),
    }
    let closes = |change: &Change| matches!(change, Change::SetStatus { status, .. } if !status.is_open());
    let version_of = |wanted: &dyn Fn(&closer_contracts::delta::Delta) -> bool| {
        view.commits.iter().find(|(_, committed)| wanted(&committed.commit.delta)).map(|(version, _)| *version)
    };
    let walked = match kind {
        "ordinary" => {
            version_of(&|delta| delta.changes.iter().any(closes)).map(|version| check_ordinary(&view.chain, version))
        }
        "urgent" => version_of(&|delta| delta.admission_path == AdmissionPath::UrgentRestrictive)
            .map(|version| check_urgent(&view.chain, version)),
        "judgment" => view.attempts.keys().next_back().map(|attempt_id| check_judgment(&view.chain, attempt_id)),
        other => return Err(words.wrong(format!("there is no `{other}` trace")).into()),
    };
    let with = words.named("with").map(|stage| words.one_of(stage, Stage::ALL, Stage::as_str)).transpose()?;
    match walked {
        None => Ok(Some("nothing to walk from".to_owned())),
        Some(Ok(trace)) => {
            let stages: Vec<Stage> = trace.steps.iter().map(|step| step.stage).collect();
            holds(with.is_none_or(|stage| stages.contains(&stage)), stages)
        }
        Some(Err(gap)) => Ok(Some(gap.to_string())),
    }
}
