//! What participants say of a subject: their objections, by whatever digest they can know it, and their positions, which are
//! their own. Spec: §4.1, C6, C9, DEC-38.

use super::is_blocking;
use crate::conference::{self, Objecting};
use crate::view::{Episode, View};
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Dissent, Phase, RolePosition, Stance};
use closer_contracts::branch;
use closer_contracts::delta::{Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActionId, ActorId, DeltaId, Id};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::work::{ActionProposal, ReasonClass, WorkResult};
use closer_contracts::{Fault, Payload};

/// The objections of an answer to a subject, by any of its digests: its own, or that of the proposal or proposition in it.
/// A participant can name what it proposes or reads; the digest of what a service makes of that it cannot know.
pub(crate) fn objections_of(view: &View, actor: &ActorId, result: &WorkResult, subject: &[Digest]) -> Vec<Objecting> {
    let about = result.objections.iter();
    about
        .filter(|objection| branch!("adjudicate.objection_to_this", subject.contains(&objection.subject)))
        .map(|objection| Objecting {
            dissent: Dissent {
                actor: actor.clone(),
                subject: objection.subject,
                reason_class: objection.reason_class,
                text: objection.text.clone(),
            },
            supported: objection.evidence_ids.iter().any(|id| view.evidence.contains_key(id)),
        })
        .collect()
}

/// Everything that an episode's participants object to a subject, bound to the digest that is adjudicated.
pub(super) fn objections(view: &View, episode: &Episode, known_as: &[Digest], adjudicated: Digest) -> Vec<Objecting> {
    let found = match view.conferences.of_episode(&episode.episode_id) {
        Some(round) => conference::objections(view, round, known_as),
        None => {
            let results = episode.results.iter().filter_map(|id| view.results.get(id));
            results
                .flat_map(|result| {
                    let actor = &result.payload.envelope().producer.actor_id;
                    objections_of(view, actor, &result.body, known_as)
                })
                .collect()
        }
    };
    let bound = |objecting: Objecting| Objecting {
        dissent: Dissent { subject: adjudicated, ..objecting.dissent },
        supported: objecting.supported,
    };
    found.into_iter().map(bound).collect()
}

/// Whether an objection stands in the way: its class blocks under the rule, or it is one of fact with evidence behind it.
pub(super) fn stands_in_the_way(view: &View, objecting: &Objecting) -> bool {
    let of_fact = objecting.dissent.reason_class == ReasonClass::Factual && objecting.supported;
    is_blocking(view, objecting.dissent.reason_class) || branch!("adjudicate.supported_objection", of_fact)
}

/// The digests under which an action can be objected to: its logical one, and that of the proposal that it carries out.
pub(super) fn action_known_as(action: &Action) -> Result<(Vec<Digest>, Vec<Id>), Fault> {
    let proposal = ActionProposal {
        operation: action.operation.clone(),
        target: action.target.clone(),
        parameters: action.parameters.clone(),
        expected_postcondition: action.expected_postcondition.clone(),
    };
    let digests = vec![action.logical_digest, closer_contracts::canonical::digest_of(&proposal)?];
    Ok((digests, vec![action.expected_postcondition.id.clone()]))
}

/// The digests under which a delta can be objected to: that of the proposal, and those of the propositions it would accept.
pub(super) fn delta_known_as(delta: &Delta) -> Result<(Vec<Digest>, Vec<Id>), Fault> {
    let claimed = delta.changes.iter().filter_map(|change| {
        if let Change::Add { item } | Change::Revise { item, .. } = change { item.as_claim() } else { None }
    });
    let (mut digests, mut about) = (vec![delta.proposal_digest], Vec::new());
    for claim in claimed {
        digests.push(closer_contracts::canonical::digest_of(&claim.proposition)?);
        about.push((&claim.proposition.proposition_id).into());
    }
    Ok((digests, about))
}

/// The validator's position, and those that the episode's conference took on the subject.
pub(super) fn with_conference(
    view: &View,
    episode: &Episode,
    known_as: &[Digest],
    about: &[Id],
    validator: RolePosition,
) -> Vec<RolePosition> {
    std::iter::once(validator).chain(conference::positions(view, episode, known_as, about)).collect()
}

/// A position is its participant's own: its receipt was produced by that participant, and as far as a conference tells, it
/// holds what it is said to hold. Nobody, a reconciler included, assents for another (§4.1).
pub(super) fn foreign_positions(view: &View, adjudication: &Adjudication, payload: &Payload) -> Vec<Denial> {
    let envelope = payload.envelope();
    let producer = &envelope.producer.actor_id;
    let taken = adjudication.role_positions.iter();
    let others = taken.filter(|position| position.actor != *producer && position.position != Stance::Absent);
    let own = |position: &RolePosition| {
        let author = view.conferences.author_of(&position.receipt).or_else(|| view.chain.author_of(&position.receipt));
        author.as_ref() == Some(&position.actor)
    };
    let code = |position: &RolePosition| match position.position {
        Stance::For => Code::ForeignAssent,
        Stance::Against | Stance::Absent => Code::UnresolvedRef,
    };
    let mut denials: Vec<Denial> = others
        .clone()
        .filter(|position| branch!("adjudicate.position_not_own", !own(position)))
        .map(|position| {
            let reason = "the position rests on no record of the participant whose it is said to be";
            Denial::new(code(position), CheckKind::Authentication, reason).of(&position.actor)
        })
        .collect();
    let episode = envelope.episode_id.as_ref().and_then(|id| view.episodes.get(id));
    let known = subject_known_as(view, adjudication);
    if let (Some(episode), Some((known_as, about))) = (episode, known) {
        let denied = |position: &&RolePosition| {
            let held = conference::is_held_by(view, episode, &position.actor, &known_as, &about);
            branch!("adjudicate.assent_not_given", position.position == Stance::For && held == Some(false))
        };
        denials.extend(others.filter(denied).map(|position| {
            let reason = "the participant's own record does not hold the subject";
            Denial::new(Code::ForeignAssent, CheckKind::Authentication, reason).of(&position.actor)
        }));
    }
    denials
}

/// The digests and ids under which participants know what is adjudicated.
fn subject_known_as(view: &View, adjudication: &Adjudication) -> Option<(Vec<Digest>, Vec<Id>)> {
    let id = &adjudication.subject.id;
    match adjudication.phase {
        Phase::PreAction => {
            let payload_id = view.logical.get(&ActionId::new(id.as_str()))?;
            action_known_as(&view.actions.get(payload_id)?.body).ok()
        }
        Phase::PostOutcome => None,
        Phase::SemanticCommit => delta_known_as(&view.deltas.get(&DeltaId::new(id.as_str()))?.body).ok(),
    }
}
