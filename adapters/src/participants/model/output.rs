//! A model's output, held to its contract: one JSON object with exactly the members that its role has. Nothing is repaired.

use super::super::policy::relation_to;
use super::{List, OutputContract};
use closer_contracts::branch;
use closer_contracts::canonical::{self, read_value};
use closer_contracts::conference::{MoveAnswer, MoveKind};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{EvidenceId, PropositionId, Text};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::RefusalCode as Code;
use closer_contracts::work::{
    ActionProposal, ContextItem, EvidenceRelation, Objection, ProposedClaim, Proposition, ReasonClass, Relation,
    ScopeMatch, Unresolved, Work, WorkResult,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    evidence_id: EvidenceId,
    proposition_id: PropositionId,
    relation: Relation,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claiming {
    proposition_id: PropositionId,
    applicability: Vec<Text>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Objecting {
    subject: String,
    reason_class: ReasonClass,
    text: Text,
    evidence_ids: Vec<EvidenceId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moving {
    r#move: MoveKind,
    subject: String,
    reply_to: Option<String>,
    evidence: Vec<Reading>,
    reason: Option<Text>,
    reason_class: Option<ReasonClass>,
}

/// The one object that an output is.
fn object(text: &str) -> Result<Map<String, Value>, Fault> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let several =
        values.next().is_some_and(|first| first.is_ok()) && values.next().is_some_and(|second| second.is_ok());
    if branch!("model.several_answers", several) {
        return Err(Fault::new(Code::Cardinality, "there are several answers where one was asked for"));
    }
    match read_value(text.as_bytes())? {
        Value::Object(members) => Ok(members),
        Value::Array(_) => Err(Fault::new(Code::Cardinality, "there is a list of answers where one was asked for")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(Fault::schema("the answer is no object"))
        }
    }
}

/// A list of the output, at most so long.
fn list<T: Serialize + DeserializeOwned>(
    members: &mut Map<String, Value>,
    list: List,
    items_max: u32,
) -> Result<Vec<T>, Fault> {
    let name = list.as_str();
    let Some(Value::Array(items)) = members.remove(name) else {
        return Err(Fault::schema("the answer lacks a list that its role has").within(name));
    };
    if branch!("model.list_too_long", items.len() > items_max as usize) {
        return Err(Fault::new(Code::Cardinality, "there are more items than were asked for").within(name));
    }
    items.into_iter().map(|item| canonical::from_value(item).map_err(|fault| fault.within(name))).collect()
}

/// Reads an answer to a unit of work.
pub(super) fn result(work: &Work, contract: &OutputContract, text: &str) -> Result<WorkResult, Fault> {
    let mut members = object(text)?;
    let mut result = WorkResult {
        work_id: work.work_id.clone(),
        claims: Vec::new(),
        action_proposals: Vec::new(),
        assessments: Vec::new(),
        objections: Vec::new(),
        unresolved: Vec::new(),
        skill_receipts: Vec::new(),
        extensions: None,
    };
    let most = contract.items_max;
    for kind in &contract.lists {
        match kind {
            List::Assessments => {
                let read: Vec<Reading> = list(&mut members, *kind, most)?;
                result.assessments = read.into_iter().map(|read| relation(work, read)).collect::<Result<_, _>>()?;
            }
            List::Claims => {
                let claimed: Vec<Claiming> = list(&mut members, *kind, most)?;
                result.claims = claimed.into_iter().map(|claimed| claim(work, claimed)).collect::<Result<_, _>>()?;
            }
            List::Proposals => result.action_proposals = list(&mut members, *kind, most)?,
            List::Objections => {
                let objected: Vec<Objecting> = list(&mut members, *kind, most)?;
                result.objections =
                    objected.into_iter().map(|objected| objection(work, objected)).collect::<Result<_, _>>()?;
            }
            List::Unresolved => {
                let open: Vec<Unresolved> = list(&mut members, *kind, most)?;
                result.unresolved = open;
            }
        }
    }
    match members.keys().next() {
        Some(unknown) if branch!("model.member_unasked", true) => {
            Err(Fault::schema("the answer has a member that its role does not have").within(unknown))
        }
        Some(_) | None => Ok(result),
    }
}

/// Reads an answer to a turn of a conference.
pub(super) fn made(work: &Work, text: &str) -> Result<MoveAnswer, Fault> {
    let made: Moving = canonical::from_value(Value::Object(object(text)?))?;
    let reply_to = made.reply_to.map(|id| {
        let found = item(work, &id).filter(|item| item.content.0.get("move_id").is_some());
        // A move is cited by the digest of its own record, which its item is.
        found.map(|item| item.reference.clone()).ok_or_else(|| unresolved(&id, "the packet holds no such move"))
    });
    let reply_to: Option<ArtifactRef> = reply_to.transpose()?;
    let evidence = made.evidence.into_iter().map(|read| relation(work, read)).collect::<Result<_, _>>()?;
    Ok(MoveAnswer {
        work_id: work.work_id.clone(),
        r#move: made.r#move,
        subject: subject(work, &made.subject)?,
        reply_to,
        evidence,
        reason: made.reason,
        reason_class: made.reason_class,
        narrowed: None,
    })
}

fn item<'a>(work: &'a Work, id: &str) -> Option<&'a ContextItem> {
    work.context_items.iter().find(|item| item.reference.id.as_str() == id)
}

fn unresolved(id: &str, reason: &'static str) -> Fault {
    Fault::new(Code::UnresolvedRef, reason).within(id.chars().take(64).collect::<String>())
}

fn relation(work: &Work, read: Reading) -> Result<EvidenceRelation, Fault> {
    let id = read.evidence_id.as_str();
    let evidence = item(work, id).filter(|item| item.content.0.get("evidence_id").is_some());
    let evidence = evidence.ok_or_else(|| unresolved(id, "the packet holds no such evidence"))?;
    relation_to(evidence, read.proposition_id, ScopeMatch::Applicable, read.relation)
}

fn claim(work: &Work, claimed: Claiming) -> Result<ProposedClaim, Fault> {
    let id = claimed.proposition_id.as_str();
    let written = work.context_items.iter().find_map(|item| {
        let content = &item.content.0;
        let proposition = if content.get("proposition").is_some() { content.get("proposition") } else { Some(content) };
        let proposition: Proposition = canonical::from_value(proposition?.clone()).ok()?;
        (proposition.proposition_id == claimed.proposition_id).then_some(proposition)
    });
    let proposition = written.ok_or_else(|| unresolved(id, "the packet does not write this proposition out"))?;
    Ok(ProposedClaim { proposition, applicability: claimed.applicability })
}

fn objection(work: &Work, objected: Objecting) -> Result<Objection, Fault> {
    Ok(Objection {
        subject: subject(work, &objected.subject)?,
        reason_class: objected.reason_class,
        text: objected.text,
        evidence_ids: objected.evidence_ids,
    })
}

/// The digest of what an id of the packet names: an item, or an action that a released position proposes.
fn subject(work: &Work, id: &str) -> Result<Digest, Fault> {
    if let Some(item) = item(work, id) {
        return Ok(item.reference.digest);
    }
    let proposals = work.context_items.iter().filter_map(|item| item.content.0.pointer("/content/action_proposals"));
    for proposal in proposals.filter_map(Value::as_array).flatten() {
        let proposal: ActionProposal = canonical::from_value(proposal.clone())?;
        if proposal.operation.as_str() == id {
            return canonical::digest_of(&proposal);
        }
    }
    Err(unresolved(id, "the packet holds nothing with this id"))
}
