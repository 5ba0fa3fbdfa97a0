//! Restrictions: an appointed issuer's own, made at once by its statement, and the user's, committed under their authority.
//!
//! The urgent path is an appointed issuer's alone (§7.2). The user needs no appointment: a declaration of theirs carries the
//! same change on the ordinary path, which a running space decides in the order in which it came.

use super::{Answer, Outcome, RestrictDraft, bench, change, words};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::audit::{RestrictionStatement, RestrictiveAction};
use closer_contracts::delta::Change;
use closer_contracts::id::{ActorId, ArtifactId, Key, KeyId, OperationId, RestrictionId, Text};
use closer_contracts::item::{AffectedScope, Item, ItemKind, Restriction, Standing};
use closer_contracts::refs::{ActorRef, ProducerRole, TargetPattern};
use closer_contracts::refusal::RefusalCode;
use closer_protocol::{Input, Reply, View};
use serde_json::json;

/// How long a restriction may wait for its review unless an appointment or the caller says less: a day.
const RECONCILE_MS: u64 = 24 * 3_600_000;

/// What a draft restricts.
fn action(draft: &RestrictDraft) -> RestrictiveAction {
    let scope = match (&draft.grant_id, &draft.targets, &draft.operation, &draft.obligation_id) {
        (Some(grant_id), ..) => return RestrictiveAction::RevokeGrant(grant_id.clone()),
        (None, Some(targets), operation, _) => {
            AffectedScope::Target { operation: operation.clone(), targets: targets.clone() }
        }
        (None, None, Some(operation), _) => AffectedScope::Operation { operation: operation.clone() },
        (None, None, None, Some(obligation_id)) => AffectedScope::Obligation { obligation_id: obligation_id.clone() },
        (None, None, None, None) => AffectedScope::Space {},
    };
    RestrictiveAction::SuspendEligibility(scope)
}

/// What a draft names and nobody knows: a grant, an obligation or an operation by a name that nothing has.
fn unknown(view: &View, draft: &RestrictDraft) -> Option<Answer> {
    let registered = |id: &&OperationId| view.state.operation(id).is_some();
    if let Some(operation) = draft.operation.as_ref().filter(|id| !registered(id)) {
        return Some(Answer::not_found("operation", operation.as_str()));
    }
    let grant = draft.grant_id.as_ref().filter(|id| view.state.grant(id).is_none());
    let obligation = draft.obligation_id.as_ref().filter(|id| view.state.obligation(id).is_none());
    grant
        .map(|id| Answer::not_found("grant", id.as_str()))
        .or_else(|| obligation.map(|id| Answer::not_found("obligation", id.as_str())))
}

fn statement(space: &dyn Space, issuer: &ActorId, draft: RestrictDraft) -> RestrictionStatement {
    let view = space.view();
    let allowed = view.state.appointment(issuer).map_or(RECONCILE_MS, |appointment| appointment.reconcile_within_ms);
    RestrictionStatement {
        statement_id: ArtifactId::new(space.fresh("restriction")),
        issuer: issuer.clone(),
        action: action(&draft),
        reason: draft.reason,
        evidence_refs: Vec::new(),
        reconciliation_due_at: Some(space.moment().now.plus_ms(draft.reconcile_within_ms.unwrap_or(allowed))),
    }
}

/// The statement that would restrict, for an issuer who signs it elsewhere.
pub(super) fn draft(space: &dyn Space, issuer: &ActorId, draft: RestrictDraft) -> Answer {
    if let Some(answer) = unknown(&space.view(), &draft) {
        return answer;
    }
    let statement = statement(space, issuer, draft);
    Answer::done(json!({ "statement": statement }), vec!["nothing is recorded".to_owned()])
}

/// Restricts as `identity`: by its statement where it is appointed, under the user's authority where it is the user.
pub(super) async fn restrict(space: &dyn Space, identity: &ActorId, draft: RestrictDraft) -> Result<Answer, Error> {
    let view = space.view();
    if let Some(answer) = unknown(&view, &draft) {
        return Ok(answer);
    }
    let nowhere = elsewhere(&view, &draft);
    let mut answer = match (view.state.appointment(identity).is_some(), view.state.is_user(identity)) {
        (true, _) => {
            let statement = statement(space, identity, draft);
            let reply = bench::submit(space, statement, identity, ProducerRole::Issuer).await?;
            told(&reply)
        }
        (false, true) => under_the_users_authority(space, &view, identity, draft).await?,
        // That it may not is the core's to say, and to record.
        (false, false) => {
            let roles = view.state.identity(identity).map(|identity| identity.roles.clone()).unwrap_or_default();
            let role = roles.first().copied().unwrap_or(ProducerRole::Issuer);
            let reply = bench::submit(space, statement(space, identity, draft), identity, role).await?;
            explained(&view, told(&reply))
        }
    };
    if let (Some(targets), Outcome::Done) = (nowhere, answer.outcome) {
        let TargetPattern { r#type, account, address } = targets;
        let at = format!("{type} {account} {address}", type = r#type);
        answer.text.push(format!(
            "note: no grant and no action on record has a target like `{}`: is that what was meant?",
            words::told_id(&at)
        ));
    }
    Ok(answer)
}

/// The targets of a draft where nothing on record has such a target.
fn elsewhere(view: &View, draft: &RestrictDraft) -> Option<TargetPattern> {
    draft.targets.clone().filter(|targets| !meets_something(view, targets))
}

/// Whether anything on record lies in a pattern: a grant's targets or an action's.
fn meets_something(view: &View, targets: &TargetPattern) -> bool {
    let mut grants = view.state.items(ItemKind::Grant);
    grants.any(|accepted| {
        matches!(&accepted.item, Item::Grant(grant) if grant.targets.iter().any(|known| known.overlaps(targets)))
    }) || view.actions.values().any(|action| targets.covers(&action.body.target))
}

/// Lifts a restriction as `identity`: by a reassessment under the user's authority and nothing else (§7.2).
pub(super) async fn lift(
    space: &dyn Space,
    identity: &ActorId,
    restriction_id: RestrictionId,
    reason: Text,
) -> Result<Answer, Error> {
    let view = space.view();
    let installs = |change: &Change| matches!(change, Change::SuspendEligibility { restriction } if restriction.restriction_id == restriction_id);
    let installed = view.commits.values().find(|committed| committed.commit.delta.changes.iter().any(installs));
    let Some(urgent_receipt) = installed.and_then(|committed| committed.receipt_ref.clone()) else {
        return Ok(Answer::not_found("restriction", restriction_id.as_str()));
    };
    let what = format!("lifted {restriction_id}");
    let lift = Change::LiftRestriction { restriction_id, urgent_receipt, reason };
    change::commit(space, identity, &what, Vec::new(), vec![lift]).await
}

/// Hands in a statement that its issuer has signed.
pub(super) async fn hand_in(
    space: &dyn Space,
    statement: RestrictionStatement,
    signature: (KeyId, Key),
) -> Result<Answer, Error> {
    let view = space.view();
    let producer = ActorRef { actor_id: statement.issuer.clone(), role: ProducerRole::Issuer };
    let reply = match space.artifact(statement.into(), producer, Some(&signature)) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    Ok(explained(&view, told(&reply)))
}

fn told(reply: &Reply) -> Answer {
    let what = match reply {
        Reply::Recorded(references) if references.is_empty() => "already in force; the repeat is on record",
        Reply::Recorded(_) | Reply::Refused(_) => "restricted",
    };
    Answer::replied(reply, what)
}

/// A refusal for want of an appointment, with who may restrict.
fn explained(view: &View, mut answer: Answer) -> Answer {
    if answer.code != Some(RefusalCode::MissingAuthority) {
        return answer;
    }
    let appointments = view.state.items(ItemKind::Appointment);
    let appointments = appointments
        .filter_map(|accepted| if let Item::Appointment(held) = &accepted.item { Some(held) } else { None })
        .filter(|appointment| appointment.standing == Standing::Current);
    let appointed: Vec<&str> = appointments.map(|appointment| appointment.issuer.as_str()).collect();
    let appointed = if appointed.is_empty() { "nobody".to_owned() } else { appointed.join(", ") };
    let user = super::default_identity(view);
    answer.text.push(format!("the profile lets {user} restrict, who appoints {appointed}"));
    answer
}

async fn under_the_users_authority(
    space: &dyn Space,
    view: &View,
    identity: &ActorId,
    draft: RestrictDraft,
) -> Result<Answer, Error> {
    let (change, in_force) = match action(&draft) {
        RestrictiveAction::RevokeGrant(grant_id) => {
            let revoked = view.state.grant(&grant_id).is_some_and(|grant| grant.revocation.revoked_by.is_some());
            (Change::RevokeGrant { grant_id, reason: draft.reason.clone() }, revoked)
        }
        RestrictiveAction::SuspendEligibility(affected_scope) => {
            let mut known = view.state.restrictions_in_force();
            let in_force = known.any(|restriction| restriction.affected_scope == affected_scope);
            let restriction = Restriction {
                restriction_id: RestrictionId::new(space.fresh("restriction")),
                affected_scope,
                reason: draft.reason.clone(),
                issued_by: identity.clone(),
                standing: Standing::Current,
            };
            (Change::SuspendEligibility { restriction }, in_force)
        }
    };
    if in_force {
        return Ok(Answer::done(json!({ "recorded": [] }), vec!["already in force; nothing is recorded".to_owned()]));
    }
    change::commit(space, identity, "restricted", Vec::new(), vec![change]).await
}
