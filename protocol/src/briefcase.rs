//! The Briefcase: four views of what is on record, computed whenever they are looked at. Spec: §7.3.
//!
//! Leads are possibilities that nobody has assessed, Investigations the work that is under way or due, Briefs what was
//! assessed, The Bench what waits for the user. Nothing passes through them in turn and nothing is kept in them: an item
//! shows where the record puts it. Cards group related questions; each question keeps its own packet, deadline and answer.

use crate::bench;
use crate::view::View;
use closer_contracts::branch;
use closer_contracts::briefcase::{DecisionClass, PacketStatus};
use closer_contracts::id::{ActorId, ClaimId, DecisionId, EpisodeId, ObligationId, PropositionId, Text};
use closer_contracts::item::ItemKind;
use closer_contracts::obligation::AssessmentStatus;
use closer_contracts::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A possibility that a participant pointed out and nobody has assessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The obligation it came up for.
    pub obligation_id: ObligationId,
    /// What may be so.
    pub proposition_id: PropositionId,
    /// In words.
    pub text: Text,
    /// Who pointed it out.
    pub from: ActorId,
}

/// Work that is under way or due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Investigation {
    /// The obligation.
    pub obligation_id: ObligationId,
    /// The episode under way; `None` where it is due and waits for its turn.
    pub episode_id: Option<EpisodeId>,
    /// Why.
    pub reasons: Vec<Text>,
}

/// What was assessed about an open obligation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The obligation.
    pub obligation_id: ObligationId,
    /// What was assessed.
    pub proposition_id: PropositionId,
    /// Where its resolution condition stands, where it is one.
    pub status: Option<AssessmentStatus>,
    /// The accepted claims about it.
    pub claims: Vec<ClaimId>,
}

/// Related questions on one card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// What is asked.
    pub decision_class: DecisionClass,
    /// What the questions have in common: the operation, or the question itself.
    pub about: Text,
    /// The packets, each answered on its own.
    pub decision_ids: Vec<DecisionId>,
    /// Every obligation that an answer is for.
    pub obligation_ids: BTreeSet<ObligationId>,
    /// The earliest of their deadlines (DEC-61).
    pub deadline: Option<Timestamp>,
    /// Whether a deadline has passed.
    pub is_overdue: bool,
}

/// The four views.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Briefcase {
    /// Possibilities.
    pub leads: Vec<Lead>,
    /// Casework.
    pub investigations: Vec<Investigation>,
    /// Formed assessments.
    pub briefs: Vec<Brief>,
    /// What the user has to judge.
    pub bench: Vec<Card>,
}

/// The four views of what is on record now.
#[must_use]
pub fn briefcase(view: &View) -> Briefcase {
    Briefcase { leads: leads(view), investigations: investigations(view), briefs: briefs(view), bench: cards(view) }
}

fn is_open(view: &View, id: &ObligationId) -> bool {
    view.state.obligation(id).is_some_and(|obligation| obligation.status.is_open())
}

fn leads(view: &View) -> Vec<Lead> {
    let mut assessed: BTreeSet<&PropositionId> = BTreeSet::new();
    for result in view.results.values() {
        assessed.extend(result.body.assessments.iter().map(|relation| &relation.proposition_id));
    }
    let mut leads: BTreeMap<(ObligationId, PropositionId), Lead> = BTreeMap::new();
    for result in view.results.values() {
        let obligations = result.payload.envelope().obligation_ids.iter().filter(|id| is_open(view, id));
        for obligation_id in obligations {
            for claim in &result.body.claims {
                let id = &claim.proposition.proposition_id;
                let known = assessed.contains(id) || view.state.claims_on(id).next().is_some();
                if branch!("briefcase.lead_assessed", known) {
                    continue;
                }
                let lead = Lead {
                    obligation_id: obligation_id.clone(),
                    proposition_id: id.clone(),
                    text: Text::new(format!("{} of {}", claim.proposition.predicate, claim.proposition.subject)),
                    from: result.payload.envelope().producer.actor_id.clone(),
                };
                leads.insert((obligation_id.clone(), id.clone()), lead);
            }
        }
    }
    leads.into_values().collect()
}

fn investigations(view: &View) -> Vec<Investigation> {
    let under_way = view.under_way.iter().map(|(obligation_id, episode_id)| Investigation {
        obligation_id: obligation_id.clone(),
        episode_id: Some(episode_id.clone()),
        reasons: view
            .episodes
            .get(episode_id)
            .map_or_else(Vec::new, |episode| episode.causes.iter().map(|cause| cause.reason.clone()).collect()),
    });
    let due = view.eligible.iter().filter(|(id, _)| !view.under_way.contains_key(*id) && is_open(view, id));
    let due = due.map(|(obligation_id, causes)| Investigation {
        obligation_id: obligation_id.clone(),
        episode_id: None,
        reasons: causes.iter().map(|cause| cause.reason.clone()).collect(),
    });
    let all = under_way.chain(due);
    all.filter(|work| branch!("briefcase.work_is_open", is_open(view, &work.obligation_id))).collect()
}

fn briefs(view: &View) -> Vec<Brief> {
    let mut briefs = Vec::new();
    let obligations = view
        .state
        .items(ItemKind::Obligation)
        .filter_map(|accepted| view.state.obligation(&ObligationId::new(accepted.item.id().as_str())));
    for obligation in obligations.filter(|obligation| obligation.status.is_open()) {
        let conditions = &obligation.resolution_conditions;
        let status = |id: &PropositionId| {
            let condition = conditions.iter().find(|condition| condition.proposition == *id)?;
            Some(condition.assessment_status)
        };
        let mut about: BTreeSet<PropositionId> =
            conditions.iter().map(|condition| condition.proposition.clone()).collect();
        about.extend(obligation.gap.propositions.iter().cloned());
        for proposition_id in about {
            let claims: Vec<ClaimId> = view
                .state
                .claims_on(&proposition_id)
                .filter_map(|accepted| accepted.item.as_claim())
                .map(|claim| claim.claim_id.clone())
                .collect();
            let status = status(&proposition_id);
            let assessed = status.is_some_and(|status| status != AssessmentStatus::Unassessed) || !claims.is_empty();
            if branch!("briefcase.assessment_formed", assessed) {
                let obligation_id = obligation.obligation_id.clone();
                briefs.push(Brief { obligation_id, proposition_id, status, claims });
            }
        }
    }
    briefs
}

/// The waiting packets, those that ask for the same operation or the same thing on one card (DEC-68).
fn cards(view: &View) -> Vec<Card> {
    let mut cards: BTreeMap<(DecisionClass, Text), Card> = BTreeMap::new();
    for packet in view.waiting.iter().filter_map(|id| view.packets.get(id)) {
        let body = &packet.packet.body;
        let about = match bench::proposed(body) {
            Some(proposal) => Text::new(proposal.operation.as_str()),
            None => body.question.clone(),
        };
        let card = cards.entry((body.decision_class, about.clone())).or_insert_with(|| Card {
            decision_class: body.decision_class,
            about,
            decision_ids: Vec::new(),
            obligation_ids: BTreeSet::new(),
            deadline: None,
            is_overdue: false,
        });
        card.decision_ids.push(body.decision_id.clone());
        card.obligation_ids.extend(body.obligation_ids.iter().cloned());
        card.deadline = card.deadline.take().into_iter().chain(body.deadline.clone()).min();
        card.is_overdue |= packet.status == PacketStatus::Overdue;
    }
    cards.into_values().collect()
}
