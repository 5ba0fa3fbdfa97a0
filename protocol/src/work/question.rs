//! The question of a packet, in the words of its role. Spec: §4.1, C5.

use crate::conference::Round;
use closer_contracts::branch;
use closer_contracts::conference::Subject;
use closer_contracts::id::{Id, Key, Text};
use closer_contracts::obligation::Obligation;
use closer_contracts::work::Question;

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

/// What an obligation leaves open, or what a conference is about.
pub(super) fn of(obligation: &Obligation, role: &Key, round: Option<&Round>) -> Question {
    let subject_refs = match round {
        Some(round) => round.contract.subjects.iter().map(Subject::id).collect(),
        None => obligation.gap.propositions.iter().map(Id::from).collect(),
    };
    Question { text: charge(role, &obligation.gap.text), subject_refs }
}
