//! What of the record bears on a purpose, by category, before policy is asked. Selecting is not releasing.

use super::context_item;
use crate::catalogue;
use crate::coalition;
use crate::conference::{Round, evidence_shared};
use crate::incident::{self, Case};
use crate::view::{Episode, View};
use closer_contracts::conference::Subject;
use closer_contracts::envelope::Body;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ArtifactId, CategoryId, EvidenceId, GrantId, Id, Key, PayloadId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::Obligation;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::work::ContextItem;

/// What a recipient was handed or answered itself; who may read it is told by whom it was issued to, not by a category.
pub(super) const OWN: &str = "own";

/// The category of what a conference shares: released positions, and the moves on them.
const POSITION: &str = "position";

/// Items by category; a category stands here whether or not it holds anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates(Vec<(CategoryId, Vec<ContextItem>)>);

impl Candidates {
    /// What bears on the work of an episode: its obligation, the claims and constraints on it, the grants that bound it and
    /// the evidence at hand. In a conference everybody starts from its declared subjects and evidence instead (§4.1).
    pub(crate) fn for_work(
        view: &View,
        episode: &Episode,
        obligation: &Obligation,
        round: Option<&Round>,
        role: &Key,
    ) -> Result<Self, Fault> {
        let state = &view.state;
        let claims = obligation.gap.propositions.iter().flat_map(|proposition| state.claims_on(proposition));
        let constraints = state
            .constraints_in_force()
            .filter(|constraint| obligation.authority_boundary.contains(&(&constraint.constraint_id).into()));
        let grants = obligation.authority_boundary.iter().filter_map(|id| state.grant(&GrantId::new(id.as_str())));
        let mut candidates = Self::default();
        let subjects = round.into_iter().flat_map(|round| round.contract.subjects.iter()).map(subject);
        let asked = std::iter::once(item(&Item::Obligation(obligation.clone()))).chain(subjects);
        candidates.add("obligation", asked)?;
        candidates.add("claim", claims.map(|claim| item(&claim.item)))?;
        candidates.add("constraint", constraints.map(|constraint| item(&Item::Constraint(constraint.clone()))))?;
        candidates.add("grant", grants.map(|grant| item(&Item::Grant(grant.clone()))))?;
        let coalition = coalition::of(view, &episode.obligation_id);
        let skills = coalition.map(|coalition| catalogue::skills_for(view, &coalition.needs, role)).unwrap_or_default();
        if !skills.is_empty() {
            candidates.add("skill", skills.into_iter().map(|skill| item(&Item::Skill(skill.clone()))))?;
        }
        let given = round.map_or_else(|| at_hand(view, episode), evidence_shared);
        candidates.add("evidence", given.iter().map(|id| evidence(view, id)))?;
        if let Some((round, release)) = round.and_then(|round| Some((round, round.release.as_ref()?))) {
            let positions = release.body.positions.iter();
            let positions = positions.map(|released| anything(Id::new(released.position.id.as_str()), released));
            let moves = round.moves.iter().map(|made| anything(Id::new(made.reference.id.as_str()), &*made.body));
            candidates.add(POSITION, positions.chain(moves))?;
        }
        Ok(candidates)
    }

    /// The record as a whole: what is accepted, observed, committed, confessed and over-disclosed.
    pub(crate) fn of_record(view: &View) -> Result<Self, Fault> {
        let accepted = [
            ItemKind::Goal,
            ItemKind::Constraint,
            ItemKind::Grant,
            ItemKind::Claim,
            ItemKind::Method,
            ItemKind::Obligation,
            ItemKind::Dependency,
        ];
        let mut candidates = Self::default();
        for kind in accepted {
            candidates.add(kind.as_str(), view.state.items(kind).map(|accepted| item(&accepted.item)))?;
        }
        let receipts = view.commits.values().filter_map(|committed| committed.receipt.as_ref());
        candidates.add("evidence", view.evidence.keys().map(|id| evidence(view, id)))?;
        candidates.add("receipt", receipts.map(|receipt| anything((&receipt.receipt_id).into(), &**receipt)))?;
        let confessions = view.confessions.values();
        candidates.add(
            "confession",
            confessions.map(|(_, confession)| anything((&confession.confession_id).into(), &**confession)),
        )?;
        let report = |case: &Case| anything((&case.opened.incident_id).into(), &incident::report(view, case));
        candidates.add("incident", view.incidents.values().map(|case| report(case)))?;
        Ok(candidates)
    }

    /// Those with one of these ids, and the payloads among them that are in no category.
    pub(crate) fn only(&self, view: &View, ids: &[ArtifactId]) -> Result<Self, Fault> {
        let mut chosen = Self::default();
        for (category, items) in &self.0 {
            let items: Vec<_> = items.iter().filter(|item| ids.contains(&item.reference.id)).cloned().collect();
            if !items.is_empty() {
                chosen.0.push((category.clone(), items));
            }
        }
        let payloads = ids.iter().filter_map(|id| view.chain.on_record(&PayloadId::new(id.as_str())));
        let own: Vec<_> =
            payloads.filter(|payload| matches!(payload.body(), Body::Work(_) | Body::Result(_))).collect();
        if !own.is_empty() {
            chosen.add(OWN, own.into_iter().map(|payload| anything(payload.id().into(), payload.envelope())))?;
        }
        Ok(chosen)
    }

    /// The category that an item with this id is released under.
    pub(crate) fn category_of_id(&self, id: &ArtifactId) -> Option<&CategoryId> {
        let holds = |items: &[ContextItem]| items.iter().any(|item| item.reference.id == *id);
        self.0.iter().find(|(_, items)| holds(items)).map(|(category, _)| category)
    }

    fn add(
        &mut self,
        category: &str,
        items: impl IntoIterator<Item = Result<ContextItem, Fault>>,
    ) -> Result<(), Fault> {
        let items = items.into_iter().collect::<Result<_, _>>()?;
        self.0.push((CategoryId::from(category), items));
        Ok(())
    }

    /// The categories with their items.
    pub(crate) fn by_category(&self) -> impl Iterator<Item = (&CategoryId, &[ContextItem])> {
        self.0.iter().map(|(category, items)| (category, items.as_slice()))
    }

    /// The category that an item is released under; none for what is not among the candidates.
    pub(crate) fn category_of(&self, reference: &ArtifactRef) -> Option<&CategoryId> {
        let holds = |items: &[ContextItem]| items.iter().any(|item| item.reference == *reference);
        self.0.iter().find(|(_, items)| holds(items)).map(|(category, _)| category)
    }
}

/// Whether this is an older observation of a stream that concerns the obligation: it bears on it as the newest does.
pub(super) fn observed_before(view: &View, obligation: &Obligation, reference: &ArtifactRef) -> bool {
    let id = EvidenceId::new(reference.id.as_str());
    let concerns = view.evidence.get(&id).is_some_and(|known| {
        let stream = &known.body.target_binding.observation_sequence_ref;
        view.streams_of.get(&obligation.obligation_id).is_some_and(|streams| streams.contains(stream))
    });
    concerns && evidence(view, &id).is_ok_and(|item| item.reference == *reference)
}

/// The newest evidence of every stream that an event of this episode cites or that its obligation's earlier episodes read.
pub(crate) fn at_hand(view: &View, episode: &Episode) -> Vec<EvidenceId> {
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

/// A conference's subject, under the digest that objections and moves are bound to.
fn subject(subject: &Subject) -> Result<ContextItem, Fault> {
    match subject {
        Subject::Proposition(proposition) => anything(subject.id(), proposition),
        Subject::Proposal(proposal) => anything(subject.id(), proposal),
    }
}

fn anything(id: Id, content: &impl serde::Serialize) -> Result<ContextItem, Fault> {
    context_item(id, serde_json::to_value(content).map_err(|error| Fault::schema(error.to_string()))?)
}

pub(super) fn item(content: &Item) -> Result<ContextItem, Fault> {
    let id = content.id();
    context_item(id, serde_json::to_value(content).map_err(|error| Fault::schema(error.to_string()))?)
}

pub(super) fn evidence(view: &View, id: &EvidenceId) -> Result<ContextItem, Fault> {
    let evidence = view.evidence.get(id).map(|evidence| serde_json::to_value(&*evidence.body));
    let content = evidence.transpose().map_err(|error| Fault::schema(error.to_string()))?.unwrap_or_default();
    context_item(Id::from(id), content)
}
