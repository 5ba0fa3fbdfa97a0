//! The catalogue: which workflows are a way to meet a need, and which skills are usable in them. Spec: §3.4, SR9, SR10.
//!
//! An index, many-to-many, by opaque ids. What is not found is a gap and no new category; nothing in it permits anything.

use crate::view::View;
use closer_contracts::branch;
use closer_contracts::id::{CapabilityId, Key, Text, WorkflowId};
use closer_contracts::item::{ItemKind, Skill, Standing, Workflow};
use closer_contracts::route::CapabilityGap;

/// The workflows that are a way to meet a need, in id order.
pub fn workflows<'a>(view: &'a View, need: &'a CapabilityId) -> impl Iterator<Item = &'a Workflow> {
    let known = view.state.items(ItemKind::Workflow).filter_map(|accepted| accepted.item.as_workflow());
    known.filter(move |workflow| {
        workflow.standing == Standing::Current && branch!("catalogue.meets_need", workflow.needs.contains(need))
    })
}

/// The skills that are usable in a workflow, in id order.
pub fn skills<'a>(view: &'a View, workflow: &'a WorkflowId) -> impl Iterator<Item = &'a Skill> {
    let known = view.state.items(ItemKind::Skill).filter_map(|accepted| accepted.item.as_skill());
    known.filter(move |skill| {
        skill.standing == Standing::Current && branch!("catalogue.usable_in", skill.workflows.contains(workflow))
    })
}

/// The skills that a role may use for these needs, each once, in id order.
#[must_use]
pub fn skills_for<'a>(view: &'a View, needs: &'a [CapabilityId], role: &Key) -> Vec<&'a Skill> {
    let linked =
        needs.iter().flat_map(|need| workflows(view, need)).flat_map(|workflow| skills(view, &workflow.workflow_id));
    let mut found: Vec<&Skill> = linked.filter(|skill| skill.roles.is_empty() || skill.roles.contains(role)).collect();
    found.sort_by(|one, other| one.skill_id.cmp(&other.skill_id));
    found.dedup_by(|one, other| one.skill_id == other.skill_id);
    found
}

/// What the catalogue offers for these needs, and the gaps where it offers nothing that a skill can be used in.
#[must_use]
pub fn lookup(view: &View, needs: &[CapabilityId]) -> (Vec<WorkflowId>, Vec<CapabilityGap>) {
    let (mut options, mut gaps) = (Vec::new(), Vec::new());
    for need in needs {
        let usable = workflows(view, need).filter(|workflow| skills(view, &workflow.workflow_id).next().is_some());
        let found: Vec<WorkflowId> = usable.map(|workflow| workflow.workflow_id.clone()).collect();
        if branch!("catalogue.nothing_found", found.is_empty()) {
            let reason = Text::from("the catalogue has no workflow for it that a skill is usable in");
            gaps.push(CapabilityGap { need: Key::new(need.as_str()), reason });
        }
        options.extend(found.into_iter().filter(|id| !options.contains(id)).collect::<Vec<_>>());
    }
    (options, gaps)
}
