//! Selective disclosure: what goes out, to whom and for what, and what does not.

use crate::support::{
    begun, changed, codes, commit, delta, dispatch, endorse, propose, recorded, refused, since, space, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase};
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::canonical::{self, Canonical};
use closer_contracts::contract::Check;
use closer_contracts::delta::Change;
use closer_contracts::envelope::{Body, DisclosureRef};
use closer_contracts::example::{Example, Extent};
use closer_contracts::handoff::Handoff;
use closer_contracts::id::EpisodeId;
use closer_contracts::item::{Constraint, IdentityKind, Item, ItemKind};
use closer_contracts::profile::{DisclosureRule, Profile};
use closer_contracts::refs::{ArtifactRef, Plain, ProducerRole};
use closer_contracts::work::{ContextItem, Work};
use closer_contracts::{Digest, shows};
use closer_protocol::disclose::Coverage;
use closer_protocol::entry::Entry;
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply};
use closer_protocol::services;
use closer_protocol::work::{self, Packet};
use closer_scenarios::founding::{identity, plan_target, releases};
use closer_scenarios::{Deployment, Space, worker};

/// The user revises the profile.
pub(crate) fn revise(space: &mut Space, change: impl FnOnce(&mut Profile)) {
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

pub(crate) fn with_rules(rules: Vec<DisclosureRule>) -> Deployment {
    Deployment::default().with_profile(|profile| profile.disclosure_rules = rules)
}

pub(crate) fn work_rule() -> DisclosureRule {
    releases("work", "worker", &["obligation", "claim", "constraint", "grant", "evidence"])
}

#[test]
fn an_operation_is_granted_and_its_inputs_are_released_by_two_permissions() {
    shows!("CP-6.5-03", "CP-4.3-07"; by "disclose.inputs_released");
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

/// A packet for the first participant in this role, drafted and not yet sent.
pub(crate) fn drafted(space: &Space, episode_id: &EpisodeId, role: &str) -> Packet {
    let view = space.view();
    let episode = view.episodes.get(episode_id).expect("the episode");
    work::draft(view, episode, &"worker".into(), &role.into(), &space.moment().now).unwrap()
}

/// The packet with its work or receipt changed, sealed and cited again.
pub(crate) fn forged(packet: &Packet, change: impl FnOnce(&mut Work, &mut DisclosureReceipt)) -> Packet {
    let mut disclosure = packet.disclosure.clone();
    let work = changed(&packet.work, |envelope| {
        let Body::Work(work) = &envelope.body else { unreachable!("work") };
        let mut work = (**work).clone();
        change(&mut work, &mut disclosure);
        envelope.body = work.into();
        envelope.disclosure =
            DisclosureRef { id: disclosure.disclosure_id.clone(), digest: canonical::digest_of(&disclosure).unwrap() };
    });
    Packet { work, disclosure }
}

pub(crate) fn send(space: &mut Space, packet: Packet) -> Reply {
    let work = space.submission(packet.work).unwrap();
    space.submit(Input::Issue { work, disclosure: packet.disclosure }).unwrap()
}

/// An item of context made of anything.
pub(crate) fn item(id: &str, content: impl serde::Serialize) -> ContextItem {
    let content = Canonical::of(Plain(serde_json::to_value(content).unwrap())).unwrap();
    let reference = ArtifactRef { id: id.into(), digest: content.digest() };
    ContextItem { reference, content: content.into_value() }
}

pub(crate) fn include(work: &mut Work, receipt: &mut DisclosureReceipt, item: ContextItem) {
    receipt.materialized_item_refs.push(item.reference.clone());
    work.context_items.push(item);
}

fn body(packet: &Packet) -> Work {
    let Body::Work(work) = packet.work.body() else { unreachable!("work") };
    (**work).clone()
}

/// What a packet tells its recipient about the limits of its view.
fn limits(packet: &Packet) -> Coverage {
    let told = body(packet).context_items.pop().expect("the last item");
    canonical::from_value(told.content.0).unwrap()
}

pub(crate) fn ids(packet: &Packet) -> Vec<String> {
    body(packet).context_items.iter().map(|item| item.reference.id.to_string()).collect()
}

#[test]
fn what_is_withheld_and_missing_is_told_in_the_receipt_and_in_the_packet() {
    shows!("CP-4.3-03", "CP-4.3-06", "CP-6-03"; by "disclose.category_released", "disclose.limits_untold");
    let narrow = vec![releases("work", "worker", &["obligation"])];
    let mut space = Space::found(&with_rules(narrow), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let receipt = packet.disclosure.clone();
    assert_eq!(ids(&packet), ["o-1", receipt.coverage_receipt_ref.as_str()]);
    assert_eq!(receipt.withheld_categories, ["grant".into()]);
    assert_eq!((receipt.recipient.as_str(), receipt.purpose.as_str()), ("worker", "work"));
    let told = limits(&packet);
    assert_eq!((&told.recipient, &told.withheld_categories), (&receipt.recipient, &receipt.withheld_categories));
    assert_eq!(told.evaluated_categories.len(), 5, "what the policy was asked about");
    assert_eq!((told.coverage_id, told.policy_basis), (receipt.coverage_receipt_ref, receipt.policy_basis));
    let silent = forged(&packet, |work, receipt| {
        let told = work.context_items.pop().expect("the limits");
        receipt.materialized_item_refs.retain(|reference| *reference != told.reference);
    });
    let before = space.records().len();
    refused(&send(&mut space, silent), Code::CoverageMissing);
    let left = since(&space, before);
    assert!(left.iter().all(|entry| matches!(entry, Entry::Refusal(_))), "a refused packet leaves no receipt");
    recorded(&send(&mut space, packet));
}

#[test]
fn a_packet_does_not_hide_what_it_holds_back() {
    shows!("CP-4.3-03"; by "disclose.withholding_untold");
    let narrow = vec![releases("work", "worker", &["obligation"])];
    let mut space = Space::found(&with_rules(narrow), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let seeming_whole = forged(&packet, |work, receipt| {
        receipt.withheld_categories.clear();
        let told = work.context_items.pop().expect("the limits");
        receipt.materialized_item_refs.retain(|reference| *reference != told.reference);
        let mut whole: Coverage = canonical::from_value(told.content.0).unwrap();
        whole.withheld_categories.clear();
        include(work, receipt, item(told.reference.id.as_str(), whole));
    });
    refused(&send(&mut space, seeming_whole), Code::CoverageMissing);
}

#[test]
fn a_receipt_lists_what_went_out_under_a_policy_that_was_accepted() {
    shows!("CP-4.3-03"; by "disclose.receipt_lists_more", "disclose.basis_not_accepted");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let more = forged(&packet, |_, receipt| {
        receipt.materialized_item_refs.push(ArtifactRef { id: "o-2".into(), digest: Digest::of(b"o-2") });
    });
    assert_eq!(codes(&send(&mut space, more)), [Code::CoverageMissing]);
    let elsewhere = forged(&packet, |work, receipt| {
        receipt.policy_basis.version += 1;
        let told = work.context_items.pop().expect("the limits");
        receipt.materialized_item_refs.retain(|reference| *reference != told.reference);
        let mut limits: Coverage = canonical::from_value(told.content.0).unwrap();
        limits.policy_basis = receipt.policy_basis;
        include(work, receipt, item(told.reference.id.as_str(), limits));
    });
    assert_eq!(codes(&send(&mut space, elsewhere)), [Code::CoverageMissing]);
    recorded(&send(&mut space, packet));
}

#[test]
fn work_whose_required_context_is_not_released_is_not_sent() {
    shows!("CP-C5-02", "CP-6-03"; by "disclose.required_context_missing");
    let without = vec![releases("work", "worker", &["claim", "constraint", "grant", "evidence"])];
    let mut space = Space::found(&with_rules(without), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    assert_eq!(packet.disclosure.missing_required_context, ["o-1".into()]);
    let reply = send(&mut space, packet);
    assert_eq!(codes(&reply), [Code::CoverageMissing]);
    assert_eq!(reply.refusal().and_then(|denial| denial.offending.as_deref()), Some("o-1"), "the gap is on record");
    space.finish(&episode_id).unwrap();
    assert!(space.view().works.is_empty() && space.view().released.values().all(|kept| kept.purpose != "work".into()));
}

#[test]
fn work_under_a_contract_that_is_not_in_use_is_not_sent() {
    shows!("CP-C5-02"; by "work.contract_incompatible");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let newer = forged(&packet, |work, _| work.output_contract_ref.version += 1);
    refused(&send(&mut space, newer), Code::ContractIncompatible);
    recorded(&send(&mut space, packet));
}

#[test]
fn a_valid_digest_does_not_make_a_packet_complete() {
    shows!("CP-4.3-12", "CP-2-20"; by "disclose.required_context_missing");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let emptied = forged(&packet, |work, receipt| {
        work.context_items.retain(|item| item.reference.id.as_str() != "o-1");
        receipt.materialized_item_refs.retain(|reference| reference.id.as_str() != "o-1");
    });
    assert!(body(&emptied).check().is_ok(), "every item is what its reference names");
    assert_eq!(codes(&send(&mut space, emptied)), [Code::CoverageMissing]);
}

#[test]
fn a_regulator_is_not_asked_without_the_boundaries_that_apply() {
    shows!("CP-4.3-05"; by "disclose.regulator_needs_boundaries");
    let silent = vec![releases("work", "worker", &["obligation", "claim", "constraint", "evidence"])];
    let mut space = Space::found(&with_rules(silent), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let regulator = drafted(&space, &episode_id, "regulator");
    assert_eq!(regulator.disclosure.missing_required_context, ["grant-1".into()]);
    assert_eq!(limits(&regulator).missing_required_context, ["grant-1".into()]);
    refused(&send(&mut space, regulator), Code::CoverageMissing);
    let worker = drafted(&space, &episode_id, "worker");
    assert!(worker.disclosure.missing_required_context.is_empty());
    recorded(&send(&mut space, worker));
}

#[test]
fn an_investigator_gets_the_requirement_and_no_account_history() {
    shows!("CP-4.3-04", "CP-4.3-07"; by "disclose.category_released", "disclose.category_withheld");
    let narrow = vec![releases("work", "worker", &["obligation"])];
    let mut space = Space::found(&with_rules(narrow), worker::proposes("basic")).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "investigator");
    let history = space.view().evidence.values().next().expect("the observation").body.clone();
    assert!(ids(&packet).contains(&"o-1".to_owned()) && !ids(&packet).contains(&history.evidence_id.to_string()));
    assert!(packet.disclosure.withheld_categories.contains(&"evidence".into()));
    let slipped = forged(&packet, |work, receipt| {
        include(work, receipt, item(history.evidence_id.as_str(), &*history));
    });
    let reply = send(&mut space, slipped);
    assert_eq!(codes(&reply), [Code::DisclosureDenied], "a coordinator's own receipt is no policy");
    assert_eq!(reply.refusal().and_then(|denial| denial.offending.as_deref()), Some(history.evidence_id.as_str()));
    recorded(&send(&mut space, packet));
}

#[test]
fn what_does_not_bear_on_the_work_stays_out_of_its_packet() {
    shows!("CP-4.3-01"; by "disclose.item_outside_purpose");
    let deployment = Deployment::default().with_obligation("o-2", "service-b");
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let other = space.view().state.obligation(&"o-2".into()).expect("the other obligation").clone();
    let wider = forged(&packet, |work, receipt| include(work, receipt, item("o-2", Item::Obligation(other))));
    assert_eq!(codes(&send(&mut space, wider)), [Code::DisclosureDenied]);
    let invented = forged(&packet, |work, receipt| include(work, receipt, item("o-1", "something else")));
    refused(&send(&mut space, invented), Code::DisclosureDenied);
    recorded(&send(&mut space, packet));
}

#[test]
fn a_packet_has_the_purpose_of_work_and_a_use_that_policy_permits() {
    shows!("CP-C1-09"; by "disclose.not_for_work", "disclose.use_beyond_policy");
    let rules = vec![work_rule(), DisclosureRule { purpose: "marketing".into(), ..work_rule() }];
    let mut space = Space::found(&with_rules(rules), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let retold = |change: fn(&mut DisclosureReceipt)| {
        forged(&packet, |work, receipt| {
            change(receipt);
            let told = work.context_items.pop().expect("the limits");
            receipt.materialized_item_refs.retain(|reference| *reference != told.reference);
            let mut coverage: Coverage = canonical::from_value(told.content.0).unwrap();
            coverage.purpose = receipt.purpose.clone();
            coverage.recipient = receipt.recipient.clone();
            include(work, receipt, item(told.reference.id.as_str(), coverage));
        })
    };
    for other in [
        retold(|receipt| receipt.purpose = "marketing".into()),
        retold(|receipt| receipt.permitted_use.push("publish it".into())),
    ] {
        refused(&send(&mut space, other), Code::DisclosureDenied);
    }
    recorded(&send(&mut space, retold(|_| {})));
}

#[test]
fn a_packet_goes_to_a_current_participant() {
    shows!("CP-4.3-01"; by "disclose.recipient_not_current");
    let mut rules = vec![work_rule(), releases("plan.change", "provider", &["input"])];
    rules.push(DisclosureRule { recipient: "observer-1".into(), ..work_rule() });
    let mut space = Space::found(&with_rules(rules), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let astray = work::draft(&view, episode, &"observer-1".into(), &"worker".into(), &now).unwrap();
    assert_eq!(codes(&send(&mut space, astray)), [Code::DisclosureDenied]);
    let packet = drafted(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet));
    assert_eq!(space.view().released.values().filter(|receipt| receipt.purpose == "work".into()).count(), 1);
}

/// Two participants; each may get everything for its own work.
pub(crate) fn two() -> Space {
    let second = identity("worker-2", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
    let rules = vec![
        work_rule(),
        DisclosureRule { recipient: "worker-2".into(), ..work_rule() },
        releases("plan.change", "provider", &["input"]),
    ];
    Space::found(&with_rules(rules).with(Item::Identity(second)), worker::proposes("basic")).unwrap()
}

#[test]
fn a_packet_is_not_passed_on_to_a_third_actor() {
    shows!("CP-4.3-11"; by "work.packet_passed_on", "disclose.receipt_used_before", "intake.packet_handed_on");
    let mut space = two();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet.clone()));
    let again = Packet {
        work: changed(&packet.work, |envelope| {
            envelope.payload_id = "pl.again".into();
            let Body::Work(work) = &envelope.body else { unreachable!("work") };
            envelope.body = Work { work_id: "work-again".into(), ..(**work).clone() }.into();
        }),
        ..packet.clone()
    };
    refused(&send(&mut space, again), Code::RedistributionDenied);
    let view = space.view().clone();
    let (work_id, issued) = view.works.iter().next().expect("the work");
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let answer = worker::nothing(&issued.body);
    let theirs = work::draft_result(&view, episode, &"worker-2".into(), work_id, answer, &now).unwrap();
    assert!(codes(&space.submit_payload(theirs).unwrap()).contains(&Code::RedistributionDenied));
    let handoff = Handoff { obligation_id: "o-1".into(), ..Handoff::example(Extent::Minimal) };
    let onward = space.write(ProducerRole::Coordinator, &["o-1"], handoff).unwrap();
    let onward = changed(&onward, |envelope| envelope.disclosure = issued.payload.envelope().disclosure.clone());
    refused(&space.submit_payload(onward).unwrap(), Code::RedistributionDenied);
    assert_eq!((space.view().works.len(), space.view().results.len()), (1, 0));
}

#[test]
fn work_cites_the_receipt_that_comes_with_it() {
    shows!("CP-4.3-03"; by "disclose.other_receipt_cited");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    let internal = space.view().disclosure(services::INTERNAL_DISCLOSURE).expect("the receipt").clone();
    let work = changed(&packet.work, |envelope| envelope.disclosure = internal);
    let reply = send(&mut space, Packet { work, ..packet.clone() });
    assert!(codes(&reply).contains(&Code::CoverageMissing));
    recorded(&send(&mut space, packet));
}

#[test]
fn an_answer_cites_the_packet_that_it_worked_from() {
    shows!("CP-4.3-08"; by "work.other_packet_cited");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet));
    let view = space.view().clone();
    let (work_id, issued) = view.works.iter().next().expect("the work");
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let answer = worker::nothing(&issued.body);
    let own = work::draft_result(&view, episode, &"worker".into(), work_id, answer, &now).unwrap();
    assert_eq!(own.envelope().disclosure, issued.payload.envelope().disclosure);
    let internal = view.disclosure(services::INTERNAL_DISCLOSURE).expect("the receipt").clone();
    let elsewhere = changed(&own, |envelope| envelope.disclosure = internal);
    refused(&space.submit_payload(elsewhere).unwrap(), Code::UnresolvedRef);
    recorded(&space.submit_payload(own).unwrap());
}

#[test]
fn a_peers_position_is_in_no_packet_before_it_is_released() {
    shows!("CP-C5-06"; by "disclose.position_not_released");
    let mut space = two();
    let episode_id = begun(&mut space);
    let packet = drafted(&space, &episode_id, "worker");
    recorded(&send(&mut space, packet));
    crate::support::until(&mut space, &episode_id, |next| matches!(next, Next::Act { .. }));
    let view = space.view().clone();
    let position = view.results.values().next().expect("the position").clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let packet = work::draft(&view, episode, &"worker-2".into(), &"worker".into(), &now).unwrap();
    let peeking = forged(&packet, |work, receipt| {
        include(work, receipt, item(position.payload.id().as_str(), &*position.body));
    });
    assert!(codes(&send(&mut space, peeking)).contains(&Code::NotReleased));
    recorded(&send(&mut space, packet));
}

#[test]
fn a_constraint_that_was_not_shown_counts_in_the_assessment() {
    shows!("CP-4.3-09"; by "adjudicate.constraint_violated");
    let forbids = Constraint {
        constraint_id: "constraint-1".into(),
        statement: "The plan stays as it is.".into(),
        scope: closer_scenarios::founding::scope(),
        operations: vec!["plan.change".into()],
        targets: Vec::new(),
        bounds: Vec::new(),
        standing: closer_contracts::item::Standing::Current,
    };
    let mut space =
        Space::found(&Deployment::default().with(Item::Constraint(forbids)), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    assert!(!ids(&drafted(&space, &episode_id, "worker")).contains(&"constraint-1".to_owned()));
    space.finish(&episode_id).unwrap();
    assert_eq!(space.view().results.len(), 1, "valid within its slice");
    let before = |judged: &&closer_protocol::view::OnRecord<Adjudication>| judged.body.phase == Phase::PreAction;
    let judged = space.view().adjudications.values().filter(before).map(|judged| judged.body.disposition);
    let judged: Vec<_> = judged.collect();
    assert_eq!(judged, [Disposition::NotJustified]);
    assert_eq!(space.world.effects().len(), 0);
}
