//! What a goal does not permit, and one structure for several domains. Spec: §11.

use crate::actions::{again, assess, ready};
use crate::support::{claimed, codes, dispatch, recorded};
use closer_contracts::item::{Goal, Item, Rule, RuleBody, Standing};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::work::Relation;
use closer_contracts::{Digest, RefusalCode as Code, shows};
use closer_scenarios::founding::{operation, plan_target, scope};
use closer_scenarios::{Deployment, Space, worker};

/// What a goal might be taken to permit.
const TEMPTING: [&str; 4] = ["market.trade", "outsider.contact", "shop.purchase", "record.disclose"];

#[test]
fn a_goal_to_make_money_permits_nothing() {
    shows!("CP-11-05"; by "monitor.no_such_grant");
    use closer_contracts::item::{EffectClass, RepeatSafety};
    let goal = Goal {
        goal_id: "goal-money".into(),
        declaration: ArtifactRef { id: "declaration-1".into(), digest: Digest::of(b"declaration-1") },
        text: "Make money.".into(),
        scope: scope(),
        standing: Standing::Current,
    };
    let mut deployment = Deployment::default().with(Item::Goal(goal));
    for name in TEMPTING {
        let known = operation(name, EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
        deployment = deployment.with(Item::Operation(known));
    }
    let (mut space, episode_id, payload_id) = ready(&deployment);
    for (number, name) in TEMPTING.into_iter().enumerate() {
        let tried = again(&mut space, &episode_id, &payload_id, |action| {
            action.operation = name.into();
            action.authority_ref = "goal-money".into();
            action.action_id = format!("action-money-{number}").as_str().into();
            action.attempt_id = format!("attempt-money-{number}").as_str().into();
        });
        assess(&mut space, &episode_id, &tried);
        let reply = dispatch(&mut space, &tried);
        assert!(codes(&reply).contains(&Code::MissingAuthority), "{name}: {reply:?}");
    }
    assert_eq!(space.world.effects().len(), 0);
    assert_eq!(space.refusals().unwrap().iter().filter(|code| **code == Code::MissingAuthority).count(), 4);
}

/// A domain: its own standard of evidence, registered as the rule that the obligation names.
fn domain(body: RuleBody) -> Space {
    let mut deployment = Deployment::default();
    for item in &mut deployment.founding.items {
        if let Item::Rule(Rule { rule_id, body: known, .. }) = item
            && rule_id.as_str() == "rule.sufficiency"
        {
            *known = body.clone();
        }
    }
    let claims = Box::new(|work: &_, view: &_| worker::claims(work, view, "basic", Relation::Supports));
    Space::found(&deployment, claims).unwrap()
}

const fn standard(distinct_sources_min: u32, age_ms_max: Option<u64>, unknown_version: bool) -> RuleBody {
    RuleBody::Sufficiency {
        distinct_sources_min,
        age_ms_max,
        accepts_unknown_target_version: unknown_version,
        observation_types: Vec::new(),
        shown: None,
    }
}

/// Observed, then so much later asked.
fn concluded(space: &mut Space, later_ms: u64) -> bool {
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    space.pass(later_ms).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    claimed(space)
}

#[test]
fn one_structure_holds_three_domains_to_three_standards() {
    shows!("CP-11-06"; by "sufficiency.sources_suffice", "sufficiency.young_enough");
    // A prerequisite of learning: one observation of any age. Recovery from an incident: a fresh one. A claim of research:
    // two independent sources.
    let hour = 3_600_000;
    let (learning, incident, research) =
        (standard(1, None, true), standard(1, Some(60_000), true), standard(2, None, true));
    assert!(concluded(&mut domain(learning.clone()), 0) && concluded(&mut domain(learning), hour));
    assert!(concluded(&mut domain(incident.clone()), 0) && !concluded(&mut domain(incident), hour));
    assert!(!concluded(&mut domain(research.clone()), 0) && !concluded(&mut domain(research), hour));
}
