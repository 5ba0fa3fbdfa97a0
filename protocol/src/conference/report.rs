//! What a conference comes to: who counts as independent, what the evidence says of each subject, who objects to what.
//!
//! Voices are attributed and kept, and never counted. A factual question is answered by its registered sufficiency rule
//! over the relations that somebody pointed out; an objection is carried with its author and class. Spec: §4.1, DEC-38.

use super::proceeding::{Attendance, Claim, Ending, Finding, Independence, Label, Report};
use super::table::{Position, Round, Seen};
use crate::input::Moment;
use crate::view::{Episode, View};
use crate::{delta, sufficiency};
use closer_contracts::adjudication::{Dissent, RolePosition, Stance};
use closer_contracts::branch;
use closer_contracts::conference::{MoveKind, Seat, Subject};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, Id, Key, PropositionId, Text};
use closer_contracts::obligation::AssessmentStatus;
use closer_contracts::work::{EvidenceRelation, ReasonClass, Relation};
use std::collections::{BTreeMap, BTreeSet};

/// The positions of others on this round's subjects that a seat's context had seen when it took its own.
fn seen_before<'a>(view: &'a View, seat: &Seat, position: &Position, subjects: &'a BTreeSet<Id>) -> Vec<&'a Seen> {
    let seen = view.conferences.seen_on(&seat.context, subjects).into_iter();
    seen.filter(|seen| branch!("conference.seen_before_own", seen.place < position.place)).collect()
}

/// What a seat's position counts as.
#[must_use]
pub fn label(view: &View, round: &Round, seat: &Seat) -> Label {
    let Some(position) = round.positions.get(&seat.actor) else {
        return Label::Absent;
    };
    let after = |place: Option<u64>| place.is_some_and(|place| place < position.place);
    let subjects = round.subject_ids();
    let exposed = !seen_before(view, seat, position, &subjects).is_empty();
    let late = after(round.release.as_ref().map(|release| release.place));
    if branch!("conference.informed", exposed || late) {
        return Label::Informed;
    }
    match branch!("conference.late", after(round.seal.as_ref().map(|seal| seal.place))) {
        true => Label::LateUnexposed,
        false => Label::Independent,
    }
}

/// What may be said about the independence of a round's positions.
#[must_use]
pub fn independence(view: &View, round: &Round) -> Independence {
    let counts = |seat: &&Seat| match label(view, round, seat) {
        Label::Independent => true,
        Label::LateUnexposed => branch!("conference.late_counts", round.contract.late_counts),
        Label::Informed | Label::Absent => false,
    };
    let independent: Vec<&Seat> = round.contract.seats.iter().filter(counts).collect();
    let models: BTreeSet<&Key> = independent.iter().map(|seat| &seat.model).collect();
    let subjects = round.subject_ids();
    let carried = round.contract.seats.iter().any(|seat| {
        let seen = view.conferences.seen_on(&seat.context, &subjects);
        seen.iter().any(|seen| seen.reach == super::Reach::Leaked)
    });
    let leaked = view.conferences.leaked(&round.contract.conference_id);
    if branch!("conference.independence_suspended", leaked || carried) {
        let reason = Text::from("a position was seen before its release");
        return Independence { claim: Claim::Suspended, count: 0, reasons: vec![reason] };
    }
    let shared = branch!("conference.model_shared", models.len() < independent.len());
    let count = u32::try_from(if shared { models.len() } else { independent.len() }).unwrap_or(u32::MAX);
    let mut reasons = Vec::new();
    if shared {
        reasons.push(Text::from("one model stands behind several roles, whose names establish nothing"));
    }
    if independent.len() < round.contract.seats.len() {
        reasons.push(Text::from("not every position was taken without having seen another"));
    }
    let claim = match shared || count < 2 {
        true => Claim::NotEstablished,
        false => Claim::Held,
    };
    Independence { claim, count, reasons }
}

/// What a participant holds on a subject, as its own newest record says: `None` where it holds nothing either way.
fn stance(round: &Round, actor: &ActorId, subject: &[Digest], about: &Id) -> Option<(Stance, Text)> {
    let position = round.positions.get(actor)?;
    let newest = round.moves_on(subject).filter(|made| made.body.actor == *actor).last();
    let reason = |text: Option<&Text>, plain: &str| text.cloned().unwrap_or_else(|| Text::from(plain));
    if let Some(made) = newest {
        let body = &made.body;
        return match body.r#move {
            MoveKind::Assert | MoveKind::Support | MoveKind::Narrow | MoveKind::RetainWithReason | MoveKind::Assent => {
                Some((Stance::For, reason(body.reason.as_ref(), "it holds the subject")))
            }
            MoveKind::Challenge => Some((Stance::Against, reason(body.reason.as_ref(), "it objects to the subject"))),
            MoveKind::Retract | MoveKind::RequestEvidence | MoveKind::Defer => None,
        };
    }
    if let Some(objection) = position.body.objections.iter().find(|objection| subject.contains(&objection.subject)) {
        return Some((Stance::Against, objection.text.clone()));
    }
    let proposition = PropositionId::new(about.as_str());
    let related = position.body.assessments.iter().filter(|relation| relation.proposition_id == proposition);
    let relations: Vec<Relation> = related.map(|relation| relation.relation).collect();
    let claims = position.body.claims.iter().any(|claim| claim.proposition.proposition_id == proposition)
        || position.body.action_proposals.iter().any(|proposal| proposal.expected_postcondition.id == *about);
    match (relations.contains(&Relation::Contradicts), relations.contains(&Relation::Supports) || claims) {
        (true, _) => Some((Stance::Against, Text::from("it reads the evidence as contradicting the subject"))),
        (false, true) => Some((Stance::For, Text::from("its initial position holds the subject"))),
        (false, false) => None,
    }
}

/// Whether a participant's own newest record on any of these digests objects to it, or holds nothing.
pub(super) fn holds(round: &Round, actor: &ActorId, subject: &[Digest], about: &Id) -> bool {
    stance(round, actor, subject, about).is_some_and(|(stance, _)| stance == Stance::For)
}

/// The relations that participants pointed out and have not taken back, each once however many say it.
#[must_use]
pub fn relations(view: &View, round: &Round) -> Vec<EvidenceRelation> {
    let mut found: Vec<EvidenceRelation> = Vec::new();
    let mut known = BTreeSet::new();
    for seat in &round.contract.seats {
        let Some(position) = round.positions.get(&seat.actor) else {
            continue;
        };
        let mut own = position.body.assessments.clone();
        for made in round.moves.iter().filter(|made| made.body.actor == seat.actor) {
            if branch!("conference.retracted", made.body.r#move == MoveKind::Retract) {
                let about = subject_id(round, made.body.subject);
                own.retain(|relation| about.as_ref() != Some(&(&relation.proposition_id).into()));
            }
            own.extend(made.body.evidence.iter().cloned());
        }
        for relation in own {
            let relation = sufficiency::resolve(&relation, view);
            if branch!("conference.said_once", known.insert(sufficiency::digest_of(&relation))) {
                found.push(relation);
            }
        }
    }
    found
}

/// The propositions whose every holder has taken them back: nobody proposes them any more.
#[must_use]
pub fn withdrawn(round: &Round, proposition: &PropositionId) -> bool {
    let about: Id = proposition.into();
    let digests = digests_of(round, &about);
    let holders: Vec<&ActorId> = round
        .positions
        .iter()
        .filter(|(_, position)| {
            position.body.claims.iter().any(|claim| claim.proposition.proposition_id == *proposition)
        })
        .map(|(actor, _)| actor)
        .collect();
    let retracted = |actor: &&ActorId| {
        let own = round.moves_on(&digests).filter(|made| made.body.actor == **actor);
        own.last().is_some_and(|made| made.body.r#move == MoveKind::Retract)
    };
    !holders.is_empty() && holders.iter().all(retracted)
}

/// The id of a declared or narrowed subject.
fn subject_id(round: &Round, digest: Digest) -> Option<Id> {
    let declared = round.contract.subjects.iter().find(|subject| subject.digest().ok() == Some(digest));
    declared.map(Subject::id).or_else(|| {
        let narrowed = round.moves.iter().filter(|made| made.body.subject == digest);
        narrowed.filter_map(|made| made.body.narrowed.as_ref()).map(|narrowed| (&narrowed.proposition_id).into()).next()
    })
}

/// The digests of the declared subjects with this id.
fn digests_of(round: &Round, about: &Id) -> Vec<Digest> {
    let subjects = round.contract.subjects.iter().filter(|subject| subject.id() == *about);
    subjects.filter_map(|subject| subject.digest().ok()).collect()
}

/// An objection that stands: who makes it, and whether evidence that it cites bears it out.
#[derive(Debug, Clone, PartialEq)]
pub struct Objecting {
    /// The objection.
    pub dissent: Dissent,
    /// Whether evidence on record is cited for it.
    pub supported: bool,
}

/// The objections of a round's participants to a subject, by its digests, that they have not taken back.
#[must_use]
pub fn objections(view: &View, round: &Round, subject: &[Digest]) -> Vec<Objecting> {
    let mut found = Vec::new();
    for seat in &round.contract.seats {
        let Some(position) = round.positions.get(&seat.actor) else {
            continue;
        };
        let mut own: Vec<Objecting> = crate::adjudicate::objections_of(view, &seat.actor, &position.body, subject);
        for made in round.moves_on(subject).filter(|made| made.body.actor == seat.actor) {
            let body = &made.body;
            if branch!("conference.objection_taken_back", matches!(body.r#move, MoveKind::Retract | MoveKind::Assent)) {
                own.clear();
            }
            if let (MoveKind::Challenge, Some(reason_class), Some(text)) =
                (body.r#move, body.reason_class, &body.reason)
            {
                let cited = body.evidence.iter().any(|relation| view.evidence.contains_key(&relation.evidence_id));
                let dissent =
                    Dissent { actor: seat.actor.clone(), subject: body.subject, reason_class, text: text.clone() };
                own.push(Objecting { dissent, supported: cited });
            }
        }
        found.extend(own);
    }
    found
}

/// What is objected to a subject: said objections, and readings of the same evidence against what others hold of the very
/// same proposition. Another wording about another proposition is no dissent.
fn dissent(view: &View, round: &Round, subject: &Subject, digest: Digest) -> Vec<Dissent> {
    let mut found: Vec<Dissent> =
        objections(view, round, &[digest]).into_iter().map(|objecting| objecting.dissent).collect();
    let about = subject.id();
    let stances: BTreeMap<&ActorId, (Stance, Text)> = round
        .contract
        .seats
        .iter()
        .filter_map(|seat| Some((&seat.actor, stance(round, &seat.actor, &[digest], &about)?)))
        .collect();
    let held = stances.values().any(|(stance, _)| *stance == Stance::For);
    for (actor, (against, text)) in stances {
        let new = !found.iter().any(|dissent| dissent.actor == *actor);
        if branch!("conference.same_subject_opposed", held && against == Stance::Against) && new {
            let (actor, reason_class) = (actor.clone(), ReasonClass::Factual);
            found.push(Dissent { actor, subject: digest, reason_class, text });
        }
    }
    found
}

fn finding(view: &View, round: &Round, subject: &Subject, at: &Moment) -> Result<Finding, Fault> {
    let digest = subject.digest()?;
    let status = match subject {
        Subject::Proposal(_) => AssessmentStatus::Unassessed,
        Subject::Proposition(proposition) => {
            let id = &proposition.proposition_id;
            let rule = view.state.obligation(&round.contract.obligation_id).map(|o| delta::rule_for(view, o, id));
            let rule = rule.and_then(|reference| view.state.rule(&reference));
            let relations = relations(view, round);
            rule.map_or(AssessmentStatus::Unassessed, |rule| sufficiency::assess(rule, id, &relations, view, at))
        }
    };
    Ok(Finding { subject: subject.id(), digest, status, dissent: dissent(view, round, subject, digest) })
}

/// What a round comes to under its declared rule, at this moment.
///
/// # Errors
/// `schema_invalid` when a subject has no canonical form.
pub fn report(view: &View, round: &Round, ending: Ending, at: &Moment) -> Result<Report, Fault> {
    let subjects = round.subject_ids();
    let mut places: Vec<u64> = round.positions.values().map(|position| position.place).collect();
    places.sort_unstable();
    let attendance = round.contract.seats.iter().map(|seat| {
        let position = round.positions.get(&seat.actor);
        let order = position.and_then(|position| places.iter().position(|place| *place == position.place));
        let seen = view.conferences.seen_on(&seat.context, &subjects).into_iter().map(|seen| seen.item.clone());
        let exposures: BTreeMap<_, _> = seen.map(|item| ((item.id.clone(), item.digest), item)).collect();
        Attendance {
            seat: seat.clone(),
            label: label(view, round, seat),
            order: order.and_then(|order| u32::try_from(order + 1).ok()),
            exposures: exposures.into_values().collect(),
        }
    });
    let findings = round.contract.subjects.iter().map(|subject| finding(view, round, subject, at));
    Ok(Report {
        ending,
        basis: round.contract.basis,
        attendance: attendance.collect(),
        independence: independence(view, round),
        findings: findings.collect::<Result<_, _>>()?,
    })
}

/// The positions that an episode's conference took on a subject, each with the participant's own newest record as receipt.
/// Who holds nothing has no position, and who was absent is absent: neither is assent.
#[must_use]
pub fn positions(view: &View, episode: &Episode, subject: &[Digest], about: &[Id]) -> Vec<RolePosition> {
    let Some(round) = view.conferences.of_episode(&episode.episode_id) else {
        return Vec::new();
    };
    let taken = |seat: &Seat| {
        let (actor, role) = (seat.actor.clone(), seat.role.clone());
        let Some(position) = round.positions.get(&seat.actor) else {
            let receipt = round.seal.as_ref()?.reference.clone();
            let reason = Text::from("it had said nothing when the positions were sealed");
            return Some(RolePosition { actor, role, position: Stance::Absent, reason, receipt });
        };
        let (stance, reason) = about.iter().find_map(|about| stance(round, &seat.actor, subject, about))?;
        let newest = round.moves_on(subject).filter(|made| made.body.actor == seat.actor).last();
        let receipt = newest.map_or_else(|| position.reference(), |made| made.reference.clone());
        Some(RolePosition { actor, role, position: stance, reason, receipt })
    };
    round.contract.seats.iter().filter_map(taken).collect()
}
