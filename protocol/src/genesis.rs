//! Founding a space: the profile and registry become the first state; what the user declares is admitted by commits, under
//! a registered deterministic rule that checks issuer, scope and period only. Spec: DEC-31, design §4.

use crate::commit::{self, Routine};
use crate::entry::{ArtifactBody, Entry};
use crate::input::{Moment, Reply, Step};
use crate::sequence::Deciding;
use crate::services::{self, INTERNAL_DISCLOSURE, Lineage};
use crate::view::View;
use crate::{batch::Batch, predicate, streams, urgent};
use closer_contracts::audit::{Declaration, DisclosureReceipt};
use closer_contracts::delta::Change;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, DeltaId, DisclosureId, Key, PayloadId, PurposeId};
use closer_contracts::item::{Item, Policy, PolicyBody, Rule, RuleBody, Standing};
use closer_contracts::obligation::Obligation;
use closer_contracts::profile::Profile;
use closer_contracts::record::{Lane, Reads};
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::ProducerRole;
use std::sync::Arc;

/// Everything a deployment declares at first.
#[derive(Debug, Clone)]
pub struct Founding {
    /// The profile.
    pub profile: Profile,
    /// Registry entries, rules, policies, appointments, grants, constraints and goals.
    pub items: Vec<Item>,
    /// What the user declares.
    pub declarations: Vec<Declaration>,
    /// What is to be kept, with its triggers.
    pub obligations: Vec<(Obligation, Vec<Reentry>)>,
}

/// The rules and policies that the runtime itself relies on.
#[must_use]
pub fn built_in() -> Vec<Item> {
    let decision = |rule: closer_contracts::refs::VersionedRef| {
        Item::Rule(Rule {
            rule_id: rule.id.as_str().into(),
            version: rule.version,
            body: RuleBody::Decision {
                required_roles: vec![crate::adjudicate::validator_role()],
                blocking_classes: Vec::new(),
                deterministic: true,
            },
            standing: Standing::Current,
        })
    };
    let policy =
        |id: &str, body| Item::Policy(Policy { policy_id: id.into(), version: 1, body, standing: Standing::Current });
    vec![
        decision(commit::mechanical_rule()),
        decision(commit::rebase_rule()),
        policy(urgent::RECONCILIATION_REFRESH, PolicyBody::Refresh { rearm: false, after_ms: None }),
        policy(
            urgent::RECONCILIATION_EXPIRY,
            PolicyBody::Expiry { replace_for_ms: None, review_within_ms: 24 * 3_600_000 },
        ),
    ]
}

/// Founds a space. The step's records are the first of its log.
///
/// # Errors
/// The codes of the contracts, with the path of the item that does not fit; the denials of an obligation that is not
/// admissible.
pub fn found(founding: &Founding, at: &Moment, reads: &dyn Reads) -> Result<Step, Fault> {
    let user = founding.profile.user.clone();
    let mut items = founding.items.clone();
    items.extend(services::identities(&user).into_iter().map(Item::Identity));
    items.extend(built_in().into_iter().filter(|built_in| {
        !founding.items.iter().any(|item| item.kind() == built_in.kind() && item.id() == built_in.id())
    }));
    let (genesis, state) = closer_state::genesis(founding.profile.clone(), items)?;
    let empty = Arc::new(View::default());
    let mut deciding =
        Deciding { view: &empty, at, batch: Batch::new(&empty, reads, &at.now, Lane::Reserved), effects: Vec::new() };
    let claims = vec![(streams::state_claim(0), genesis.after.digest)];
    deciding.batch.push("genesis", Entry::Genesis(Arc::new(genesis)), vec![streams::state()], claims)?;
    for receipt in standing_disclosures(founding, &state, at) {
        deciding.batch.artifact(ArtifactBody::from(receipt), Vec::new())?;
    }
    for declaration in &founding.declarations {
        deciding.batch.artifact(ArtifactBody::from(declaration.clone()), Vec::new())?;
    }
    let mut reply = Reply::Recorded(Vec::new());
    for (obligation, reentries) in &founding.obligations {
        installable(obligation, reentries).map_err(|fault| fault.within("obligations"))?;
    }
    for (number, obligations) in founding.obligations.chunks(OBLIGATIONS_PER_DELTA).enumerate() {
        reply = commit::by_rule(&mut deciding, admission(number, obligations))?;
        if let Some(denial) = reply.refusal() {
            let place = denial.offending.clone().unwrap_or_default();
            return Err(Fault::new(denial.code, denial.reason.clone()).within(place).within("obligations"));
        }
    }
    deciding.fire()?;
    let effects = deciding.effects;
    let decided = deciding.batch.finish();
    Ok(Step { append: decided.append, entries: decided.entries, effects, reply })
}

/// Whether this version can evaluate what the obligation is founded to wait for.
fn installable(obligation: &Obligation, reentries: &[Reentry]) -> Result<(), Fault> {
    for reentry in reentries {
        let told = |fault: Fault| fault.within("predicate").within(&reentry.reentry_id);
        predicate::installable(&reentry.predicate).map_err(told)?;
    }
    obligation.trigger_gap.as_ref().map_or(Ok(()), |gap| {
        let place = |fault: Fault| fault.within("trigger_gap.review_predicate").within(&obligation.obligation_id);
        predicate::installable(&gap.review_predicate).map_err(place)
    })
}

/// How many obligations one founding delta admits: a payload is bounded, a deployment is not.
const OBLIGATIONS_PER_DELTA: usize = 64;

fn admission(number: usize, obligations: &[(Obligation, Vec<Reentry>)]) -> Routine {
    let admit = |(obligation, reentries): &(Obligation, Vec<Reentry>)| Change::AdmitObligation {
        obligation: Box::new(obligation.clone()),
        reentries: reentries.clone(),
    };
    Routine {
        delta_id: DeltaId::new(format!("delta.founding.{}", number + 1)),
        changes: obligations.iter().map(admit).collect(),
        support_relations: Vec::new(),
        authorities: Vec::new(),
        lineage: Lineage {
            parents: Vec::<PayloadId>::new(),
            obligation_ids: obligations.iter().map(|(obligation, _)| obligation.obligation_id.clone()).collect(),
            episode_id: None,
            causation_event_id: None,
            budget_ref: None,
        },
    }
}

/// The standing receipts: one for the services among themselves, and one per source for its events (DEC-19).
fn standing_disclosures(founding: &Founding, state: &closer_state::State, at: &Moment) -> Vec<DisclosureReceipt> {
    let receipt = |id: String, purpose: &str, recipient: ActorId| DisclosureReceipt {
        disclosure_id: DisclosureId::new(id.as_str()),
        purpose: PurposeId::from(purpose),
        recipient,
        policy_basis: state.reference(),
        materialized_item_refs: Vec::new(),
        withheld_categories: Vec::new(),
        coverage_receipt_ref: ArtifactId::new(crate::derived_id("coverage", &id)),
        missing_required_context: Vec::new(),
        permitted_use: vec![Key::from(purpose)],
        issued_at: at.now.clone(),
    };
    let sources = founding.items.iter().filter_map(Item::as_source);
    let matcher = services::actor(ProducerRole::Matcher);
    std::iter::once(receipt(INTERNAL_DISCLOSURE.to_owned(), "internal", services::actor(ProducerRole::Semantic)))
        .chain(
            sources.map(|source| {
                receipt(services::intake_disclosure(source.source_id.as_str()), "intake", matcher.clone())
            }),
        )
        .collect()
}
