//! What a packet holds: the question in its role's words, and the items that policy releases. Spec: §4.1, §4.3, C5, DEC-79.

use crate::conference::Round;
use crate::view::{Episode, View};
use closer_contracts::Fault;
use closer_contracts::branch;
use closer_contracts::canonical::Canonical;
use closer_contracts::conference::Subject;
use closer_contracts::id::{ActorId, ArtifactId, CategoryId, EvidenceId, Id, Key, Text};
use closer_contracts::item::Item;
use closer_contracts::refs::{ArtifactRef, Plain};
use closer_contracts::refusal::RefusalCode as Code;
use closer_contracts::work::{ContextItem, Question};

/// What may be released for work: the categories that a packet's items belong to (DEC-79).
const CATEGORIES: [&str; 5] = ["obligation", "claim", "constraint", "grant", "evidence"];

/// What each role of the reference configuration is asked to look at (§4.1). Other roles get the question as it stands.
const CHARGES: [(&str, &str); 3] = [
    ("remainder", "Which alternatives are there, and what is left out?"),
    ("investigator", "What does the evidence say, and does the inference follow from it?"),
    ("regulator", "Is this within the goals, the constraints and the authority that is granted?"),
];

/// What a role is asked to look at, before the question itself.
fn charge(role: &Key, question: &Text) -> Text {
    let charge = CHARGES.iter().find(|(named, _)| branch!("work.role_charged", role.as_str() == *named));
    charge.map_or_else(|| question.clone(), |(_, charge)| crate::intake::bounded(&format!("{charge} {question}")))
}

/// The question of a packet: what an obligation leaves open, or what a conference is about.
pub(super) fn question(view: &View, episode: &Episode, role: &Key, round: Option<&Round>) -> Result<Question, Fault> {
    let obligation = view.state.obligation(&episode.obligation_id).ok_or_else(|| {
        Fault::new(Code::UnresolvedRef, "the episode's obligation is not accepted").within(&episode.obligation_id)
    })?;
    let subject_refs = match round {
        Some(round) => round.contract.subjects.iter().map(Subject::id).collect(),
        None => obligation.gap.propositions.iter().map(Id::from).collect(),
    };
    Ok(Question { text: charge(role, &obligation.gap.text), subject_refs })
}

pub(super) fn released(view: &View, recipient: &ActorId) -> Vec<CategoryId> {
    let Some(profile) = view.state.profile() else {
        return Vec::new();
    };
    let rules = profile.disclosure_rules.iter();
    rules
        .filter(|rule| rule.recipient == *recipient && rule.purpose.as_str() == "work")
        .flat_map(|rule| rule.categories.iter().cloned())
        .collect()
}

/// The items of a packet, and the categories that policy holds back. Default deny: what no rule releases is withheld.
pub(super) fn context(
    view: &View,
    episode: &Episode,
    round: Option<&Round>,
    released: &[CategoryId],
) -> Result<(Vec<ContextItem>, Vec<CategoryId>), Fault> {
    let mut items = Vec::new();
    let mut withheld = Vec::new();
    for category in CATEGORIES {
        let candidates = candidates(view, episode, round, category)?;
        let category = CategoryId::from(category);
        match branch!("work.category_released", released.contains(&category)) {
            true => items.extend(candidates),
            false if candidates.is_empty() => {}
            false => withheld.push(category),
        }
    }
    Ok((items, withheld))
}

fn candidates(
    view: &View,
    episode: &Episode,
    round: Option<&Round>,
    category: &str,
) -> Result<Vec<ContextItem>, Fault> {
    let state = &view.state;
    let Some(obligation) = state.obligation(&episode.obligation_id) else {
        return Ok(Vec::new());
    };
    match category {
        "obligation" => {
            let own = item(&obligation.obligation_id, &Item::Obligation(obligation.clone()))?;
            let subjects = round.into_iter().flat_map(|round| round.contract.subjects.iter()).map(subject_item);
            std::iter::once(Ok(own)).chain(subjects).collect()
        }
        "claim" => obligation
            .gap
            .propositions
            .iter()
            .flat_map(|proposition| state.claims_on(proposition))
            .map(|claim| item(claim.item.id(), &claim.item))
            .collect(),
        "constraint" => state
            .constraints_in_force()
            .filter(|constraint| obligation.authority_boundary.contains(&(&constraint.constraint_id).into()))
            .map(|constraint| item(&constraint.constraint_id, &Item::Constraint(constraint.clone())))
            .collect(),
        "grant" => obligation
            .authority_boundary
            .iter()
            .filter_map(|id| state.grant(&closer_contracts::id::GrantId::new(id.as_str())))
            .map(|grant| item(&grant.grant_id, &Item::Grant(grant.clone())))
            .collect(),
        _ => {
            let at_hand = match round {
                Some(round) => evidence_in_scope(round),
                None => evidence_at_hand(view, episode),
            };
            at_hand.into_iter().map(|id| evidence_item(view, &id)).collect()
        }
    }
}

/// The newest evidence of every stream that an event of this episode cites or that its obligation's earlier episodes read.
fn evidence_at_hand(view: &View, episode: &Episode) -> Vec<EvidenceId> {
    let events = episode.causes.iter().filter_map(|cause| cause.event_id.as_ref());
    let cited = events
        .filter_map(|event_id| view.events.get(event_id))
        .flat_map(|event| event.body.evidence_refs.iter().map(|cited| EvidenceId::new(cited.id.as_str())));
    let streams = view.streams_of.get(&episode.obligation_id).into_iter().flatten();
    let newest = streams.filter_map(|stream| view.observed.get(stream)).map(|(_, id)| id.clone());
    let mut ids: Vec<EvidenceId> = cited.chain(newest).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Everybody in a conference starts from the same evidence.
fn evidence_in_scope(round: &Round) -> Vec<EvidenceId> {
    let refs = &round.contract.evidence_scope.snapshot.refs;
    refs.iter().map(|cited| EvidenceId::new(cited.id.as_str())).collect()
}

/// A conference's subject, under the digest that objections and moves are bound to.
fn subject_item(subject: &Subject) -> Result<ContextItem, Fault> {
    let content = match subject {
        Subject::Proposition(proposition) => serde_json::to_value(proposition),
        Subject::Proposal(proposal) => serde_json::to_value(proposal),
    };
    context_item(subject.id(), content.map_err(|error| Fault::schema(error.to_string()))?)
}

fn item(id: impl Into<Id>, content: &Item) -> Result<ContextItem, Fault> {
    let content = serde_json::to_value(content).map_err(|error| Fault::schema(error.to_string()))?;
    context_item(id.into(), content)
}

fn evidence_item(view: &View, id: &EvidenceId) -> Result<ContextItem, Fault> {
    let evidence = view.evidence.get(id).map(|evidence| serde_json::to_value(&*evidence.body));
    let content = evidence.transpose().map_err(|error| Fault::schema(error.to_string()))?.unwrap_or_default();
    context_item(id.into(), content)
}

fn context_item(id: Id, content: serde_json::Value) -> Result<ContextItem, Fault> {
    let content = Canonical::of(Plain(content))?;
    let reference = ArtifactRef { id: ArtifactId::new(id.as_str()), digest: content.digest() };
    Ok(ContextItem { reference, content: content.into_value() })
}
