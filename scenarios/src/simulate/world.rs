//! What a run is about: the deployment it founds and the participants that answer in it, honest or not.

use crate::founding::{Deployment, grant, identity, operation, proposition, scope};
use crate::space::Answer;
use crate::worker;
use closer_contracts::audit::{Delegability, Grant};
use closer_contracts::canonical::{digest_of, hash_parts};
use closer_contracts::id::{EvidenceId, ObligationId};
use closer_contracts::item::{
    Constraint, Dependency, EffectClass, IdentityKind, Item, Method, OperationEntry, ParameterBound, RepeatSafety,
    Standing,
};
use closer_contracts::profile::{DisclosureRule, Profile};
use closer_contracts::refs::{Amounts, Plain, ProducerRole, Target, TargetPattern};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ActionProposal, ProposedClaim, Relation, Work, WorkResult};
use closer_protocol::View;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The obligation that nothing is done to before the end: then everything behaves, and it must get closed.
pub(super) const CALM: &str = "calm";
/// Its entity.
pub(super) const CALM_ENTITY: &str = "entity-calm";
/// The operation that must not be repeated.
pub(super) const ONCE: &str = "plan.swap";
/// The operation whose entry's verification ends within the hour.
pub(super) const ENDING: &str = "plan.ending";
/// The plan that a constraint forbids and a grant allows.
pub(super) const FORBIDDEN: &str = "forbidden";
/// The operations whose entries are not in order: nobody may carry them out, whatever is granted.
pub(super) const UNFIT: [&str; 6] =
    ["plan.unpinned", "plan.blind", "plan.abroad", "plan.uncapped", "plan.unreleased", "plan.beyond_skill"];
/// The grant that may be passed on, and may be revoked.
pub(super) const LENT: &str = "grant-lent";
/// The obligation whose closing is the user's alone.
pub(super) const KEPT: &str = "kept";
/// A method that another one rests on.
pub(super) const PREMISE: &str = "method-premise";
/// The method that rests on it.
pub(super) const DEPENDENT: &str = "method-dependent";
/// How many calls one obligation may cost: few enough to run out.
const CALLS: u64 = 8;

/// One of several, or none of none.
pub(super) fn one_of<T: Clone>(rng: &mut Xoshiro256PlusPlus, choices: &[T]) -> Option<T> {
    match choices.is_empty() {
        true => None,
        false => choices.get(rng.random_range(0..choices.len())).cloned(),
    }
}

/// The obligation with this number.
pub(super) fn obligation(number: usize) -> ObligationId {
    ObligationId::new(format!("o-{number}"))
}

/// The target of an obligation's proposition.
pub(super) fn target_of(proposition: &str) -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: proposition.into() }
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|_| Timestamp::from_unix_ms(0))
}

/// A grant for targets anywhere, also of a type that no operation has.
fn granted(id: &str, operation: &str, plans: &[&str]) -> Grant {
    let anywhere = TargetPattern { address: "*".into(), ..TargetPattern::exactly(&target_of("")) };
    let accounts = TargetPattern { r#type: "account".into(), ..anywhere.clone() };
    let mut granted = grant(id, operation, plans);
    granted.targets = vec![anywhere, accounts];
    granted
}

/// Grants that end, that run out, that are narrow, that are passed on.
fn grants() -> Vec<Grant> {
    let mut once = granted("grant-once", ONCE, &["basic", "small"]);
    once.resource_bounds = Amounts { calls: Some(12), ..Amounts::default() };
    let mut few = granted("grant-few", "plan.change", &["few"]);
    few.resource_bounds = Amounts { calls: Some(1), ..Amounts::default() };
    let mut short = granted("grant-short", "plan.change", &["large"]);
    short.expiry = instant("2026-01-01T12:30:00Z");
    let mut narrow = granted("grant-narrow", "plan.change", &["wide"]);
    narrow.targets = vec![TargetPattern::exactly(&target_of("p-o-1"))];
    let mut lent = granted(LENT, "plan.change", &["lent"]);
    lent.delegability = Delegability::Named { delegates: vec!["worker".into()], depth: 1 };
    let mut passed_on = granted("grant-passed-on", "plan.change", &["passed on"]);
    passed_on.authenticated_issuer.identity = "worker".into();
    let mut grants = vec![
        granted("grant-1", "plan.change", &["basic", "small", FORBIDDEN]),
        once,
        few,
        short,
        narrow,
        lent,
        passed_on,
        granted("grant-ending", ENDING, &["basic", "small"]),
    ];
    grants.extend(UNFIT.map(|unfit| granted(&format!("grant-{unfit}"), unfit, &["basic"])));
    grants
}

/// An entry of the registry that is in order in every respect.
fn entry(id: &str, repeat_safety: RepeatSafety) -> OperationEntry {
    let mut entry = operation(id, EffectClass::ExternalReversible, repeat_safety);
    entry.capability = "plan.change".into();
    entry
}

/// Entries that are not in order, each in one respect.
fn unfit() -> Vec<OperationEntry> {
    let made = UNFIT.map(|id| {
        let mut entry = entry(id, RepeatSafety::RepeatSafe);
        match id {
            "plan.unpinned" => entry.contract = Plain(serde_json::json!({ "kind": "another" })),
            "plan.blind" => entry.readback_method.id = "plan.read_nowhere".into(),
            "plan.abroad" => {
                entry.worst_case.cost_micros = Some(5);
                entry.worst_case.currency = Some("USD".into());
            }
            "plan.uncapped" => entry.worst_case.calls = None,
            "plan.beyond_skill" => entry.capability = "what.nobody.declares".into(),
            _ => {}
        }
        if id == "plan.unpinned" {
            entry.contract_digest = digest_of(&entry.contract).unwrap_or(entry.contract_digest);
        }
        entry
    });
    made.into()
}

fn method(id: &str) -> Item {
    Item::Method(Method {
        method_id: id.into(),
        text: "How plans are compared.".into(),
        preconditions: vec!["The prices are known.".into()],
        success_criteria: vec!["The cheapest is found.".into()],
        failure_criteria: vec!["A price is missing.".into()],
        exceptions: Vec::new(),
        dependencies: Vec::new(),
        standing: Standing::Current,
    })
}

fn tied(id: &str, premise: &str, dependent: &str) -> Item {
    Item::Dependency(Dependency { dependency_id: id.into(), premise: premise.into(), dependent: dependent.into() })
}

/// Operations of several kinds, grants that end and grants that do not, a budget that runs out, items that rest on others.
pub(super) fn deployment(obligations: usize) -> Deployment {
    let mut ending = entry(ENDING, RepeatSafety::RepeatSafe);
    ending.verification.expires_at = instant("2026-01-01T12:40:00Z");
    let plans = ["basic", "small", "few", "large", "wide", "lent", "passed on", "everything"];
    let constraint = Constraint {
        constraint_id: "constraint-1".into(),
        statement: "Some plans are not wanted.".into(),
        scope: scope(),
        operations: vec!["plan.change".into()],
        targets: Vec::new(),
        bounds: vec![ParameterBound {
            operation: "plan.change".into(),
            parameter: "plan".into(),
            at_least: None,
            at_most: None,
            one_of: Some(plans.iter().map(|&plan| Plain(plan.into())).collect()),
        }],
        standing: Standing::Current,
    };
    let helper = identity("helper", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
    let items = [Item::Operation(entry(ONCE, RepeatSafety::NotRepeatSafe)), Item::Operation(ending)];
    let items = items.into_iter().chain(unfit().into_iter().map(Item::Operation));
    let items = items.chain(grants().into_iter().map(Item::Grant)).chain([
        Item::Constraint(constraint),
        Item::Identity(helper),
        method(PREMISE),
        method(DEPENDENT),
        tied("tie-methods", PREMISE, DEPENDENT),
        tied("tie-grants", LENT, "grant-passed-on"),
    ]);
    let founded = items.fold(Deployment::default(), Deployment::with).with_profile(profile);
    let mut founded = founded.with_obligation(CALM, CALM_ENTITY).with_obligation(KEPT, "entity-kept");
    for (obligation, _) in &mut founded.founding.obligations {
        if obligation.obligation_id.as_str() == KEPT {
            obligation.closure_authority = "user".into();
        }
    }
    (1..=obligations).fold(founded, |deployment, number| {
        deployment.with_obligation(obligation(number).as_str(), &format!("entity-{number}"))
    })
}

fn profile(profile: &mut Profile) {
    let work = profile.disclosure_rules.first().cloned();
    profile.disclosure_rules.extend(work.map(|rule| DisclosureRule { recipient: "helper".into(), ..rule }));
    let provider = profile.disclosure_rules.get(1).cloned();
    let released = UNFIT.into_iter().filter(|unfit| *unfit != "plan.unreleased").chain([ONCE, ENDING]);
    for purpose in released {
        let rule = provider.clone().map(|rule| DisclosureRule { purpose: purpose.into(), ..rule });
        profile.disclosure_rules.extend(rule);
    }
    profile.budget = Amounts { cost_micros: Some(1_000_000), currency: Some("EUR".into()), ..Amounts::default() };
    profile.obligation_budget = Amounts { calls: Some(CALLS), ..Amounts::default() };
    profile.limits.fan_out_max = 3;
}

fn proposal(subject: &str, operation: &str, plan: &str) -> ActionProposal {
    let mut proposal = worker::proposal(subject, plan);
    proposal.operation = operation.into();
    proposal.target = target_of(subject);
    proposal
}

/// A participant whose answer follows from the seed, the subject and how often it was asked about it. Mostly it proposes something; it also finds
/// nothing, reads evidence in any way, claims, and says what is not so: it quotes evidence that does not exist or stands
/// elsewhere, and claims what nothing supports. Asked about the calm obligation it is honest.
pub(super) fn participant(seed: u64) -> Answer {
    Box::new(move |work, view| {
        let subject = work.question.subject_refs.first().map_or("p-calm", |id| id.as_str()).to_owned();
        let asked = view.works.values().filter(|known| known.body.question.subject_refs == work.question.subject_refs);
        let asked = (asked.count() as u64).to_be_bytes();
        let digest = hash_parts("participant", &[subject.as_bytes(), &asked, &seed.to_be_bytes()]);
        let mut rng = Xoshiro256PlusPlus::from_seed(*digest.raw());
        if subject == "p-calm" {
            let honest = vec![proposal(&subject, "plan.change", "basic")];
            return WorkResult { action_proposals: honest, ..worker::nothing(work) };
        }
        let plan = one_of(&mut rng, &["basic", "basic", "basic", "small", "small", "small", "large", "wide"])
            .unwrap_or("basic");
        let operation = one_of(&mut rng, &["plan.change", "plan.change", ONCE, ENDING]).unwrap_or(ONCE);
        let proposals = vec![proposal(&subject, operation, plan)];
        let relations = read_anyhow(&mut rng, view, &subject);
        if !subject.starts_with("p-o-") {
            // A restriction is to be reviewed: nothing in the world shows whether it was right.
            return WorkResult { assessments: relations, ..worker::nothing(work) };
        }
        match rng.random_range(0..24) {
            0 | 1 => worker::nothing(work),
            2 | 3 => WorkResult { assessments: relations, ..worker::nothing(work) },
            4 | 5 => WorkResult { assessments: relations, claims: claims(&subject, plan), ..worker::nothing(work) },
            6 => lie(&mut rng, work, view, &subject),
            7 | 8 => WorkResult { assessments: relations, action_proposals: proposals, ..worker::nothing(work) },
            _ => WorkResult { action_proposals: proposals, ..worker::nothing(work) },
        }
    })
}

fn claims(subject: &str, plan: &str) -> Vec<ProposedClaim> {
    let obligation = subject.trim_start_matches("p-");
    vec![ProposedClaim { proposition: proposition(obligation, plan), applicability: vec!["as observed".into()] }]
}

fn read_anyhow(
    rng: &mut Xoshiro256PlusPlus,
    view: &View,
    subject: &str,
) -> Vec<closer_contracts::work::EvidenceRelation> {
    let relations = [Relation::Supports, Relation::Contradicts, Relation::Irrelevant];
    let relation = one_of(rng, &relations).unwrap_or(Relation::Irrelevant);
    let newest = view.evidence.iter().rev().take(3);
    newest.map(|(id, _)| worker::relation(view, subject, id, relation)).collect()
}

/// The liar: evidence that is not on record, evidence quoted from another place, a claim that nothing supports.
fn lie(rng: &mut Xoshiro256PlusPlus, work: &Work, view: &View, subject: &str) -> WorkResult {
    let mut lie = WorkResult { claims: claims(subject, "large"), ..worker::nothing(work) };
    match rng.random_range(0..3) {
        0 => {
            let nowhere = EvidenceId::from("ev-nowhere");
            lie.assessments = vec![worker::relation(view, subject, &nowhere, Relation::Supports)];
        }
        1 => {
            lie.assessments = view
                .evidence
                .keys()
                .take(2)
                .map(|id| {
                    let mut relation = worker::relation(view, subject, id, Relation::Supports);
                    relation.valid_at.observation_version += 1;
                    relation
                })
                .collect();
        }
        _ => {}
    }
    lie
}
