//! Selective disclosure: what goes out, to whom and for what, and what does not.

use crate::support::{
    begun, codes, commit, delta, dispatch, endorse, propose, recorded, refused, since, space, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::delta::Change;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::profile::{DisclosureRule, Profile};
use closer_contracts::shows;
use closer_protocol::entry::Entry;
use closer_scenarios::founding::releases;
use closer_scenarios::{Deployment, Space, worker};

/// The user revises the profile.
fn revise(space: &mut Space, change: impl FnOnce(&mut Profile)) {
    let profile = space.view().state.profile().expect("the profile").clone();
    let replaces =
        space.view().state.item(ItemKind::Profile, &(&profile.profile_id).into()).expect("the profile").digest;
    let mut revised = profile;
    revised.version += 1;
    change(&mut revised);
    let changes = vec![Change::Revise { item: Box::new(Item::Profile(revised)), replaces }];
    let authority = space.instruct(&changes).unwrap();
    let delta = delta(space, changes, Vec::new(), vec![authority]);
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    recorded(&commit(space, &delta));
}

fn with_rules(rules: Vec<DisclosureRule>) -> Deployment {
    Deployment::default().with_profile(|profile| profile.disclosure_rules = rules)
}

fn work_rule() -> DisclosureRule {
    releases("work", "worker", &["obligation", "claim", "constraint", "grant", "evidence"])
}

#[test]
fn an_operation_is_granted_and_its_inputs_are_released_by_two_permissions() {
    shows!("CP-6.5-03"; by "disclose.inputs_released");
    let others = [
        releases("plan.change", "worker", &["input"]),
        releases("plan.probe", "provider", &["input"]),
        releases("plan.change", "provider", &["obligation"]),
    ];
    let mut denied =
        Space::found(&with_rules(others.into_iter().chain([work_rule()]).collect()), worker::proposes("basic"))
            .unwrap();
    let episode_id = begun(&mut denied);
    let payload_id = until_dispatch(&mut denied, &episode_id);
    let before = denied.records().len();
    let reply = dispatch(&mut denied, &payload_id);
    assert_eq!(codes(&reply), [Code::DisclosureDenied], "granted, and not released");
    let offending = reply.refusal().and_then(|denial| denial.offending.clone());
    assert_eq!(offending.as_deref(), Some("inputs of plan.change to provider"));
    let told = since(&denied, before);
    assert!(
        told.iter().any(|entry| matches!(entry, Entry::Refusal(refusal) if refusal.code == Code::DisclosureDenied))
    );
    assert_eq!(denied.world.effects().len(), 0);
    revise(&mut denied, |profile| profile.disclosure_rules.push(releases("plan.change", "provider", &["input"])));
    recorded(&dispatch(&mut denied, &payload_id));
    assert_eq!(denied.world.effects().len(), 1);
}

#[test]
fn a_release_withdrawn_after_the_assessment_holds_at_dispatch() {
    shows!("CP-6.5-03"; by "monitor.inputs_not_released");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    revise(&mut space, |profile| profile.disclosure_rules.retain(|rule| rule.recipient.as_str() != "provider"));
    refused(&dispatch(&mut space, &payload_id), Code::DisclosureDenied);
    assert_eq!(space.world.effects().len(), 0);
}
