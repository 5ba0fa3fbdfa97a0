//! Selective disclosure: what policy releases of the user's record, to whom and for what. Spec: §4.3, §6.5, DEC-79.
//!
//! Default deny over (purpose, recipient, category): what no rule of the profile in force releases is withheld, and the
//! recipient is told which categories that were and which required context it does not have. A release says nothing of
//! sufficiency, and permission to act says nothing of release: the monitor asks for both.

use crate::view::View;
use closer_contracts::action::Action;
use closer_contracts::branch;
use closer_contracts::id::{ActorId, CategoryId, PurposeId};
use closer_contracts::profile::DisclosureRule;
use closer_monitor::DisclosureStanding;

/// The category of what an operation is handed: its target and parameters.
pub const INPUT: &str = "input";

/// The rules in force for this recipient and purpose.
pub(crate) fn rules<'a>(
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

/// Whether an action's inputs may be released to where it takes place (§6.5): to the identity that its operation is
/// verified for in the registry, for the purpose that has the operation's name.
pub(crate) fn inputs(view: &View, action: &Action) -> DisclosureStanding {
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
