//! What a run is about: the deployment it founds and the participants that answer in it, honest or not.

use crate::founding::{Deployment, grant, identity, operation, proposition};
use crate::space::Answer;
use crate::worker;
use closer_contracts::canonical::hash_parts;
use closer_contracts::id::{EvidenceId, ObligationId};
use closer_contracts::item::{EffectClass, IdentityKind, Item, RepeatSafety};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{Amounts, ProducerRole, Target, TargetPattern};
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
/// The operation whose entry's verification ends after two hours.
pub(super) const ENDING: &str = "plan.ending";
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

/// Operations of three kinds, grants that end and grants that do not, a budget that runs out.
pub(super) fn deployment(obligations: usize) -> Deployment {
    let anywhere = TargetPattern { address: "*".into(), ..TargetPattern::exactly(&target_of("")) };
    let granted = |id: &str, operation: &str, plans: &[&str]| {
        let mut granted = grant(id, operation, plans);
        granted.targets = vec![anywhere.clone()];
        granted
    };
    let mut once = granted("grant-once", ONCE, &["basic", "small"]);
    once.resource_bounds = Amounts { calls: Some(12), ..Amounts::default() };
    let mut short = granted("grant-short", "plan.change", &["large"]);
    short.expiry = Timestamp::parse("2026-01-02T00:00:00Z").unwrap_or_else(|_| Timestamp::from_unix_ms(0));
    let mut narrow = granted("grant-narrow", "plan.change", &["wide"]);
    narrow.targets = vec![TargetPattern::exactly(&target_of("p-o-1"))];
    let mut ending = operation(ENDING, EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    ending.verification.expires_at =
        Timestamp::parse("2026-01-01T14:00:00Z").unwrap_or_else(|_| Timestamp::from_unix_ms(0));
    ending.capability = "plan.change".into();
    let mut swap = operation(ONCE, EffectClass::ExternalReversible, RepeatSafety::NotRepeatSafe);
    swap.capability = "plan.change".into();
    let founded = Deployment::default()
        .with(Item::Grant(granted("grant-1", "plan.change", &["basic", "small"])))
        .with(Item::Grant(once))
        .with(Item::Grant(short))
        .with(Item::Grant(narrow))
        .with(Item::Grant(granted("grant-ending", ENDING, &["basic", "small"])))
        .with(Item::Operation(swap))
        .with(Item::Operation(ending))
        .with(Item::Identity(identity(
            "helper",
            IdentityKind::Producer,
            &[ProducerRole::Participant],
            &["plan.change"],
        )))
        .with_profile(|profile| {
            let work = profile.disclosure_rules.first().cloned();
            profile.disclosure_rules.extend(work.map(|rule| DisclosureRule { recipient: "helper".into(), ..rule }));
            let provider = profile.disclosure_rules.get(1).cloned();
            for purpose in [ONCE, ENDING] {
                profile
                    .disclosure_rules
                    .extend(provider.clone().map(|rule| DisclosureRule { purpose: purpose.into(), ..rule }));
            }
            profile.obligation_budget = Amounts { calls: Some(CALLS), ..Amounts::default() };
            profile.limits.fan_out_max = 3;
        })
        .with_obligation(CALM, CALM_ENTITY);
    (1..=obligations).fold(founded, |deployment, number| {
        deployment.with_obligation(obligation(number).as_str(), &format!("entity-{number}"))
    })
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
