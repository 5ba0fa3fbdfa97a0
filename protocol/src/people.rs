//! Who may decide, whose answer counts, and who is asked while somebody is away. Spec: SR1, §7.3, DEC-63.
//!
//! An organization is a user whose people decide together: its profile says how many of whom one kind of authority takes.
//! Where it says nothing, one answer decides. A deputy stands in within a mandate of its own; an absence never widens one.

use crate::bench::proposed;
use crate::commit;
use crate::entry::Notice;
use crate::review;
use crate::view::View;
use closer_contracts::audit::{DecisionType, UserDecision};
use closer_contracts::branch;
use closer_contracts::briefcase::Briefcase;
use closer_contracts::canonical;
use closer_contracts::delta::{AuthorityKind, Change, ChangeClass, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, DecisionId, Text};
use closer_contracts::item::Standing;
use closer_contracts::people::{Absence, People, Quorum};
use closer_contracts::refs::{ArtifactRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::review::ReviewReceipt;
use closer_contracts::time::Timestamp;
use closer_state::Derivation;
use imbl::OrdMap;
use std::collections::BTreeSet;

/// One person's answer on the way to a quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// The answer.
    pub reference: ArtifactRef,
    /// What exactly it allows: only answers that allow the same come together.
    pub allows: Digest,
}

/// The answers that count so far, by packet and by the member of the group whose answer it is.
pub type Votes = OrdMap<DecisionId, OrdMap<ActorId, Vote>>;

fn people(view: &View) -> Option<&People> {
    view.state.profile().map(|profile| &profile.people)
}

fn quorum(view: &View, kind: AuthorityKind) -> Option<&Quorum> {
    people(view)?.quorum_of(kind)
}

/// Whether a person's own mandate covers what a packet asks: its class and, where it asks for an action, the operation.
#[must_use]
pub fn covers(view: &View, person: &ActorId, packet: &Briefcase) -> bool {
    let mandates = people(view).into_iter().flat_map(|people| &people.mandate);
    let known = view.state.identity(person);
    let speaks = known
        .is_some_and(|identity| identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::User));
    let mut own = mandates.filter(|mandate| mandate.person == *person);
    speaks
        && own.any(|mandate| {
            let operation = proposed(packet).map(|proposal| &proposal.operation);
            mandate.classes.contains(&packet.decision_class)
                && branch!(
                    "people.mandate_names_operation",
                    operation.is_none_or(|operation| mandate.operations.contains(operation))
                )
        })
}

/// Who is away now, with who stands in.
fn away<'a>(view: &'a View, now: &'a Timestamp) -> impl Iterator<Item = &'a Absence> {
    let absences = people(view).into_iter().flat_map(|people| &people.absence);
    absences.filter(|absence| branch!("people.away_now", absence.from <= *now && *now < absence.to))
}

/// Whom a packet is addressed to in a person's place: the deputy while the person is away, if the deputy may decide it by a
/// mandate of its own; else the person.
#[must_use]
pub fn in_charge(view: &View, person: &ActorId, packet: &Briefcase, now: &Timestamp) -> ActorId {
    let mut stands_in = away(view, now).filter(|absence| absence.person == *person);
    let deputy = stands_in.find(|absence| branch!("people.deputy_covers", covers(view, &absence.deputy, packet)));
    deputy.map_or_else(|| person.clone(), |absence| absence.deputy.clone())
}

/// The notice about a packet, addressed to whoever stands in for its owner.
#[must_use]
pub fn addressed(view: &View, notice: Notice, packet: &Briefcase, now: &Timestamp) -> Notice {
    let Some(owner) = &notice.owner else { return notice };
    let in_charge = in_charge(view, owner, packet, now);
    if in_charge == *owner {
        return notice;
    }
    let text = format!("{}; {owner} is away and {in_charge} stands in", notice.text);
    Notice { owner: Some(in_charge), text: Text::new(text), ..notice }
}

/// The member of a group whose answer this is: the person's own, or the one's it stands in for.
#[must_use]
pub fn seat(view: &View, person: &ActorId, packet: &Briefcase, now: &Timestamp) -> Option<ActorId> {
    let group = &quorum(view, AuthorityKind::UserDecision)?.of;
    if group.contains(person) {
        return Some(person.clone());
    }
    let mut absent = away(view, now).filter(|absence| absence.deputy == *person && group.contains(&absence.person));
    absent
        .find(|_| branch!("people.deputy_has_seat", covers(view, person, packet)))
        .map(|absence| absence.person.clone())
}

/// Why a person's answer to a packet does not count, if it does not.
#[must_use]
pub fn unheard(view: &View, decision: &UserDecision, packet: &Briefcase, now: &Timestamp) -> Option<Denial> {
    let person = &decision.authenticated_issuer.identity;
    let denied = |code, reason: String| Some(Denial::new(code, CheckKind::Authority, reason).of(person));
    let Some(quorum) = quorum(view, AuthorityKind::UserDecision) else {
        let mandated = people(view).is_some_and(|people| !people.mandate.is_empty());
        let outside = mandated && !view.state.is_user(person) && !covers(view, person, packet);
        let reason = "no mandate of this person covers the question; whoever has one answers it";
        return match branch!("bench.no_standing", outside) {
            true => denied(Code::MissingAuthority, reason.to_owned()),
            false => None,
        };
    };
    let seat = seat(view, person, packet, now);
    if branch!("bench.outside_quorum", seat.is_none()) {
        let group: Vec<&str> = quorum.of.iter().map(ActorId::as_str).collect();
        return denied(Code::MissingAuthority, format!("it takes {} of {}", quorum.needed, group.join(", ")));
    }
    let votes = view.votes.get(&packet.decision_id);
    let before = seat.and_then(|seat| votes?.get(&seat));
    let authorizes = decision.decision_type == DecisionType::ScopedAuthorization;
    match branch!("bench.counted_before", authorizes && before.is_some()) {
        true => denied(Code::Duplicate, "this seat has answered; each of the group counts once".to_owned()),
        false => None,
    }
}

/// What an answer allows, for comparing answers of several people.
fn allows(decision: &UserDecision) -> Option<Digest> {
    canonical::digest_of(&(&decision.briefcase_ref, &decision.amendment)).ok()
}

/// Folds an answer that authorizes, where it takes several.
pub(crate) fn fold(view: &mut View, decision: &UserDecision, reference: &ArtifactRef, now: &Timestamp) {
    let asked = crate::bench::packet_of(decision);
    let Some(packet) = view.packets.get(&asked).map(|packet| packet.packet.body.clone()) else { return };
    let seat = seat(view, &decision.authenticated_issuer.identity, &packet, now);
    let (Some(seat), Some(allows)) = (seat, allows(decision)) else { return };
    let vote = Vote { reference: reference.clone(), allows };
    view.votes.entry(asked).or_default().insert(seat, vote);
}

/// How many more people have to allow the same before this answer is authority.
#[must_use]
pub fn missing(view: &View, decision: &UserDecision) -> u32 {
    let Some(quorum) = quorum(view, AuthorityKind::UserDecision) else { return 0 };
    let votes = view.votes.get(&crate::bench::packet_of(decision));
    let allows = allows(decision);
    let same = votes.into_iter().flat_map(OrdMap::values).filter(|vote| Some(vote.allows) == allows).count();
    quorum.needed.saturating_sub(u32::try_from(same).unwrap_or(u32::MAX))
}

/// Whether as many have given this authority as their quorum takes.
fn enough<'a>(quorum: Option<&Quorum>, given: impl Iterator<Item = &'a ActorId>) -> bool {
    let Some(quorum) = quorum else { return true };
    let counted: BTreeSet<&ActorId> = given.filter(|person| quorum.of.contains(person)).collect();
    counted.len() >= quorum.needed as usize
}

/// Whether enough people have declared exactly these changes. A change that permits nothing takes one.
pub(crate) fn declared(
    view: &View,
    delta: &Delta,
    names: impl Fn(&closer_contracts::audit::Declaration) -> bool,
) -> bool {
    if !delta.has(ChangeClass::Normative) {
        return true;
    }
    let naming = view.declarations.values().map(|(_, declaration)| &**declaration).filter(|it| names(it));
    let people = naming.map(|declaration| &declaration.authenticated_issuer.identity);
    branch!("commit.declared_by_enough", enough(quorum(view, AuthorityKind::Declaration), people))
}

/// How changes stand that several people have to declare, before enough of them have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// Who of the group has declared exactly these changes.
    pub declared: Vec<ActorId>,
    /// Who of it has not.
    pub others: Vec<ActorId>,
    /// How many more it takes.
    pub missing: u32,
}

/// How changes wait for more people to declare exactly the same; `None` where it takes nobody more.
#[must_use]
pub fn awaited(view: &View, changes: &[Change], now: &Timestamp) -> Option<Awaited> {
    let quorum = quorum(view, AuthorityKind::Declaration)?;
    if !changes.iter().any(|change| change.class() == ChangeClass::Normative) {
        return None;
    }
    let named = commit::instruction(changes).ok()?;
    let naming = view.declarations.values().map(|(_, declaration)| declaration);
    let naming = naming.filter(|it| commit::in_effect(it, now) && it.success_criteria.contains(&named));
    let people: BTreeSet<&ActorId> = naming.map(|declaration| &declaration.authenticated_issuer.identity).collect();
    let (declared, others): (Vec<ActorId>, Vec<ActorId>) =
        quorum.of.iter().cloned().partition(|person| people.contains(person));
    let missing = quorum.needed.saturating_sub(u32::try_from(declared.len()).unwrap_or(u32::MAX));
    (missing > 0).then_some(Awaited { declared, others, missing })
}

/// The proposals on record that only wait for more people to declare the same, and could be committed now if they did.
#[must_use]
pub fn awaiting<'a>(view: &'a View, now: &Timestamp) -> Vec<(&'a Delta, Awaited)> {
    let mut told: Vec<(&Delta, Awaited)> = Vec::new();
    if quorum(view, AuthorityKind::Declaration).is_none() {
        return told;
    }
    for delta in view.deltas.values().map(|on_record| &*on_record.body) {
        let by_declaration = delta.required_authority_refs.iter().any(|it| it.kind == AuthorityKind::Declaration);
        let again = || told.iter().any(|(other, _)| other.changes == delta.changes);
        if !by_declaration || view.committed.contains_key(&delta.delta_id) || again() {
            continue;
        }
        let awaited = awaited(view, &delta.changes, now).filter(|awaited| !awaited.declared.is_empty());
        if let Some(awaited) = awaited.filter(|_| fits(view, delta, now)) {
            told.push((delta, awaited));
        }
    }
    told
}

/// Whether a proposal could be committed on what is accepted now, were its authority given.
fn fits(view: &View, delta: &Delta, now: &Timestamp) -> bool {
    let current = Delta { parent_state: view.state.reference(), ..delta.clone() };
    let Ok(current) = current.sealed() else { return false };
    let given = current.required_authority_refs.iter().map(|authority| authority.reference.clone()).collect();
    let derivation = Derivation { authorities: given, ..commit::derivation(view, &current, None, now.clone()) };
    closer_state::propose(&view.state, current, &derivation).is_ok()
}

/// Whether the reviewer speaks as the user, alone or with enough others who have authorized the same in review.
pub(crate) fn instructed(view: &View, receipt: &ReviewReceipt) -> bool {
    let Some(quorum) = quorum(view, AuthorityKind::Instruction) else {
        return view.state.is_user(&receipt.reviewer.identity);
    };
    let given = review::given_by(view, receipt.artifact_digest, &receipt.subject, receipt.decision);
    branch!("commit.instructed_by_enough", enough(Some(quorum), given.iter()))
}
