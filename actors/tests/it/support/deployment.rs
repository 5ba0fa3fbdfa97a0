//! The scenarios' deployment with several services, obligations that say which proposition they ask, and an operation that
//! settles at once.

use closer_contracts::item::{EffectClass, Item, RepeatSafety};
use closer_contracts::obligation::Obligation;
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::{Amounts, Target};
use closer_protocol::genesis::Founding;
use closer_scenarios::Deployment;
use closer_scenarios::founding::{self, plan_target};

/// The plan of a service.
pub(crate) fn target(service: &str) -> Target {
    Target { address: service.into(), ..plan_target() }
}

/// An obligation to have a service's plan changed, woken by price events about the service. `proposition` is what it asks.
fn obligation(id: &str, service: &str, proposition: &str) -> (Obligation, Vec<Reentry>) {
    let (mut obligation, reentries) = founding::obligation(id, service);
    obligation.gap.propositions = vec![proposition.into()];
    for condition in &mut obligation.resolution_conditions {
        condition.proposition = proposition.into();
    }
    (obligation, reentries)
}

/// A deployment with these obligations: (id, service, proposition).
pub(crate) fn founding(obligations: &[(&str, &str, &str)]) -> Founding {
    let mut operation = founding::operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    operation.settle_time_ms = 20;
    operation.worst_case = Amounts { calls: Some(1), ..operation.worst_case };
    let mut grant = founding::grant("grant-1", "plan.change", &["basic"]);
    for targets in &mut grant.targets {
        targets.address = "*".into();
    }
    let mut founding = Deployment::default().with(Item::Operation(operation)).with(Item::Grant(grant)).founding;
    founding.obligations =
        obligations.iter().map(|(id, service, proposition)| obligation(id, service, proposition)).collect();
    founding
}

/// The same deployment without one item.
pub(crate) fn without(mut founding: Founding, id: &str) -> Founding {
    founding.items.retain(|item| item.id().as_str() != id);
    for (obligation, _) in &mut founding.obligations {
        obligation.authority_boundary.retain(|within| within.as_str() != id);
    }
    founding
}
