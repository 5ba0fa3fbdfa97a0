//! Asking for a part of the record: by whom, for what, and what is read before it may be.

use crate::disclosure::{drafted, item, send, two, with_rules, work_rule};
use crate::support::{begun, codes, recorded, refused, since, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::{Confession, ConfessionStatus, DisclosureReceipt, Reconsideration};
use closer_contracts::auth::SigningScope;
use closer_contracts::contract::Check;
use closer_contracts::id::Key;
use closer_contracts::item::ItemKind;
use closer_contracts::reentry::{TimeReached, TypedPredicate};
use closer_contracts::refs::{ActorRef, Amounts, ProducerRole};
use closer_contracts::shows;
use closer_protocol::disclose::{self, Coverage, Export, Request, materialize};
use closer_protocol::entry::{ArtifactBody, Entry};
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply, Submission};
use closer_scenarios::founding::{plan_target, releases};
use closer_scenarios::{Space, worker};
use std::sync::Arc;

pub(crate) fn user() -> ActorRef {
    ActorRef { actor_id: "user".into(), role: ProducerRole::User }
}

pub(crate) fn participant(id: &str) -> ActorRef {
    ActorRef { actor_id: id.into(), role: ProducerRole::Participant }
}

/// The receipt that a reply names.
fn receipt(space: &Space, reply: &Reply) -> Arc<DisclosureReceipt> {
    let Reply::Recorded(references) = reply else { panic!("{reply:?}") };
    space.view().released.get(&Key::new(references[0].id.as_str())).expect("the receipt").clone()
}

/// What goes out under a receipt, without the limits of the view.
fn items(space: &Space, receipt: &DisclosureReceipt) -> Vec<String> {
    let items = materialize(space.view(), receipt).unwrap();
    assert_eq!(items.iter().map(|item| item.reference.clone()).collect::<Vec<_>>(), receipt.materialized_item_refs);
    assert!(items.iter().all(|item| item.check().is_ok()));
    let limits = items.last().expect("the limits of the view");
    let told: Coverage = closer_contracts::canonical::from_value(limits.content.0.clone()).unwrap();
    assert_eq!(told.withheld_categories, receipt.withheld_categories);
    items.iter().rev().skip(1).rev().map(|item| item.reference.id.to_string()).collect()
}

fn observed() -> Space {
    let rules = vec![
        work_rule(),
        releases("plan.change", "provider", &["input"]),
        releases("check the requirement", "auditor", &["obligation"]),
        releases("check the account", "auditor", &["evidence", "grant"]),
        releases("check the worker", "auditor", &["confession"]),
    ];
    let rules = rules.into_iter().map(|mut rule| {
        rule.purpose = rule.purpose.as_str().replace(' ', "_").into();
        rule
    });
    let mut space = Space::found(&with_rules(rules.collect()), worker::proposes("basic")).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    space
}

#[test]
fn two_purposes_on_one_record_release_two_sets_of_items() {
    shows!("CP-4.3-02", "CP-6.5-01"; by "disclose.category_released");
    let mut space = observed();
    let before = space.records().len();
    let requirement = space.ask(user(), "auditor", Some("check_the_requirement"), &[]).unwrap();
    let left = since(&space, before);
    assert_eq!(left.len(), 2, "a receipt and who asked: {left:?}");
    let requirement = receipt(&space, &requirement);
    let account = space.ask(user(), "auditor", Some("check_the_account"), &[]).unwrap();
    let account = receipt(&space, &account);
    let evidence = space.view().evidence.keys().next().expect("the observation").to_string();
    assert_eq!(items(&space, &requirement), ["o-1"]);
    assert_eq!(items(&space, &account), ["grant-1".to_owned(), evidence]);
    assert!(requirement.withheld_categories.contains(&"evidence".into()));
    assert!(account.withheld_categories.contains(&"obligation".into()));
}

#[test]
fn without_a_purpose_nothing_is_released() {
    shows!("CP-4.3-01"; by "disclose.purpose_unstated");
    let mut space = observed();
    let reply = space.ask(user(), "auditor", None, &[]).unwrap();
    assert_eq!(codes(&reply), [Code::DisclosureDenied]);
    let aimless = space.ask(user(), "auditor", Some("out_of_curiosity"), &[]).unwrap();
    let aimless = receipt(&space, &aimless);
    assert!(items(&space, &aimless).is_empty(), "no rule, no item");
}

#[test]
fn what_is_released_for_work_goes_out_in_packets() {
    shows!("CP-4.3-01"; by "disclose.record_asked_for_work", "disclose.item_not_released");
    let mut space = observed();
    for items in [&[][..], &["o-1"][..]] {
        let reply = space.ask(participant("worker"), "worker", Some("work"), items).unwrap();
        assert_eq!(codes(&reply), [Code::DisclosureDenied], "a whole record serves no single work");
    }
    recorded(&space.ask(user(), "auditor", Some("check_the_requirement"), &["o-1"]).unwrap());
}

#[test]
fn the_chain_of_receipts_goes_through_the_same_check() {
    shows!("CP-6.5-04", "CP-C1-06"; by "disclose.item_not_released");
    let mut space = observed();
    let chain = space.view().commits.values().filter_map(|committed| committed.receipt.as_ref());
    let chain: Vec<String> = chain.map(|receipt| receipt.receipt_id.to_string()).collect();
    let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
    assert!(!chain.is_empty());
    let reply = space.ask(user(), "auditor", Some("check_the_account"), &chain).unwrap();
    assert!(codes(&reply).iter().all(|code| *code == Code::DisclosureDenied), "{reply:?}");
    assert_eq!(codes(&reply).len(), chain.len());
    let own = space.ask(user(), "user", Some("backup"), &chain).unwrap();
    let own = receipt(&space, &own);
    assert_eq!(items(&space, &own), chain, "the user's record is the user's");
    let named = space.ask(user(), "auditor", Some("check_the_account"), &["grant-1"]).unwrap();
    let named = receipt(&space, &named);
    assert_eq!(items(&space, &named), ["grant-1"]);
}

#[test]
fn nobody_but_the_user_releases_to_somebody_else() {
    shows!("CP-4.3-11"; by "disclose.asked_for_another");
    let mut allowed = observed();
    let to_auditor =
        |space: &mut Space, who| space.ask(who, "auditor", Some("check_the_requirement"), &["o-1"]).unwrap();
    assert_eq!(codes(&to_auditor(&mut allowed, participant("worker"))), [Code::RedistributionDenied]);
    recorded(&to_auditor(&mut allowed, user()));
    let mut space = two();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet.clone()));
    let reply = space.ask(participant("worker"), "worker-2", Some("work"), &[packet.work.id().as_str()]).unwrap();
    refused(&reply, Code::RedistributionDenied);
    let theirs = space.ask(participant("worker-2"), "worker-2", Some("work"), &[packet.work.id().as_str()]).unwrap();
    refused(&theirs, Code::RedistributionDenied);
    recorded(&space.ask(participant("worker"), "worker", Some("work"), &[packet.work.id().as_str()]).unwrap());
}

#[test]
fn a_position_is_not_read_before_its_release_and_the_attempt_is_on_record() {
    shows!("CP-4.1-10"; by "disclose.read_before_release");
    let mut space = two();
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Act { .. }));
    let position = space.view().results.keys().next().expect("the position").to_string();
    let before = space.records().len();
    let reply = space.ask(participant("worker-2"), "worker-2", Some("work"), &[&position]).unwrap();
    refused(&reply, Code::NotReleased);
    let attempt = |entry: &Entry| matches!(entry, Entry::Refusal(refusal) if refusal.offending.as_ref().is_some_and(|of| of.as_str() == position));
    assert!(since(&space, before).iter().any(attempt));
    recorded(&space.ask(participant("worker"), "worker", Some("work"), &[&position]).unwrap());
}

#[test]
fn a_request_proves_who_asks() {
    shows!("CP-C14-13"; by "intake.producer_established");
    let mut space = observed();
    let request = Request {
        request_id: "request-x".into(),
        recipient: "user".into(),
        purpose: Some("backup".into()),
        items: Vec::new(),
    };
    let auth = space.authenticate(&request.subject(&participant("worker")).unwrap()).unwrap();
    let forged = Submission { content: Arc::new(request), producer: user(), auth };
    refused(&space.submit(Input::Disclose(forged)).unwrap(), Code::Unauthenticated);
}

#[test]
fn a_confession_is_read_by_whom_a_rule_releases_it_to() {
    shows!("CP-8.1-09", "CP-C14-13"; by "disclose.item_not_released");
    let mut space = observed();
    recorded(&space.event("service-a", "price").unwrap());
    let event = space.view().events.values().next().expect("the event").reference();
    let confession = Confession {
        confession_id: "confession-1".into(),
        affected: event,
        affected_obligation: "o-1".into(),
        omitted_check_or_deviation: "I did not look again.".into(),
        supporting_evidence: Vec::new(),
        effects: Vec::new(),
        unknowns: Vec::new(),
        cost: Amounts::default(),
        consequence: "It cannot be relied on.".into(),
        status: ConfessionStatus::Open,
        reconsideration: Reconsideration::When(TypedPredicate::TimeReached(TimeReached {
            at: closer_contracts::Timestamp::parse("2026-01-02T00:00:00Z").unwrap(),
        })),
    };
    let body: ArtifactBody = confession.into();
    recorded(&space.submit_artifact(body, participant("worker"), SigningScope::Confession).unwrap());
    let curious = space.ask(participant("worker"), "worker", Some("work"), &["confession-1"]).unwrap();
    refused(&curious, Code::DisclosureDenied);
    let told = space.ask(user(), "auditor", Some("check_the_worker"), &["confession-1"]).unwrap();
    let told = receipt(&space, &told);
    assert_eq!(items(&space, &told), ["confession-1"]);
    let all = space.ask(user(), "auditor", Some("check_the_worker"), &[]).unwrap();
    assert!(receipt(&space, &all).withheld_categories.contains(&"obligation".into()));
}

#[test]
fn what_leaves_proves_what_is_accepted_and_carries_nothing_else() {
    shows!("CP-6.5-01", "CP-4.3-06"; by "disclose.category_released");
    let mut space = observed();
    let reply = space.ask(user(), "auditor", Some("check_the_account"), &[]).unwrap();
    let receipt = receipt(&space, &reply);
    let export = disclose::export(space.view(), &receipt).unwrap();
    let written = serde_json::to_string(&export).unwrap();
    let mut read: Export = serde_json::from_str(&written).unwrap();
    read.verify().unwrap();
    assert_eq!((read.state, read.state_root), (space.view().state.reference(), space.view().state.root()));
    let accepted: Vec<_> = read.items.iter().map(|exported| exported.accepted.is_some()).collect();
    assert_eq!(accepted, [true, false, false], "a grant, an observation, the limits of the view");
    assert!(!written.contains("Is the plan changed?"), "what is withheld is not in it");
    let grant = space.view().state.item(ItemKind::Grant, &"grant-1".into()).expect("the grant").digest;
    assert_eq!(read.items[0].item.reference.digest, grant);
    let other = item("grant-1", "a wider grant");
    read.receipt.materialized_item_refs[0] = other.reference.clone();
    read.items[0].item = other;
    assert_eq!(read.verify().unwrap_err().code, Code::DigestMismatch, "a forged item is under no root");
}
