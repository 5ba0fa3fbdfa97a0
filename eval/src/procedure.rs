//! Two procedures over the same packets: a conference of roles, and one agent's. Spec: §10.1.
//!
//! A procedure asks one participant several times. Each stage is handed the packet and what the stages before it answered,
//! as context with its digest; the last one's answer is the procedure's, and goes to the finalizer that both arms share.
//! What handing on takes, in calls and in time, is coordination, and is the arm's.

use crate::comparison::{self, Arm, Comparison, MechanismTest, NotComparable};
use crate::freeze;
use crate::item::StudyItem;
use crate::offering::Offering;
use crate::participant::Participant;
use crate::plan::Plan;
use crate::resource::{Dimension, Vector};
use closer_contracts::canonical::{self, digest_of};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ArtifactId, Key, Text};
use closer_contracts::refs::{ArtifactRef, Plain, VersionedRef};
use closer_contracts::work::{ContextItem, Work, WorkResult};
use closer_contracts::{Check, Digest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One stage of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The role, as it stands in the packet.
    pub role: Key,
    /// What the role is asked beside the question itself.
    #[serde(default)]
    pub asks: Option<Text>,
    /// Whether it only hands on: what it takes is coordination.
    #[serde(default)]
    pub coordinates: bool,
}

/// One arm, as a plan declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredArm {
    /// Its name.
    pub arm: Key,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
    /// Who is asked; the plan's participant without it.
    #[serde(default)]
    pub participant: Option<Participant>,
    /// What may be used beside the operations of the packet, by name.
    #[serde(default)]
    pub tools: BTreeSet<Key>,
    /// What is given beside the packet, by name.
    #[serde(default)]
    pub evidence: BTreeSet<Key>,
    /// The rule that its result is adjudicated by. Default the finalizer's own.
    #[serde(default = "finalizer")]
    pub rule: VersionedRef,
    /// What it may take, coordination included.
    pub resources: Option<Vector>,
    /// What else is varied, by name.
    #[serde(default)]
    pub factors: BTreeMap<Key, Key>,
    /// What setting it up took, in millionths of the currency, by whoever set it up; unknown without it.
    #[serde(default)]
    pub setup_micros: Option<u64>,
}

fn finalizer() -> VersionedRef {
    VersionedRef { id: "rule.finalizer".into(), version: 1 }
}

/// A comparison of two procedures, as a plan declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Procedures {
    /// The two arms; the first is world A of its pairs.
    pub arms: [DeclaredArm; 2],
    /// Which budget comes first where they do not match in all.
    #[serde(default)]
    pub primary: Option<Dimension>,
    /// Which offering the first arm stands for, with the second as the simpler alternative.
    #[serde(default)]
    pub offering: Option<Offering>,
}

impl Procedures {
    /// Whether each arm can be carried out at all.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn check(&self) -> Result<(), String> {
        let [one, other] = &self.arms;
        if one.arm == other.arm {
            return Err("two arms have two names".to_owned());
        }
        for arm in &self.arms {
            match arm.stages.last() {
                None => return Err(format!("`{}` has one stage at least", arm.arm)),
                Some(last) if last.coordinates => {
                    return Err(format!("the last stage of `{}` decides, and does not only hand on", arm.arm));
                }
                Some(_) => {}
            }
            for stage in &arm.stages {
                stage.asks.as_ref().map_or(Ok(()), Text::check).map_err(|fault| fault.reason.into_owned())?;
            }
        }
        Ok(())
    }

    /// The arms as they are compared.
    ///
    /// # Errors
    /// An arm has no canonical form.
    pub fn arms(&self, plan: &Plan, items: &[StudyItem]) -> Result<[Arm; 2], Fault> {
        let evidence = digest_of(&items.iter().map(|item| (&item.item, item.truth_digest)).collect::<Vec<_>>())?;
        let operations = digest_of(&items.iter().map(|item| &item.operations).collect::<Vec<_>>())?;
        let arm = |declared: &DeclaredArm| -> Result<Arm, Fault> {
            let participant = declared.participant.as_ref().unwrap_or(&plan.participant);
            Ok(Arm {
                arm: declared.arm.clone(),
                model_access: digest_of(participant)?,
                evidence: digest_of(&(evidence, &declared.evidence))?,
                tools: digest_of(&(operations, &declared.tools))?,
                rule: declared.rule.clone(),
                resources: declared.resources.clone(),
                factors: declared.factors.clone(),
            })
        };
        let [one, other] = &self.arms;
        Ok([arm(one)?, arm(other)?])
    }

    /// Whether they may be compared, and as what.
    ///
    /// # Errors
    /// Every reason why not; a fault where an arm has no canonical form.
    pub fn compared(
        &self,
        plan: &Plan,
        items: &[StudyItem],
        build: Digest,
        mechanism: Option<&MechanismTest>,
    ) -> Result<Result<Comparison, Vec<NotComparable>>, Fault> {
        let [one, other] = self.arms(plan, items)?;
        Ok(comparison::compare(build, mechanism, [&one, &other], self.primary))
    }

    /// Everything that is fixed about them, with the digests of the files that their participants are made of.
    ///
    /// # Errors
    /// [`freeze::NotFrozen`] where a file cannot be read.
    pub fn frozen(&self, folder: &Path) -> Result<serde_json::Value, freeze::NotFrozen> {
        let mut files = BTreeMap::new();
        for path in self.files() {
            files.insert(path.display().to_string(), crate::file::digest(&folder.join(path))?);
        }
        Ok(json!({ "procedures": self, "files": files }))
    }

    /// The files of the arms' own participants.
    pub fn files(&self) -> impl Iterator<Item = &std::path::PathBuf> {
        self.arms.iter().filter_map(|arm| arm.participant.as_ref()).flat_map(|participant| participant.files())
    }
}

/// What a stage is handed: the packet in its role, and what the stages before it answered.
///
/// # Errors
/// The question and what the role is asked do not fit into one text, or an answer has no canonical form.
pub fn packet(given: &Work, stage: &Stage, earlier: &[(Key, WorkResult)]) -> Result<Work, Fault> {
    let mut work = Work { role: stage.role.clone(), ..given.clone() };
    if let Some(asks) = &stage.asks {
        work.question.text = Text::new(format!("{}\n{asks}", given.question.text));
        work.question.text.check()?;
    }
    for (number, (role, result)) in earlier.iter().enumerate() {
        let content = Plain(serde_json::to_value(result).map_err(|error| Fault::schema(error.to_string()))?);
        let digest = canonical::digest_of(&content)?;
        let id = ArtifactId::new(format!("stage-{}.{role}", number + 1));
        work.context_items.push(ContextItem { reference: ArtifactRef { id, digest }, content });
    }
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::example_item;
    use crate::world::{OneWorld, commit};

    #[test]
    fn a_stage_is_handed_the_packet_and_every_answer_before_it_with_its_digest() {
        let item = example_item();
        let committed = commit(&item, &item.claim).unwrap();
        let given = OneWorld::begin(&item, &committed, None).unwrap().work().clone();
        let said =
            crate::participant::answer(&Participant::Floor { floor: crate::participant::Floor::AlwaysAsk }, &given, 1);
        let said = said.unwrap().result;
        let stage = Stage { role: "critic".into(), asks: Some("What is wrong with it?".into()), coordinates: false };
        let handed = packet(&given, &stage, &[("mapper".into(), said.clone())]).unwrap();
        handed.check().unwrap();
        assert_eq!(handed.role.as_str(), "critic");
        assert!(handed.question.text.as_str().ends_with("What is wrong with it?"));
        assert_eq!(handed.context_items.len(), given.context_items.len() + 1);
        let last = handed.context_items.last().unwrap();
        assert_eq!(last.reference.id.as_str(), "stage-1.mapper");
        assert_eq!(last.content.0, serde_json::to_value(&said).unwrap());
        // The digest of what arrived tells a packet that was cut short, as for any other.
        assert_ne!(digest_of(&handed).unwrap(), digest_of(&given).unwrap());
    }
}
