//! Selective disclosure: what policy releases of the user's record, to whom and for what. Spec: §4.3, §6.5, DEC-79.
//!
//! Default deny over (purpose, recipient, category): what no rule of the profile in force releases is withheld, and the
//! recipient is told which categories that were and which required context it does not have. A projection is judged
//! where it is used, against policy as it stands then, and never trusted for having been drafted. What an incident has
//! stopped goes to nobody. Permission to act says nothing of release: the monitor asks for both.

mod candidates;
mod export;
mod packet;
mod request;

pub(crate) use candidates::{Candidates, at_hand};
pub use export::{Accepted, Export, Exported, FORMAT, export};
pub(crate) use packet::{objections, required};
pub(crate) use request::answer;
pub use request::{Request, materialize};

use crate::incident;
use crate::view::View;
use closer_contracts::Payload;
use closer_contracts::action::Action;
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::branch;
use closer_contracts::canonical::{self, Canonical};
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, CategoryId, DisclosureId, Id, Key, PurposeId, Text};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{ArtifactRef, Plain, StateRef};
use closer_contracts::time::Timestamp;
use closer_contracts::work::ContextItem;
use closer_monitor::DisclosureStanding;
use serde::{Deserialize, Serialize};

/// The category of what an operation is handed: its target and parameters.
pub const INPUT: &str = "input";

/// The purpose of a participant's packet.
#[must_use]
pub fn work_purpose() -> PurposeId {
    PurposeId::from("work")
}

/// The rules in force for this recipient and purpose.
fn rules<'a>(
    view: &'a View,
    recipient: &'a ActorId,
    purpose: &'a PurposeId,
) -> impl Iterator<Item = &'a DisclosureRule> {
    let rules = view.state.profile().map_or(&[][..], |profile| &profile.disclosure_rules);
    rules.iter().filter(move |rule| rule.recipient == *recipient && rule.purpose == *purpose)
}

/// The categories that policy releases to a recipient for a purpose now; anything else is withheld.
#[must_use]
pub fn released(view: &View, recipient: &ActorId, purpose: &PurposeId) -> Vec<CategoryId> {
    rules(view, recipient, purpose).flat_map(|rule| rule.categories.iter().cloned()).collect()
}

/// Whether policy lets a recipient use for this what it is given for a purpose.
fn permits(view: &View, recipient: &ActorId, purpose: &PurposeId, usage: &Key) -> bool {
    rules(view, recipient, purpose).any(|rule| rule.permitted_use.contains(usage))
}

/// Whether an action's inputs may be released to where it takes place (§6.5): to the identity that its operation is
/// verified for in the registry, for the purpose that has the operation's name. What derives from something that was
/// released wrongly waits for the reconciliation.
pub(crate) fn inputs(view: &View, payload: &Payload, action: &Action) -> DisclosureStanding {
    if let Some(incident) = incident::suspended(view, payload) {
        return DisclosureStanding::Suspended(incident.to_string());
    }
    let purpose = PurposeId::new(action.operation.as_str());
    let endpoint = view.state.operation(&action.operation).map(|entry| &entry.verification.identity);
    let may = endpoint.is_some_and(|endpoint| released(view, endpoint, &purpose).contains(&CategoryId::from(INPUT)));
    match branch!("disclose.inputs_released", may) {
        true => DisclosureStanding::Released,
        false => {
            let endpoint = endpoint.map_or("an unknown endpoint", |endpoint| endpoint.as_str());
            DisclosureStanding::Denied(format!("inputs of {purpose} to {endpoint}"))
        }
    }
}

/// To whom something is released, and for what.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a> {
    pub(crate) recipient: &'a ActorId,
    pub(crate) purpose: &'a PurposeId,
    /// What must be there for the purpose to be served.
    pub(crate) required: Vec<Id>,
    /// Whether everything asked for is the recipient's own to read: the user's record, an owner's incident.
    pub(crate) all: bool,
}

/// The limits of a view, told to its recipient as the last item of what it is given. Spec: §4.3, DEC-79.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Its id, which the disclosure receipt cites.
    pub coverage_id: ArtifactId,
    /// For whom the projection was made.
    pub recipient: ActorId,
    /// For what.
    pub purpose: PurposeId,
    /// The state whose policy it was made by.
    pub policy_basis: StateRef,
    /// The categories that policy was asked about.
    pub evaluated_categories: Vec<CategoryId>,
    /// Those of them that hold something which is not released.
    pub withheld_categories: Vec<CategoryId>,
    /// What the purpose needs and the recipient does not have.
    pub missing_required_context: Vec<Id>,
    /// For people and models.
    pub limits: Text,
}

/// What policy releases of the candidates, and what it says about the rest.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    items: Vec<ContextItem>,
    evaluated: Vec<CategoryId>,
    withheld: Vec<CategoryId>,
    missing: Vec<Id>,
}

impl Projection {
    /// Asks policy about every candidate.
    pub(crate) fn of(view: &View, asked: &Asked<'_>, candidates: &Candidates) -> Self {
        let released = released(view, asked.recipient, asked.purpose);
        let mut projection =
            Self { items: Vec::new(), evaluated: Vec::new(), withheld: Vec::new(), missing: Vec::new() };
        for (category, items) in candidates.by_category() {
            let own = category.as_str() == candidates::OWN;
            let free = own || branch!("disclose.category_released", asked.all || released.contains(category));
            let goes =
                |item: &ContextItem| free && (asked.all || incident::stopped(view, &item.reference.id).is_none());
            let (out, kept): (Vec<_>, Vec<_>) = items.iter().cloned().partition(goes);
            projection.items.extend(out);
            projection.evaluated.push(category.clone());
            projection.withheld.extend((!kept.is_empty()).then(|| category.clone()));
        }
        let has = |id: &Id| projection.items.iter().any(|item| item.reference.id.as_str() == id.as_str());
        projection.missing = asked.required.iter().filter(|id| !has(id)).cloned().collect();
        projection
    }

    /// The packet's items, the limits of the view last, and the receipt of what they release.
    pub(crate) fn release(
        self,
        view: &View,
        asked: &Asked<'_>,
        seed: &str,
        permitted_use: Vec<Key>,
        now: &Timestamp,
    ) -> Result<(Vec<ContextItem>, DisclosureReceipt), Fault> {
        let mut receipt = DisclosureReceipt {
            disclosure_id: DisclosureId::new(crate::derived_id("disclosure", seed)),
            purpose: asked.purpose.clone(),
            recipient: asked.recipient.clone(),
            policy_basis: view.state.reference(),
            materialized_item_refs: Vec::new(),
            withheld_categories: self.withheld,
            coverage_receipt_ref: ArtifactId::new(crate::derived_id("coverage", seed)),
            missing_required_context: self.missing,
            permitted_use,
            issued_at: now.clone(),
        };
        let mut items = self.items;
        items.push(coverage(&receipt, self.evaluated)?);
        receipt.materialized_item_refs = items.iter().map(|item| item.reference.clone()).collect();
        Ok((items, receipt))
    }
}

/// The item that tells a recipient the limits of its view, as its receipt states them.
fn coverage(receipt: &DisclosureReceipt, evaluated: Vec<CategoryId>) -> Result<ContextItem, Fault> {
    let coverage = Coverage {
        coverage_id: receipt.coverage_receipt_ref.clone(),
        recipient: receipt.recipient.clone(),
        purpose: receipt.purpose.clone(),
        policy_basis: receipt.policy_basis,
        evaluated_categories: evaluated,
        withheld_categories: receipt.withheld_categories.clone(),
        missing_required_context: receipt.missing_required_context.clone(),
        limits: "This is a part of the record. What is not here may exist and permits nothing.".into(),
    };
    let content = serde_json::to_value(&coverage).map_err(|error| Fault::schema(error.to_string()))?;
    context_item(Id::new(receipt.coverage_receipt_ref.as_str()), content)
}

/// An item of context with its immutable reference.
fn context_item(id: Id, content: serde_json::Value) -> Result<ContextItem, Fault> {
    let content = Canonical::of(Plain(content))?;
    let reference = ArtifactRef { id: ArtifactId::new(id.as_str()), digest: content.digest() };
    Ok(ContextItem { reference, content: content.into_value() })
}

/// The reference to a receipt, as envelopes cite it.
pub(crate) fn reference(receipt: &DisclosureReceipt) -> Result<closer_contracts::envelope::DisclosureRef, Fault> {
    let digest = canonical::digest_of(receipt)?;
    Ok(closer_contracts::envelope::DisclosureRef { id: receipt.disclosure_id.clone(), digest })
}
