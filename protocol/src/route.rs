//! Routing: who of a coalition does the work of an episode, under which verified contracts. Spec: §3.3, C4, DEC-90.
//!
//! A route names its actors. Who cannot be reached is replaced by an alternative that the coalition names, on a new route, or
//! a gap is recorded: nobody else ever works under the route that names him. An endpoint that answers is not for that the
//! one that was approved, so each is held against the registry when it is chosen and again when work is sent to it.

use crate::catalogue;
use crate::coalition;
use crate::input::{Moment, Reply};
use crate::ledger;
use crate::sequence::{Deciding, record_payload};
use crate::services::{self, INTERNAL_DISCLOSURE};
use crate::view::{Episode, View};
use crate::work;
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::id::{ActorId, DisclosureId, PayloadId, RouteId, Text};
use closer_contracts::item::{Capability, Coalition, ItemKind, Member, Standing};
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::route::{CapabilityContractRef, CapabilityGap, RoleAssignment, Route};
use closer_contracts::time::Timestamp;
use closer_contracts::work::Work;
use closer_contracts::{Fault, Payload};
use std::sync::Arc;

/// Whether an actor may be used under a capability contract now: the contract at its exact version and digest, and an
/// endpoint that was verified to serve it and still is.
///
/// # Errors
/// `unresolved_ref`, `contract_incompatible`, `endpoint_mismatch`, `registry_expired`.
pub fn verify(view: &View, cited: &CapabilityContractRef, actor: &ActorId, now: &Timestamp) -> Result<(), Denial> {
    let no =
        |code, reason: &str, of: &dyn std::fmt::Display| Err(Denial::new(code, CheckKind::Resolution, reason).of(of));
    let Some(entry) = capability(view, cited) else {
        return no(Code::UnresolvedRef, "no such capability is registered", &cited.id);
    };
    if branch!("route.contract_differs", entry.version != cited.version || entry.contract_digest != cited.digest) {
        return no(Code::ContractIncompatible, "the capability has another version or contract", &cited.id);
    }
    let verified = entry.endpoints.iter().find(|endpoint| branch!("route.endpoint_known", endpoint.identity == *actor));
    let Some(verified) = verified else {
        return no(Code::EndpointMismatch, "the endpoint is none that was verified for the capability", actor);
    };
    let same = verified.contract_digest == entry.contract_digest && verified.version == entry.version;
    if branch!("route.endpoint_serves_other", !same) {
        return no(Code::EndpointMismatch, "the endpoint was verified for another contract", actor);
    }
    match branch!("route.verification_expired", verified.expires_at <= *now) {
        true => no(Code::RegistryExpired, "the endpoint's verification has expired", actor),
        false => Ok(()),
    }
}

fn capability<'a>(view: &'a View, cited: &CapabilityContractRef) -> Option<&'a Capability> {
    let accepted = view.state.item(ItemKind::Capability, &(&cited.id).into())?;
    accepted.item.as_capability().filter(|entry| entry.standing == Standing::Current)
}

/// Whether an identity may do the work of participants at all.
fn may_work(view: &View, actor: &ActorId) -> bool {
    let identity = view.state.identity(actor);
    identity.is_some_and(|identity| {
        identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::Participant)
    })
}

/// Who takes a member's place: itself, or the first alternative that can be used and has not been out of reach in this
/// episode.
fn chosen(view: &View, episode: &Episode, member: &Member, now: &Timestamp) -> Result<ActorId, CapabilityGap> {
    let mut reasons = Vec::new();
    for actor in std::iter::once(&member.actor).chain(&member.alternatives) {
        if branch!("route.out_of_reach", out_of_reach(view, episode, actor)) {
            reasons.push(format!("{actor} cannot be reached"));
            continue;
        }
        if !may_work(view, actor) {
            reasons.push(format!("{actor} is no current participant"));
            continue;
        }
        let denied = member.capabilities.iter().find_map(|cited| verify(view, cited, actor, now).err());
        match denied {
            Some(denial) => reasons.push(format!("{actor}: {}: {}", denial.code, denial.reason)),
            None => return Ok(actor.clone()),
        }
    }
    let reason = crate::intake::bounded(&reasons.join("; "));
    Err(CapabilityGap { need: member.role.clone(), reason })
}

/// Whether an actor said nothing, or could not be asked, in this episode.
pub(crate) fn out_of_reach(view: &View, episode: &Episode, actor: &ActorId) -> bool {
    episode.work.iter().any(|id| {
        view.issued_to.get(id) == Some(actor) && view.failed.get(id).is_some_and(|(code, _)| *code == Code::NoAnswer)
    })
}

/// Drafts the route of an episode: who can be used for each member, and what the catalogue offers for what the work needs.
///
/// # Errors
/// The codes of the contract; `disclosure_denied` when the space has no internal disclosure.
pub fn draft(view: &View, episode: &Episode, coalition: &Coalition, now: &Timestamp) -> Result<Payload, Fault> {
    let (workflow_options, mut capability_gaps) = catalogue::lookup(view, &coalition.needs);
    let (mut selected_actors, mut role_assignments, mut capability_contract_refs) =
        (Vec::new(), Vec::new(), Vec::new());
    for member in &coalition.members {
        match chosen(view, episode, member, now) {
            Ok(actor) => {
                selected_actors.push(ActorRef { actor_id: actor.clone(), role: ProducerRole::Participant });
                role_assignments.push(RoleAssignment { actor, role: member.role.clone() });
                capability_contract_refs.extend(member.capabilities.iter().cloned());
            }
            Err(gap) => capability_gaps.push(gap),
        }
    }
    let seed = format!("{}.{}", episode.episode_id, episode.work.len());
    let route = Route {
        route_id: RouteId::new(crate::derived_id("route", &seed)),
        capability_gaps,
        selected_actors,
        role_assignments,
        coalition_id: coalition.coalition_id.clone(),
        membership_version: coalition.version,
        capability_contract_refs,
        workflow_options,
        disclosure_plan_ref: DisclosureId::from(INTERNAL_DISCLOSURE),
        allocation_ref: ledger::obligation_budget(&episode.obligation_id),
        extensions: None,
    };
    services::write(
        view,
        PayloadId::new(crate::derived_id("pl.route", &seed)),
        services::actor_ref(ProducerRole::Router),
        work::lineage(episode, Vec::new()),
        services::internal_disclosure(view)?,
        route,
        now,
    )
}

/// The members of a coalition that a route assigns somebody to, and whom.
#[must_use]
pub fn assigned<'a>(coalition: &'a Coalition, route: &'a Route) -> Vec<(&'a Member, &'a ActorId)> {
    let stands_in = |member: &Member, assignment: &RoleAssignment| {
        assignment.role == member.role
            && (assignment.actor == member.actor || member.alternatives.contains(&assignment.actor))
    };
    let whom = |member: &'a Member| route.role_assignments.iter().find(|assignment| stands_in(member, assignment));
    coalition.members.iter().filter_map(|member| Some((member, &whom(member)?.actor))).collect()
}

/// Records a route, or refuses it with everything that speaks against it. Who drafted it is trusted for nothing.
pub(crate) fn intake(
    deciding: &mut Deciding<'_>,
    route: &Route,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let denials = inadmissible(deciding.view, route, payload, deciding.at);
    if !denials.is_empty() {
        return deciding.refuse(payload.id().into(), Some(payload.content_digest()), denials);
    }
    let reference = record_payload(deciding, payload, auth, Vec::new(), Vec::new())?;
    Ok(Reply::Recorded(vec![reference]))
}

fn inadmissible(view: &View, route: &Route, payload: &Payload, at: &Moment) -> Vec<Denial> {
    let mut denials = Vec::new();
    let obligation_id = payload.envelope().obligation_ids.first();
    let registered = obligation_id.and_then(|id| coalition::of(view, id));
    let registered = registered.filter(|coalition| coalition.coalition_id == route.coalition_id);
    let Some(registered) = registered else {
        let reason = "no such coalition works on the obligation";
        return vec![Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&route.coalition_id)];
    };
    if branch!("route.membership_stale", route.membership_version != registered.version) {
        let reason = "the membership of the coalition has another version";
        denials.push(Denial::new(Code::MembershipStale, CheckKind::Resolution, reason).of(route.membership_version));
    }
    let assigned = assigned(registered, route);
    for assignment in &route.role_assignments {
        let member =
            assigned.iter().find(|(member, actor)| member.role == assignment.role && **actor == assignment.actor);
        let selected = route.selected_actors.iter().any(|selected| selected.actor_id == assignment.actor);
        let authorized = selected && may_work(view, &assignment.actor);
        let Some((member, actor)) = member.filter(|_| branch!("route.actor_authorized", authorized)) else {
            let reason = "the coalition does not authorize this actor for this role";
            denials.push(Denial::new(Code::MissingAuthority, CheckKind::Authority, reason).of(&assignment.actor));
            continue;
        };
        denials.extend(member.capabilities.iter().filter_map(|cited| verify(view, cited, actor, &at.now).err()));
    }
    let (_, gaps) = catalogue::lookup(view, &registered.needs);
    let unfilled =
        registered.members.iter().filter(|member| !assigned.iter().any(|(filled, _)| filled.role == member.role));
    let untold = gaps.into_iter().map(|gap| gap.need).chain(unfilled.map(|member| member.role.clone()));
    for need in untold.filter(|need| !route.capability_gaps.iter().any(|gap| gap.need == *need)) {
        if branch!("route.gap_untold", true) {
            let reason = "the route does not say that nothing meets this need";
            denials.push(Denial::new(Code::CoverageMissing, CheckKind::Resolution, reason).of(&need));
        }
    }
    denials
}

/// Why work may not be sent: its recipient is not whom the route names, or is not any more what was verified.
pub(crate) fn objections(view: &View, episode: &Episode, work: &Work, recipient: &ActorId, at: &Moment) -> Vec<Denial> {
    let Some(registered) = coalition::of(view, &episode.obligation_id) else {
        return Vec::new();
    };
    let route = episode.route.as_ref().and_then(|id| view.routes.get(id));
    let Some(route) = route.filter(|route| route.coalition_id == registered.coalition_id) else {
        let reason = "the work of a coalition is routed before it is sent";
        return vec![Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&registered.coalition_id)];
    };
    let named =
        assigned(registered, route).into_iter().find(|(member, actor)| member.role == work.role && *actor == recipient);
    let Some((member, actor)) = named.filter(|_| branch!("route.recipient_named", true)) else {
        let reason = "the route names somebody else; another endpoint takes another route";
        return vec![Denial::new(Code::EndpointMismatch, CheckKind::Resolution, reason).of(recipient)];
    };
    member.capabilities.iter().filter_map(|cited| verify(view, cited, actor, &at.now).err()).collect()
}

/// What nobody on a route does, for people.
#[must_use]
pub fn unfilled(route: &Route) -> Text {
    let gaps = route.capability_gaps.iter().map(|gap| format!("{}: {}", gap.need, gap.reason));
    crate::intake::bounded(&gaps.collect::<Vec<_>>().join("; "))
}
