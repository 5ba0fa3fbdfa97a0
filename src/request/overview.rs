//! The space at a glance: what is restricted, which receipts there are, where some words occur.

use super::{Answer, bench, obligation, words};
use closer_contracts::audit::UrgentDetails;
use closer_contracts::id::{ActorId, EvidenceId};
use closer_contracts::item::{AffectedScope, Item, ItemKind, Restriction, Standing};
use closer_contracts::refs::TargetPattern;
use closer_protocol::view::View;
use closer_protocol::{ledger, urgent};
use serde_json::{Value, json};

/// The most entries of each view of the work.
const SHOWN_MAX: usize = 100;

/// Everything in which a person's words occur: obligations by id and question, packets, answers, claims and evidence by id.
pub(super) fn search(view: &View, words: &str) -> Answer {
    let wanted = words.trim().to_lowercase();
    let holds = |text: &str| !wanted.is_empty() && text.to_lowercase().contains(&wanted);
    let mut found: Vec<(&'static str, String, String)> = Vec::new();
    let obligations = obligation::every(view);
    let about = obligations
        .filter(|obligation| holds(obligation.obligation_id.as_str()) || holds(obligation.gap.text.as_str()));
    found.extend(
        about.map(|obligation| ("obligation", obligation.obligation_id.to_string(), obligation.gap.text.to_string())),
    );
    let packets = view.packets.iter().filter(|(id, packet)| {
        let body = &packet.packet.body;
        holds(id.as_str()) || holds(body.question.as_str()) || body.obligation_ids.iter().any(|id| holds(id.as_str()))
    });
    found.extend(packets.map(|(id, packet)| ("packet", id.to_string(), packet.packet.body.question.to_string())));
    let evidence = view
        .evidence
        .iter()
        .filter(|(id, evidence)| holds(id.as_str()) || holds(evidence.body.target_binding.target.address.as_str()));
    found.extend(evidence.map(|(id, evidence)| {
        let binding = &evidence.body.target_binding;
        let text = format!("observation {} of `{}`", binding.observation_version, binding.target.address);
        ("evidence", id.to_string(), text)
    }));
    let receipts = view.commits.iter().filter_map(|(version, committed)| {
        let receipt = committed.receipt.as_ref()?;
        holds(receipt.receipt_id.as_str())
            .then(|| ("receipt", receipt.receipt_id.to_string(), format!("version {version}")))
    });
    found.extend(receipts);
    let text = found.iter().map(|(kind, id, text)| format!("{kind:<11} {id}  {text}")).collect();
    let told: Vec<Value> =
        found.iter().map(|(kind, id, text)| json!({ "kind": kind, "id": id, "text": text })).collect();
    Answer::done(json!({ "found": told }), text)
}

/// What is restricted, by whom and why, and until when each case is to be reconciled.
pub(super) fn restrictions(view: &View) -> Answer {
    let urgent = || {
        view.commits.iter().filter_map(|(version, committed)| {
            let details = committed.receipt.as_ref()?.urgent_details.as_ref()?;
            Some((*version, details))
        })
    };
    let told = |restriction: &Restriction| {
        let case = urgent().find(|(_, details)| {
            details.affected_scope == restriction.affected_scope
                && details.restrictive_authority_ref.as_str() == restriction.issued_by.as_str()
        });
        let covers = words::scope(&restriction.affected_scope);
        let due = case.map(|(_, details)| details.reconciliation_due_at.clone());
        let waits = case.is_some_and(|(version, _)| view.outstanding.contains_key(&version));
        let data = json!({
            "restriction_id": restriction.restriction_id, "covers": covers, "affected_scope": restriction.affected_scope,
            "reason": restriction.reason, "issued_by": restriction.issued_by, "version": case.map(|(version, _)| version),
            "reconcile_by": due, "awaits_reconciliation": waits,
            "independent_owner": case.map(|(_, details)| &details.independent_owner),
            "reconciliation_obligation_id": case.map(|(_, details)| &details.reconciliation_obligation_id),
        });
        let until = due.map_or_else(String::new, |due| format!("; to be reconciled by {}", due.as_str()));
        let text = format!("{covers}: {} (by {}{until})", restriction.reason, restriction.issued_by);
        (data, text)
    };
    // A grant that was revoked at once leaves no restriction behind, only its case.
    let revoked = urgent().filter(|(version, details)| {
        matches!(details.affected_scope, AffectedScope::Grant { .. }) && view.outstanding.contains_key(version)
    });
    let case = |(version, details): (u64, &UrgentDetails)| Restriction {
        restriction_id: format!("case-{version}").into(),
        affected_scope: details.affected_scope.clone(),
        reason: details.reason.clone(),
        issued_by: details.restrictive_authority_ref.as_str().into(),
        standing: Standing::Current,
    };
    let known: Vec<&AffectedScope> =
        view.state.restrictions_in_force().map(|restriction| &restriction.affected_scope).collect();
    let cases: Vec<Restriction> =
        revoked.filter(|(_, details)| !known.contains(&&details.affected_scope)).map(case).collect();
    let (data, text): (Vec<Value>, Vec<String>) = view.state.restrictions_in_force().chain(&cases).map(told).unzip();
    Answer::done(json!({ "restrictions": data }), text)
}

/// Receipts of commits, the newest first.
pub(super) fn receipts(view: &View) -> Answer {
    let listed = view.commits.iter().rev().filter_map(|(version, committed)| {
        let receipt = committed.receipt.as_ref()?;
        let data = json!({
            "version": version, "receipt_id": receipt.receipt_id, "delta_id": receipt.delta_id,
            "committed_at": receipt.committed_at, "admission_path": receipt.admission_path,
            "changes": committed.commit.delta.changes.len(),
        });
        Some((
            data,
            format!(
                "{version:>5}  {}  {}  {}",
                receipt.committed_at.as_str(),
                receipt.admission_path,
                receipt.receipt_id
            ),
        ))
    });
    let (data, text): (Vec<Value>, Vec<String>) = listed.unzip();
    Answer::done(json!({ "receipts": data }), text)
}

/// How many packets wait for an answer.
pub(crate) fn waiting(view: &View) -> usize {
    view.packets.values().filter(|packet| bench::is_waiting(packet)).count()
}

/// Whoever asks, as the registry knows them.
pub(super) fn who(view: &View, identity: &ActorId) -> Answer {
    let shut_out = super::shut_out(view, identity);
    shut_out.unwrap_or_else(|| {
        let registered = view.state.identity(identity);
        let appointed = view.state.appointment(identity).is_some();
        let data = json!({
            "identity": identity, "kind": registered.map(|registered| registered.kind),
            "roles": registered.map(|registered| &registered.roles), "appointed": appointed,
            "governs": view.state.is_user(identity),
        });
        Answer::done(data, vec![identity.to_string()])
    })
}

/// What is used and held of the deployment's budget, where there is a limit.
pub(super) fn budgets(view: &View) -> Answer {
    let balance = view.ledger.balance(&ledger::deployment_budget());
    let limited = || balance.iter().filter(|(.., limit)| limit.is_some());
    let text = limited().map(|(name, used, reserved, limit)| {
        format!("{name:<12} {used} used, {reserved} held, of {}", limit.unwrap_or_default())
    });
    let told = limited().map(|(name, used, reserved, limit)| {
        json!({ "dimension": name, "used": used, "reserved": reserved, "limit": limit })
    });
    Answer::done(json!({ "budgets": told.collect::<Vec<_>>() }), text.collect())
}

/// What an issuer may restrict now, the widest first: as far as its appointment reaches.
pub(super) fn restrictable(view: &View, issuer: &ActorId) -> Answer {
    // The user needs no appointment; whoever else has none restricts nothing.
    let appointment = view.state.appointment(issuer);
    if appointment.is_none() && !view.state.is_user(issuer) {
        return Answer::not_found("appointment", issuer.as_str());
    }
    let items = |kind| view.state.items(kind).map(|accepted| &accepted.item);
    let mut scopes = vec![AffectedScope::Space {}];
    scopes.extend(items(ItemKind::Operation).filter_map(|item| {
        let Item::Operation(operation) = item else { return None };
        Some(AffectedScope::Operation { operation: operation.operation.clone() })
    }));
    scopes.extend(
        obligation::every(view)
            .filter(|obligation| obligation.status.is_open())
            .map(|obligation| AffectedScope::Obligation { obligation_id: obligation.obligation_id.clone() }),
    );
    let mut targets: Vec<AffectedScope> = Vec::new();
    for item in items(ItemKind::Grant) {
        let Item::Grant(grant) = item else { continue };
        if grant.revocation.revoked_by.is_some() {
            continue;
        }
        scopes.push(AffectedScope::Grant { grant_id: grant.grant_id.clone() });
        let exact = grant.targets.iter().filter(|targets| targets.is_exact());
        targets.extend(exact.flat_map(|pattern| {
            grant
                .allowed_operations
                .iter()
                .map(|operation| AffectedScope::Target { operation: Some(operation.clone()), targets: pattern.clone() })
        }));
    }
    targets.extend(view.actions.values().map(|action| AffectedScope::Target {
        operation: Some(action.body.operation.clone()),
        targets: TargetPattern::exactly(&action.body.target),
    }));
    for target in targets {
        if !scopes.contains(&target) {
            scopes.push(target);
        }
    }
    let in_force: Vec<&AffectedScope> =
        view.state.restrictions_in_force().map(|restriction| &restriction.affected_scope).collect();
    let within = |scope: &AffectedScope| appointment.is_none_or(|appointment| urgent::within(view, appointment, scope));
    scopes.retain(|scope| within(scope) && !in_force.contains(&scope));
    scopes.truncate(SHOWN_MAX);
    let told: Vec<Value> =
        scopes.iter().map(|scope| json!({ "covers": words::scope(scope), "affected_scope": scope })).collect();
    let data = json!({
        "issuer": issuer, "independent_owner": appointment.map(|appointment| &appointment.independent_owner),
        "reconcile_within_ms": appointment.map(|appointment| appointment.reconcile_within_ms), "choices": told,
    });
    Answer::done(data, scopes.iter().map(words::scope).collect())
}

/// One piece of evidence, as it was recorded.
pub(super) fn evidence(view: &View, id: &EvidenceId) -> Answer {
    let Some(evidence) = view.evidence.get(id) else {
        return Answer::not_found("evidence", id.as_str());
    };
    let binding = &evidence.body.target_binding;
    let digest = evidence.payload.content_digest();
    let text = vec![
        format!(
            "{id}: observation {} of `{}` of `{}`",
            binding.observation_version, binding.target.address, binding.target.account
        ),
        format!("  recorded   {} {}", evidence.admitted_at.as_str(), words::short(&digest)),
    ];
    let data = json!({ "evidence": &*evidence.body, "admitted_at": evidence.admitted_at, "digest": digest });
    Answer::done(data, text)
}
