//! What a deployment may name and which values can hold: one table, read against the whole file.
//!
//! Each row says for a pattern of paths what must hold there. What a type alone can tell is told by reading it; what the
//! core decides at the founding is asked of the core itself, on a founding that is thrown away. Deliberately lacks the
//! world: nothing is looked at but whether a file stands where the store is to be.

use super::declared::{Declared, Kind};
use super::fits;
use super::paths;
use super::source::{Misfit, Source};
use Kind as K;
use Must::{Against, AtLeastOne, By, Later, Named, Period, Text, Word};
use closer_contracts::fault::Fault;
use closer_contracts::time::Timestamp;
use serde_json::Value;

/// What must hold of a value.
pub(super) enum Must {
    /// It is the id of something declared, of one of these kinds.
    Named(&'static [Kind]),
    /// It is one of these words.
    Word(&'static [&'static str]),
    /// It is a time to come.
    Later,
    /// Of these two members the first is earlier than the second.
    Period(&'static str, &'static str),
    /// It is 1 or more.
    AtLeastOne,
    /// It is text, and not empty.
    Text,
    /// Whatever this says of the value itself. A fault's path counts from the value.
    By(fn(&Declared, &Value) -> Result<(), Fault>),
    /// Whatever this says of the value beside the other declarations; it is handed the value's path too.
    Against(fn(&Declared, &str, &Value) -> Result<(), Fault>),
}

/// The categories that something on record is released under.
const CATEGORIES: &[&str] = &[
    "goal",
    "constraint",
    "grant",
    "claim",
    "method",
    "obligation",
    "dependency",
    "evidence",
    "receipt",
    "confession",
    "incident",
    "input",
    "position",
    "skill",
];

/// The table: where, and what must hold there.
#[rustfmt::skip]
pub(super) const CHECKS: &[(&str, Must)] = &[
    ("run.store", By(fits::store)),
    ("prepare.*.program", By(fits::program)),
    ("prepare.*.creates", Text),
    ("companion.*.program", By(fits::program)),
    ("mcp_server.*.program", By(fits::program)),
    ("companion.*.ready_ms", AtLeastOne),
    ("hook.*.tool", Text),
    ("hook.*.operation", Named(&[K::Operation])),
    ("hook.*.obligation_id", Named(&[K::Obligation])),

    ("profile.user", Named(&[K::Identity])),
    ("profile.restrictive_authority", Named(&[K::Identity])),
    ("profile.deadline_policy", Named(&[K::DeadlinePolicy])),
    ("profile.restrictive_events.*.source", Named(&[K::Source])),
    ("profile.restrictive_events.*.change_kind", Named(&[K::Change])),
    ("profile.restrictive_events.*.issuer", Named(&[K::Appointment])),
    ("profile.restrictive_events.*.action.revoke_grant", Named(&[K::Grant])),
    ("profile.restrictive_events.*.action.suspend_eligibility.operation", Named(&[K::Operation])),
    ("profile.restrictive_events.*.action.suspend_eligibility.grant_id", Named(&[K::Grant])),
    ("profile.restrictive_events.*.action.suspend_eligibility.obligation_id", Named(&[K::Obligation])),
    ("profile.restrictive_events.*.action.suspend_eligibility.targets", Against(fits::targets)),
    ("profile.disclosure_rules.*.recipient", Named(&[K::Identity])),
    ("profile.disclosure_rules.*.categories.*", Word(CATEGORIES)),
    ("profile.limits.*", AtLeastOne),

    ("identity.*.appointed_by", Named(&[K::Identity])),
    ("identity.*.capabilities.*", Named(&[K::Capability])),
    ("identity.*.keys.*", Period("not_before", "not_after")),
    ("identity.*.keys.*.not_after", Later),
    ("source.*.emitters.*", Named(&[K::Identity])),
    ("source.*.scope", Against(fits::scope)),

    ("readback_method.*.source", Named(&[K::ObservedSource])),
    ("readback_method.*.contract", By(fits::readback_contract)),
    ("readback_method.*.contract.**.program", By(fits::program)),
    ("readback_method.*.contract.openssl", By(fits::program)),
    ("operation.*.readback_method", Against(fits::readback_method)),
    ("operation.*.identifying_parameters.*", Against(fits::identifying_parameter)),
    ("operation.*.verification.identity", Named(&[K::Identity])),
    ("operation.*.verification.expires_at", Later),
    ("operation.*.contract", Against(fits::operation_contract)),
    ("operation.*.contract.**.program", By(fits::program)),

    ("rule.*.body.age_ms_max", AtLeastOne),
    ("rule.*.body.shown.targets", Against(fits::shown_targets)),
    ("rule.*.body.shown.expectations", By(fits::agreement)),
    ("policy.*.body.escalate_to", Named(&[K::Identity])),
    ("policy.*.body.after_ms", AtLeastOne),
    ("policy.*.body.replace_for_ms", AtLeastOne),
    ("policy.*.body.review_within_ms", AtLeastOne),
    ("appointment.*.issuer", Named(&[K::Identity])),
    ("appointment.*.operations.*", Named(&[K::Operation])),
    ("appointment.*.targets.*", Against(fits::targets)),
    ("appointment.*.reconcile_within_ms", AtLeastOne),
    ("appointment.*.outstanding_max", AtLeastOne),
    ("appointment.*.outstanding_per_target_max", AtLeastOne),
    ("appointment.*.independent_owner", Named(&[K::Identity])),
    ("appointment.*.escalation_policy_ref", Named(&[K::EscalationPolicy])),
    ("appointment.*.expires_at", Later),

    ("goal.*.scope", Against(fits::scope)),
    ("constraint.*.scope", Against(fits::scope)),
    ("constraint.*.operations.*", Named(&[K::Operation])),
    ("constraint.*.targets.*", Against(fits::targets)),
    ("constraint.*.bounds.*.operation", Named(&[K::Operation])),
    ("constraint.*.bounds.*", Against(fits::bound)),
    ("grant.*.authenticated_issuer.identity", Named(&[K::Identity])),
    ("grant.*.allowed_operations.*", Named(&[K::Operation])),
    ("grant.*.targets.*", Against(fits::targets)),
    ("grant.*.parameter_bounds.*.operation", Named(&[K::Operation])),
    ("grant.*.parameter_bounds.*", Against(fits::bound)),
    ("grant.*.resource_bounds.calls", AtLeastOne),
    ("grant.*.resource_bounds.time_ms", AtLeastOne),
    ("grant.*.resource_bounds.concurrency", AtLeastOne),
    ("grant.*.expiry", Later),
    ("grant.*.delegability.named.delegates.*", Named(&[K::Identity])),
    ("grant.*.revocation.may_revoke.*", Named(&[K::Identity])),
    ("claim.*.sufficiency_rule_ref", Against(fits::sufficiency_rule)),
    ("method.*.dependencies.*", Named(&[K::Item])),
    ("dependency.*.premise", Named(&[K::Item])),
    ("dependency.*.dependent", Named(&[K::Item])),
    ("declaration.*.authenticated_issuer.identity", Named(&[K::Identity])),
    ("declaration.*.scope", Against(fits::scope)),
    ("declaration.*.existing_grants.*", Named(&[K::Grant])),
    ("declaration.*.effective_period", Period("from", "to")),
    ("declaration.*.effective_period.to", Later),

    ("capability.*.endpoints.*.identity", Named(&[K::Identity])),
    ("capability.*.endpoints.*.expires_at", Later),
    ("skill.*.workflows.*", Named(&[K::Item])),
    ("skill.*.methods.*", Named(&[K::Item])),
    ("coalition.*.obligations.*", Named(&[K::Obligation])),
    ("coalition.*.members.*.actor", Named(&[K::Participant])),
    ("coalition.*.members.*.alternatives.*", Named(&[K::Participant])),
    ("coalition.*.inquiry.seal_within_ms", AtLeastOne),

    ("obligation.*.scope", Against(fits::scope)),
    ("obligation.*.resolution_conditions.*.evidence_rule_ref", Against(fits::sufficiency_rule)),
    ("obligation.*.dependencies.*.watch.id", Named(&[K::Item])),
    ("obligation.*.dependencies.*.watch.scope", Against(fits::scope)),
    ("obligation.*.dependencies.*.watch.change_kinds.*", Named(&[K::Change])),
    ("obligation.*.responsible_owner", Named(&[K::Identity])),
    ("obligation.*.authority_boundary.*", Named(&[K::Constraint, K::Grant])),
    ("obligation.*.closure_authority", Named(&[K::Identity])),
    ("obligation.*.trigger_gap.responsible_owner", Named(&[K::Identity])),
    ("reentry.*.event_sources.*.source_id", Named(&[K::Source])),
    ("reentry.*.expires_at", Later),
    ("reentry.*.refresh_policy_ref", Named(&[K::RefreshPolicy])),
    ("reentry.*.expiry_policy_ref", Named(&[K::ExpiryPolicy])),
    ("reentry.*.predicate.**.scope_ref", Against(fits::scope)),
    ("reentry.*.predicate.**.permitted_source_refs.*", Named(&[K::Source])),
    ("reentry.*.predicate.**.dependency_ref", Named(&[K::Item])),
    ("reentry.*.predicate.**.recipient_ref", Named(&[K::Identity])),

    ("observation.*.method", Named(&[K::ReadbackMethod])),
    ("observation.*", Against(fits::observed_target)),
    ("observation.*.obligation_id", Named(&[K::Obligation])),
    ("observation.*.every_ms", AtLeastOne),
    ("observation.*.event.source_id", Named(&[K::ObservedSource])),
    ("observation.*.event", Against(fits::observed_change)),

    ("participant.*.identity", Named(&[K::Participant])),
    ("http.body_bytes_max", AtLeastOne),
    ("http.requests_per_minute", AtLeastOne),
    ("http.connections_max", AtLeastOne),
    ("http.session_ms", AtLeastOne),
    ("http.person.*.identity", Named(&[K::Identity])),
    ("http.person.*.restricts_as", Named(&[K::Appointment])),
    ("http.webhook.*.identity", Named(&[K::Identity])),
    ("http.webhook.*.source_id", Named(&[K::Source])),
    ("notify.remind_every_ms", AtLeastOne),
    ("participant.*", By(fits::participant)),
    ("participant.*.rules.*.items.*", By(fits::agreement)),
    ("participant.*.rules.*.items", By(fits::agreement)),
    ("participant.*.rules.*.absent.*", By(fits::agreement)),
    ("participant.*.rules.*.when", By(fits::agreement)),
    ("participant.*.rules.*.demands", By(fits::agreement)),
    ("participant.*.rules.*.assess.*.proposition_id", Named(&[K::Proposition])),
    ("participant.*.rules.*.propose.*.operation", Named(&[K::Operation])),
    ("participant.*.rules.*.propose.*.expected_postcondition.expectations", By(fits::agreement)),
];

/// The sections that a run of a founded space reads again. What the file founds is then the record's, and the names in
/// these sections are looked up there.
const READ_AGAIN: [&str; 4] = ["run.", "companion.", "observation.", "participant."];

/// When a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// Before a space is founded with it.
    Founding,
    /// For a run, of a space that may be founded long since.
    Run,
}

/// Holds a deployment to the table, and tells the first row that does not hold, by place in the file.
pub(super) fn check(source: &Source, declared: &Declared, occasion: Occasion) -> Result<(), Misfit> {
    let applies = |pattern: &str, must: &Must| match occasion {
        Occasion::Founding => true,
        Occasion::Run => READ_AGAIN.iter().any(|section| pattern.starts_with(section)) && !must.asks_for_names(),
    };
    let rows = CHECKS.iter().filter(|(pattern, must)| applies(pattern, must));
    let misfits = rows.flat_map(|(pattern, must)| {
        let found = paths::find(&declared.file, pattern).into_iter();
        found.filter_map(|(path, value)| {
            let fault = must.hold(declared, &path, value).err()?;
            Some(source.misfit(written(&paths::join(&path, &fault.path)), fault.reason))
        })
    });
    misfits.min_by_key(|misfit| (misfit.line, misfit.column)).map_or(Ok(()), Err)
}

/// What is derived from a member of another name is told at that member.
const WRITTEN_AS: [(&str, &str); 3] = [
    (".verification.identity", ".verified_by"),
    (".verification.expires_at", ".verified_until"),
    (".authenticated_issuer.identity", ".authenticated_issuer"),
];

fn written(path: &str) -> String {
    let renamed = WRITTEN_AS.iter().find_map(|(end, name)| Some(format!("{}{name}", path.strip_suffix(end)?)));
    renamed.unwrap_or_else(|| path.to_owned())
}

impl Must {
    fn asks_for_names(&self) -> bool {
        matches!(self, Named(_) | Against(_))
    }

    fn hold(&self, declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
        let holds = |holds: bool, reason: &dyn Fn() -> String| match holds {
            true => Ok(()),
            false => Err(Fault::schema(reason())),
        };
        match self {
            Named(kinds) => match value.as_str() {
                // A place in a draft is filled from what is at hand, and judged there.
                Some(name) if !(path.starts_with("participant.") && name.contains("{{")) => declared.named(kinds, name),
                Some(_) | None => Ok(()),
            },
            Word(words) => match value.as_str() {
                Some(word) => holds(words.contains(&word), &|| {
                    format!("there is no `{word}`; write one of: {}", words.join(", "))
                }),
                None => Ok(()),
            },
            Later => {
                let time = value.as_str().and_then(|text| Timestamp::parse(text).ok());
                let over = time.filter(|time| *time <= declared.now);
                holds(over.is_none(), &|| {
                    format!("{} is over already; write a time to come, such as `now+30d`", value.as_str().unwrap_or(""))
                })
            }
            Period(from, to) => {
                let [from_at, to_at] = [from, to].map(|name| Timestamp::parse(value.get(*name)?.as_str()?).ok());
                let empty = from_at.zip(to_at).is_some_and(|(from, to)| from >= to);
                let end = holds(!empty, &|| format!("this is not later than `{from}`: the time between them is empty"));
                end.map_err(|fault| fault.within(to))
            }
            AtLeastOne => holds(value.as_u64() != Some(0), &|| "0 would mean never; write 1 or more".to_owned()),
            Text => holds(value.as_str() != Some(""), &|| "this is empty; leave it out or say what it is".to_owned()),
            By(check) => check(declared, value),
            Against(check) => check(declared, path, value),
        }
    }
}
