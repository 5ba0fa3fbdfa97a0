//! After an over-disclosure: stop and revoke, withdraw and tell, reconcile, in this order. Spec: §4.3, C14, DEC-80, DEC-94.
//!
//! A case is a file that only grows. It opens with the report of what went to whom, and in the same append the items are
//! stopped: they go to nobody, what was not yet handed out is not, and nothing that derives from them is used. Then every
//! recipient is told, in a notice that holds nothing it was not given before. It ends only by a reconciliation that names
//! each copy nobody answers for. No step takes a disclosure back or hides it, and none claims that a copy is gone.

mod decide;
mod lineage;
mod report;

pub use decide::{ERASE, contain, notify};
pub(crate) use decide::{open, take};
pub(crate) use lineage::{stopped, suspended};
pub use report::{Exposure, Report, report};

use crate::view::View;
use closer_contracts::audit::{DisclosureIncident, DisclosureReceipt, IncidentAttempt};
use closer_contracts::contract::Check;
use closer_contracts::envelope::DisclosureRef;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, IncidentId, Key, Text};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::time::Timestamp;
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

word_enum! {
    /// Where an incident stands (DEC-80).
    pub enum IncidentState {
        /// It is on record.
        Open = "open",
        /// Release has stopped and what can be revoked is.
        Contained = "contained",
        /// The items are withdrawn and every recipient is told.
        Notified = "notified",
        /// Recipients have begun to answer.
        Reconciling = "reconciling",
        /// Every recipient has acknowledged.
        Reconciled = "reconciled",
        /// Somebody failed to, or did not answer at all.
        ReconciledWithUnknowns = "reconciled_with_unknowns",
    }
}

impl IncidentState {
    /// Whether the case has been reconciled, with unknowns or without.
    #[must_use]
    pub const fn is_reconciled(self) -> bool {
        match self {
            Self::Reconciled | Self::ReconciledWithUnknowns => true,
            Self::Open | Self::Contained | Self::Notified | Self::Reconciling => false,
        }
    }
}

word_enum! {
    /// What is asked of a recipient beside telling it.
    pub enum Erasure {
        /// It is asked to delete or quarantine its copy.
        Requested = "requested",
        /// It has no way to do that.
        Unsupported = "unsupported",
    }
}

word_enum! {
    /// How a recipient answered its notice.
    pub enum Answer {
        /// It says that it did as asked. That is its word and no proof.
        Acknowledged = "acknowledged",
        /// It could not, or the notice did not reach it.
        Failed = "failed",
    }
}

/// What one recipient is told, with the receipt of what the notice itself discloses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopedNotice {
    /// The receipt: its recipient, and the items named to it, all of which it was given before.
    pub receipt: DisclosureReceipt,
    /// What is asked of it.
    pub erasure: Erasure,
}

/// What is done about an incident, one step at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Release has stopped. Written by the runtime, in the append that opens the case.
    Contained {
        /// Each recipient, and what could be revoked of its access.
        attempts: Vec<IncidentAttempt>,
    },
    /// The items are withdrawn, as an append-only tombstone, and the recipients are told.
    Notified {
        /// What is withdrawn.
        withdrawn: Vec<ArtifactRef>,
        /// The receipts it went out by. They stay as they were.
        receipts: Vec<DisclosureRef>,
        /// One for each recipient.
        notices: Vec<ScopedNotice>,
        /// What derives from the items and is not used until the case is reconciled.
        dependent_artifacts: Vec<ArtifactRef>,
    },
    /// A recipient's answer.
    Answered {
        /// Whose.
        recipient: ActorId,
        /// How it answered.
        answer: Answer,
        /// For people.
        reason: Text,
    },
    /// The case is reconciled.
    Reconciled {
        /// The recipients that gave no answer: whether they keep a copy is unknown.
        unknown_copies: Vec<ActorId>,
        /// Why it may be closed with what is left open.
        justification: Text,
    },
}

/// One step of an incident, as it is submitted and recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentStep {
    /// Its id.
    pub step_id: ArtifactId,
    /// The incident.
    pub incident_id: IncidentId,
    /// What is done.
    pub content: Step,
}

impl Check for IncidentStep {
    fn check(&self) -> Result<(), Fault> {
        self.step_id.check().map_err(|fault| fault.within("step_id"))?;
        self.incident_id.check().map_err(|fault| fault.within("incident_id"))?;
        match &self.content {
            Step::Contained { attempts } => attempts.check().map_err(|fault| fault.within("attempts")),
            Step::Notified { withdrawn, notices, dependent_artifacts, receipts: _ } => {
                withdrawn.check().map_err(|fault| fault.within("withdrawn"))?;
                dependent_artifacts.check().map_err(|fault| fault.within("dependent_artifacts"))?;
                notices.iter().try_for_each(|notice| notice.receipt.check()).map_err(|fault| fault.within("notices"))
            }
            Step::Answered { recipient, reason, answer: _ } => {
                recipient.check().map_err(|fault| fault.within("recipient"))?;
                reason.check().map_err(|fault| fault.within("reason"))
            }
            Step::Reconciled { unknown_copies, justification } => {
                unknown_copies.check().map_err(|fault| fault.within("unknown_copies"))?;
                justification.check().map_err(|fault| fault.within("justification"))
            }
        }
    }
}

/// A case: the report it opened with and what its steps show.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What went to whom, as reported.
    pub opened: Arc<DisclosureIncident>,
    /// The reference to the report.
    pub reference: ArtifactRef,
    /// Where it stands.
    pub state: IncidentState,
    /// The steps, in order, with the times they were recorded at.
    pub steps: Vec<(Timestamp, Step)>,
}

impl Case {
    /// A case as it opens.
    #[must_use]
    pub const fn open(opened: Arc<DisclosureIncident>, reference: ArtifactRef) -> Self {
        Self { opened, reference, state: IncidentState::Open, steps: Vec::new() }
    }

    /// Folds the next step.
    pub(crate) fn fold(&mut self, at: &Timestamp, step: &Step) {
        self.steps.push((at.clone(), step.clone()));
        self.state = match step {
            Step::Contained { .. } => IncidentState::Contained,
            Step::Notified { .. } => IncidentState::Notified,
            Step::Answered { .. } => IncidentState::Reconciling,
            Step::Reconciled { .. } if self.all_acknowledged() => IncidentState::Reconciled,
            Step::Reconciled { .. } => IncidentState::ReconciledWithUnknowns,
        };
    }

    /// The answers so far.
    pub fn answers(&self) -> impl Iterator<Item = (&Timestamp, &ActorId, Answer)> {
        self.steps.iter().filter_map(|(at, step)| {
            if let Step::Answered { recipient, answer, .. } = step { Some((at, recipient, *answer)) } else { None }
        })
    }

    /// The recipients that have not answered.
    pub fn silent(&self) -> impl Iterator<Item = &ActorId> {
        self.opened.recipient_refs.iter().filter(|recipient| !self.answers().any(|(_, who, _)| who == *recipient))
    }

    /// The notices whose recipients have not answered, while their answers are awaited.
    pub fn unanswered(&self) -> impl Iterator<Item = &ScopedNotice> {
        let awaited = matches!(self.state, IncidentState::Notified | IncidentState::Reconciling);
        let notices = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Notified { notices, .. } => Some(notices),
            Step::Contained { .. } | Step::Answered { .. } | Step::Reconciled { .. } => None,
        });
        let silent = |notice: &&ScopedNotice| self.silent().any(|recipient| *recipient == notice.receipt.recipient);
        notices.flatten().filter(silent).filter(move |_| awaited)
    }

    fn all_acknowledged(&self) -> bool {
        let acknowledged =
            |who: &ActorId| self.answers().any(|(_, other, answer)| other == who && answer == Answer::Acknowledged);
        self.opened.recipient_refs.iter().all(acknowledged)
    }

    /// Which of the affected items a recipient was given, by the receipts on record.
    #[must_use]
    pub fn given_to(&self, view: &View, recipient: &ActorId) -> Vec<ArtifactRef> {
        let receipts = view.released.values().filter(|receipt| receipt.recipient == *recipient && !is_notice(receipt));
        let given: Vec<_> = receipts.flat_map(|receipt| receipt.materialized_item_refs.iter()).collect();
        self.opened.released_item_refs.iter().filter(|item| given.contains(item)).cloned().collect()
    }

    /// Whether this receipt released an affected item to one of the recipients.
    #[must_use]
    pub fn is_affected(&self, receipt: &DisclosureReceipt) -> bool {
        let holds = |item: &ArtifactRef| receipt.materialized_item_refs.contains(item);
        !is_notice(receipt)
            && self.opened.recipient_refs.contains(&receipt.recipient)
            && self.opened.released_item_refs.iter().any(holds)
    }
}

/// The purpose of a notice about an incident.
const NOTICE: &str = "incident_notice";

fn is_notice(receipt: &DisclosureReceipt) -> bool {
    receipt.purpose.as_str() == NOTICE
}

/// What the receiver of a notice may do with it.
fn notice_use() -> Key {
    Key::from("withdraw what it names")
}

/// Every notice that is to be delivered: of which incident, and to whom. Once it is answered there is nothing to deliver.
#[must_use]
pub fn undelivered(view: &View) -> Vec<(IncidentId, ScopedNotice)> {
    let cases = view.incidents.values();
    cases.flat_map(|case| case.unanswered().map(|notice| (case.opened.incident_id.clone(), notice.clone()))).collect()
}

/// A recipient's answer to its notice, as a step of the case.
#[must_use]
pub fn answered(incident_id: &IncidentId, recipient: &ActorId, answer: Answer, reason: Text) -> IncidentStep {
    let id = crate::derived_id(&format!("answered.{recipient}"), incident_id.as_str());
    let content = Step::Answered { recipient: recipient.clone(), answer, reason };
    IncidentStep { step_id: ArtifactId::new(id), incident_id: incident_id.clone(), content }
}

impl Step {
    /// The state that the step leads to, as far as the step alone says.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Contained { .. } => "contained",
            Self::Notified { .. } => "notified",
            Self::Answered { answer, .. } => answer.as_str(),
            Self::Reconciled { .. } => "reconciled",
        }
    }
}
