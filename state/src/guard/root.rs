//! Where authority comes from: every chain of grants and of appointments ends in the user of the deployment. Spec: SR1,
//! DEC-66.

use crate::denied::{Denied, demand};
use crate::state::State;
use closer_contracts::audit::{Delegability, Grant};
use closer_contracts::id::{ActorId, GrantId, Id};
use closer_contracts::item::{Identity, Item};
use closer_contracts::refs::ProducerRole;
use closer_contracts::{RefusalCode, branch};
use std::collections::BTreeSet;

/// Whether a grant or an identity goes back to the user. It is asked when everything that it can rest on is there.
pub(crate) fn reaches_user(state: &State, item: &Item) -> Result<(), Denied> {
    let reaches = match item {
        Item::Grant(grant) => is_granted(state, grant),
        Item::Identity(identity) => is_appointed(state, identity),
        Item::Goal(_)
        | Item::Constraint(_)
        | Item::Claim(_)
        | Item::Method(_)
        | Item::Obligation(_)
        | Item::Dependency(_)
        | Item::Reentry(_)
        | Item::Restriction(_)
        | Item::Operation(_)
        | Item::ReadbackMethod(_)
        | Item::Source(_)
        | Item::Rule(_)
        | Item::Policy(_)
        | Item::Appointment(_)
        | Item::Coalition(_)
        | Item::Capability(_)
        | Item::Workflow(_)
        | Item::Skill(_)
        | Item::Profile(_) => return Ok(()),
    };
    demand(branch!("state.chain_reaches_user", reaches), || {
        Denied::new(RefusalCode::MissingAuthority, item.id(), "the chain of authority does not end in the user")
    })
}

/// The user or somebody whom the user has appointed to that role.
fn speaks_as_user(state: &State, actor: &ActorId) -> bool {
    let appointed = |identity: &Identity| identity.roles.contains(&ProducerRole::User) && is_appointed(state, identity);
    state.is_user(actor) || state.identity(actor).is_some_and(appointed)
}

/// The user has issued the grant, or a delegate whom the grant names on which this one depends.
fn is_granted(state: &State, grant: &Grant) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![grant]);
    while let Some(grant) = open.pop() {
        let issuer = &grant.authenticated_issuer.identity;
        if speaks_as_user(state, issuer) {
            return true;
        }
        if seen.insert(&grant.grant_id) {
            let dependent = Id::from(&grant.grant_id);
            let premises = state.premises_of(&dependent).filter_map(|id| state.grant(&GrantId::new(id.as_str())));
            open.extend(premises.filter(|premise| delegates_to(premise, issuer)));
        }
    }
    false
}

fn delegates_to(grant: &Grant, actor: &ActorId) -> bool {
    matches!(&grant.delegability, Delegability::Named { delegates, depth } if *depth > 0 && delegates.contains(actor))
}

/// The user has appointed the identity, or one that goes back to the user in the same way.
fn is_appointed(state: &State, identity: &Identity) -> bool {
    let (mut seen, mut appointing) = (BTreeSet::new(), &identity.appointed_by);
    while seen.insert(appointing) {
        if state.is_user(appointing) {
            return true;
        }
        match state.identity(appointing) {
            Some(identity) => appointing = &identity.appointed_by,
            None => return false,
        }
    }
    false
}
