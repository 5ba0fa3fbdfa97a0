//! What happens: one line, one thing that somebody or something does.

use super::Failed;
use super::given::Cast;
use super::incident;
use super::inquiry;
use super::words::{Meaning, Unreadable, Words};
use crate::founding::plan_target;
use crate::space::Broken;
use crate::world::Mode;
use closer_contracts::Digest;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, ReconciliationDisposition, ReconciliationReceipt, RestrictiveAction};
use closer_contracts::auth::SigningScope;
use closer_contracts::delta::{AdmissionPath, AuthorityRef, Change, Delta};
use closer_contracts::id::DeltaId;
use closer_contracts::item::AffectedScope;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, TargetPattern};
use closer_protocol::episode::Next;
use closer_protocol::input::Input;

pub(super) type Done = Result<(), Broken>;
type Happens = fn(&mut Cast, &mut Words<'_>) -> Result<Done, Unreadable>;

/// What can happen, and how it is said:
///
/// ```text
/// event.observed ENTITY KIND            event.redelivered               evidence.observed
/// target.shows plan=P                   target.answers MODE             effect.answers MODE
/// episodes.run                          episode.opened O                episode.reached STAGE        episode.finished
/// effect.held_back                      effect.sent                     process.crashed              time.passed 10s
/// ownership.transferred O [to=A] [lease=60s]    handoff.offered O to=A    handoff.accepted [by=A]
/// restriction.issued grant G|space|operation OP|target [account=A] [operation=OP]|obligation O [by=I]
/// reconciliation.issued DISPOSITION     restriction.lifted              decision.given KIND
/// incident.reported ITEM [to=A]         incident.notified
/// incident.answered ANSWER [by=A]       incident.reconciled
/// delta.proposed D [obligation=O] owner=A|status=STATUS
/// delta.endorsed D                      delta.committed D
/// conference.opened                     conference.reached sealing|release|moves
/// conference.concluded                  conference.finished
/// move.made ROLE MOVE [by=A]            position.read ROLE by=ROLE                   position.leaked ROLE to=ROLE
/// ```
const VOCABULARY: &[Meaning<Happens>] = &[
    ("event.observed", |cast, words| Ok(event(cast, words.next()?, words.next()?))),
    ("event.redelivered", |cast, _| Ok(redeliver(cast))),
    ("evidence.observed", |cast, _| Ok(cast.space.observe(&plan_target(), Some("o-1")).map(drop))),
    ("target.shows", show),
    ("target.answers", |cast, words| {
        cast.space.world.observe_mode = mode(words)?;
        Ok(Ok(()))
    }),
    ("effect.answers", |cast, words| {
        cast.space.world.effect_mode = mode(words)?;
        Ok(Ok(()))
    }),
    ("episodes.run", |cast, _| Ok(cast.space.run())),
    ("episode.opened", |cast, words| Ok(open(cast, words.next()?))),
    ("episode.reached", |cast, words| Ok(reach(cast, words.next()?))),
    ("episode.finished", |cast, _| Ok(episode(cast).and_then(|id| cast.space.finish(&id).map(drop)))),
    ("effect.held_back", |cast, _| {
        cast.space.sends_at_once = false;
        Ok(Ok(()))
    }),
    ("effect.sent", |cast, _| Ok(cast.space.send())),
    ("process.crashed", |cast, _| Ok(cast.space.crash())),
    ("time.passed", pass),
    ("ownership.transferred", transfer),
    ("handoff.offered", offer),
    ("handoff.accepted", accept),
    ("restriction.issued", restrict),
    ("reconciliation.issued", |cast, words| {
        let word = words.next()?;
        let disposition = words.one_of(word, ReconciliationDisposition::ALL, ReconciliationDisposition::as_str)?;
        Ok(reconcile(cast, disposition))
    }),
    ("restriction.lifted", |cast, _| Ok(lift(cast))),
    ("decision.given", |cast, words| {
        let word = words.next()?;
        Ok(decide(cast, words.one_of(word, DecisionType::ALL, DecisionType::as_str)?))
    }),
    ("incident.reported", incident::report),
    ("incident.notified", |cast, _| Ok(incident::notify(cast))),
    ("incident.answered", incident::answer),
    ("incident.reconciled", |cast, _| Ok(incident::reconcile(cast))),
    ("delta.proposed", propose_named),
    ("delta.endorsed", |cast, words| Ok(endorse(cast, words.next()?))),
    ("delta.committed", |cast, words| Ok(commit(cast, words.next()?))),
    ("conference.opened", |cast, _| Ok(inquiry::open(cast))),
    ("conference.reached", inquiry::reach),
    ("conference.concluded", |cast, _| Ok(inquiry::conclude(cast))),
    ("conference.finished", |cast, _| Ok(inquiry::finish(cast))),
    ("move.made", inquiry::make),
    ("position.read", inquiry::read),
    ("position.leaked", inquiry::leak),
];

/// Carries out one line.
pub(super) fn take(cast: &mut Cast, line: &str) -> Result<(), Failed> {
    let mut words = Words::of(line);
    let done = words.meaning(VOCABULARY)?(cast, &mut words)?;
    words.end()?;
    done.map_err(|source| Failed::Broken { line: line.to_owned(), source })
}

pub(super) fn stuck(reason: impl Into<String>) -> Broken {
    Broken::Stuck(reason.into())
}

fn mode(words: &mut Words<'_>) -> Result<Mode, Unreadable> {
    let word = words.next()?;
    words.one_of(word, Mode::ALL, Mode::as_str)
}

fn show(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let plan = words.named("plan").ok_or_else(|| words.wrong("the target shows a plan"))?;
    cast.space.world.set(&plan_target(), "plan", plan);
    Ok(Ok(()))
}

fn pass(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let word = words.next()?;
    Ok(cast.space.pass(words.duration(word)?))
}

fn transfer(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (obligation, owner) = (words.next()?, words.named("to").unwrap_or("closer.planner"));
    let lease_ms = words.named("lease").map(|lease| words.duration(lease)).transpose()?;
    let lease_expiry = lease_ms.map(|lease_ms| cast.space.moment().now.plus_ms(lease_ms));
    Ok(cast.space.transfer(obligation, owner, lease_expiry).map(drop))
}

fn offer(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (obligation, recipient) = (words.next()?, words.named("to"));
    let recipient = recipient.ok_or_else(|| words.wrong("a handoff names its recipient"))?;
    let offered = cast.space.contract(&[], &[], &[]).and_then(|contract| {
        let terms = cast.space.terms(obligation, recipient, &contract)?;
        cast.handoff = Some(terms.handoff_id.clone());
        cast.space.offer(terms)
    });
    Ok(offered.map(drop))
}

fn accept(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let by = words.named("by");
    let handoff_id = cast.handoff.clone().ok_or_else(|| words.wrong("nothing was offered"))?;
    let accepted = cast.space.consent_to(&handoff_id).and_then(|consent| {
        let recipient = consent.recipient_ref.to_string();
        cast.space.consent(consent, by.unwrap_or(&recipient))
    });
    Ok(accepted.map(drop))
}

fn restrict(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let action = restriction(words)?;
    let issuer = words.named("by").unwrap_or("issuer-1");
    Ok(cast.space.restrict(issuer, action).map(drop))
}

fn propose_named(cast: &mut Cast, words: &mut Words<'_>) -> Result<Done, Unreadable> {
    let (name, obligation) = (words.next()?, words.named("obligation").unwrap_or("o-1"));
    Ok(match (words.named("owner"), words.named("status")) {
        (Some(owner), None) => {
            let change = Change::SetOwner { obligation_id: obligation.into(), responsible_owner: owner.into() };
            propose(cast, name, obligation, vec![change], Vec::new())
        }
        (None, Some("active")) => reopen(cast, name, obligation),
        (None, Some(word)) => {
            let to = words.one_of(word, ObligationStatus::ALL, ObligationStatus::as_str)?;
            propose(cast, name, obligation, vec![status(obligation, to)], Vec::new())
        }
        (None | Some(_), _) => return Err(words.wrong("a delta changes an owner or a status")),
    })
}

fn event(cast: &mut Cast, entity: &str, change_kind: &str) -> Done {
    let payload = cast.space.event_payload(entity, change_kind, Vec::new())?;
    cast.event = Some(payload.clone());
    cast.space.submit_payload(payload).map(drop)
}

fn redeliver(cast: &mut Cast) -> Done {
    let payload = cast.event.clone().ok_or_else(|| stuck("no event was observed"))?;
    cast.space.submit_payload(payload).map(drop)
}

fn open(cast: &mut Cast, obligation: &str) -> Done {
    cast.episode = Some(cast.space.open(obligation)?);
    Ok(())
}

pub(super) fn episode(cast: &Cast) -> Result<closer_contracts::id::EpisodeId, Broken> {
    cast.episode.clone().ok_or_else(|| stuck("no episode was opened by name"))
}

/// The word for a stage.
fn named(next: &Next) -> &'static str {
    match next {
        Next::Route { .. } => "route",
        Next::Work { .. } => "work",
        Next::Ask { .. } => "answer",
        Next::Convene { .. } | Next::Confer { .. } => "conference",
        Next::Act { .. } | Next::Again { .. } => "action",
        Next::Assess { .. } => "assessment",
        Next::Dispatch { .. } => "dispatch",
        Next::Await { .. } => "outcome",
        Next::Readback { .. } => "readback",
        Next::Judge { .. } => "judgment",
        Next::AskUser { .. } => "bench",
        Next::HandOver { .. } => "handoff",
        Next::Distil => "delta",
        Next::Endorse { .. } => "endorsement",
        Next::Commit { .. } => "commit",
        Next::End { .. } => "end",
        Next::Ended => "ended",
    }
}

fn reach(cast: &mut Cast, stage: &str) -> Done {
    let episode_id = episode(cast)?;
    for _ in 0..60 {
        let next = cast.space.next(&episode_id)?;
        match (named(&next) == stage, next == Next::Ended) {
            (true, _) => return Ok(()),
            (false, true) => break,
            (false, false) => drop(cast.space.advance(&episode_id)?),
        }
    }
    Err(stuck(format!("the episode never reaches `{stage}`")))
}

fn restriction(words: &mut Words<'_>) -> Result<RestrictiveAction, Unreadable> {
    let exactly = TargetPattern::exactly(&plan_target());
    Ok(match words.next()? {
        "grant" => RestrictiveAction::RevokeGrant(words.next()?.into()),
        "space" => RestrictiveAction::SuspendEligibility(AffectedScope::Space {}),
        "operation" => {
            RestrictiveAction::SuspendEligibility(AffectedScope::Operation { operation: words.next()?.into() })
        }
        "target" => {
            let account = words.named("account").map_or(exactly.account.clone(), Into::into);
            let operation = words.named("operation").map(Into::into);
            let targets = TargetPattern { account, ..exactly };
            RestrictiveAction::SuspendEligibility(AffectedScope::Target { operation, targets })
        }
        "obligation" => {
            RestrictiveAction::SuspendEligibility(AffectedScope::Obligation { obligation_id: words.next()?.into() })
        }
        other => return Err(words.wrong(format!("`{other}` is no scope"))),
    })
}

/// The newest urgent receipt.
fn urgent(cast: &Cast) -> Result<ArtifactRef, Broken> {
    let commits = cast.space.view().commits.values();
    let mut urgent =
        commits.rev().filter(|committed| committed.commit.delta.admission_path == AdmissionPath::UrgentRestrictive);
    urgent.find_map(|committed| committed.receipt_ref.clone()).ok_or_else(|| stuck("nothing was restricted"))
}

fn reconcile(cast: &mut Cast, disposition: ReconciliationDisposition) -> Done {
    let receipt = ReconciliationReceipt {
        receipt_id: cast.space.fresh("reconciliation").as_str().into(),
        urgent_commit_ref: urgent(cast)?,
        assessment_ref: "assessment-1".into(),
        disposition,
        justification: "It was looked at.".into(),
        evidence_refs: Vec::new(),
        issued_at: cast.space.moment().now,
        authority_ref: "user".into(),
    };
    let user = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
    cast.space.submit_artifact(receipt, user, SigningScope::ReconciliationReceipt).map(drop)
}

fn lift(cast: &mut Cast) -> Done {
    let urgent_receipt = urgent(cast)?;
    let restriction_id =
        cast.space.view().state.restrictions_in_force().next().map(|restriction| restriction.restriction_id.clone());
    let restriction_id = restriction_id.ok_or_else(|| stuck("nothing is restricted"))?;
    let change = Change::LiftRestriction { restriction_id, urgent_receipt, reason: "Reassessed.".into() };
    let authority = cast.space.instruct(std::slice::from_ref(&change))?;
    propose(cast, "lift", "o-1", vec![change], vec![authority])?;
    endorse(cast, "lift")?;
    commit(cast, "lift")
}

fn decide(cast: &mut Cast, decision_type: DecisionType) -> Done {
    let newest = cast.space.view().packets.iter().max_by_key(|(_, packet)| packet.packet.admitted_at.clone());
    let decision_id = newest.map(|(decision_id, _)| decision_id.clone()).ok_or_else(|| stuck("nothing is asked"))?;
    cast.space.answer(&decision_id, decision_type).map(drop)
}

fn status(obligation: &str, status: ObligationStatus) -> Change {
    let reason = "It was decided.".into();
    Change::SetStatus { obligation_id: obligation.into(), status, successor: None, reason }
}

/// A closed obligation is reopened with a trigger of its own (DEC-29).
fn reopen(cast: &mut Cast, name: &str, obligation: &str) -> Done {
    let (_, reentries) = crate::founding::obligation(obligation, "service-a");
    let reentry_id = cast.space.fresh("reentry");
    let reentries =
        reentries.into_iter().map(|reentry| Reentry { reentry_id: reentry_id.as_str().into(), ..reentry }).collect();
    let triggers = Change::SetTriggers { obligation_id: obligation.into(), reentries, trigger_gap: None };
    propose(cast, name, obligation, vec![status(obligation, ObligationStatus::Active), triggers], Vec::new())
}

fn propose(
    cast: &mut Cast,
    name: &str,
    obligation: &str,
    changes: Vec<Change>,
    authorities: Vec<AuthorityRef>,
) -> Done {
    let delta = Delta {
        delta_id: DeltaId::new(name),
        parent_state: cast.space.view().state.reference(),
        changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: authorities,
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()?;
    cast.deltas.insert(name.to_owned(), delta.clone());
    let payload = cast.space.write(ProducerRole::Distiller, &[obligation], delta)?;
    cast.space.submit_payload(payload).map(drop)
}

fn endorse(cast: &mut Cast, name: &str) -> Done {
    let delta = cast.deltas.get(name).cloned().ok_or_else(|| stuck(format!("no delta `{name}` was proposed")))?;
    cast.space.endorse(&delta, Disposition::Endorsed).map(drop)
}

fn commit(cast: &mut Cast, name: &str) -> Done {
    cast.space.submit(Input::Commit { delta_id: DeltaId::new(name) }).map(drop)
}
