//! Bounded work: what a packet holds, what an answer may cite, and what a used-up budget does not do.

use crate::support::{begun, changed, claimed, recorded, refused, space, status, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::canonical::Canonical;
use closer_contracts::envelope::Body;
use closer_contracts::id::EvidenceId;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{Amounts, ArtifactRef, Plain};
use closer_contracts::shows;
use closer_contracts::work::{ContextItem, Relation, WorkResult};
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_scenarios::founding::plan_target;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

#[test]
fn a_packet_releases_a_receipt_only_where_its_own_receipt_says_so() {
    shows!("CP-C1-06"; by "work.item_not_covered");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Work { participant, role } = space.next(&episode_id).unwrap() else { panic!("work comes first") };
    let episode = space.view().episodes.get(&episode_id).expect("the episode").clone();
    let now = space.moment().now;
    let packet = closer_protocol::work::draft(space.view(), &episode, &participant, &role, &now).unwrap();
    let (_, committed) = space.view().commits.get_max().expect("a commit").clone();
    let receipt = serde_json::to_value(&**committed.receipt.as_ref().expect("its receipt")).unwrap();
    let receipt = Canonical::of(Plain(receipt)).unwrap();
    let reference = ArtifactRef { id: "receipt-1".into(), digest: receipt.digest() };
    let slipped = changed(&packet.work, |envelope| {
        let Body::Work(work) = &envelope.body else { unreachable!("work") };
        let mut work = (**work).clone();
        work.context_items.push(ContextItem { reference, content: receipt.into_value() });
        envelope.payload_id = "pl.slipped".into();
        envelope.body = work.into();
    });
    let slipped = space.submission(slipped).unwrap();
    refused(&space.submit(Input::Issue { work: slipped, disclosure: packet.disclosure.clone() }).unwrap(), Code::DisclosureDenied);
    let own = space.submission(packet.work).unwrap();
    recorded(&space.submit(Input::Issue { work: own, disclosure: packet.disclosure }).unwrap());
}

#[test]
fn a_used_up_budget_closes_nothing() {
    shows!("CP-5-11", "CP-8.3-17"; by "work.budget_exceeded");
    let none = Amounts { calls: Some(0), ..Amounts::default() };
    let deployment = Deployment::default().with_profile(|profile| profile.obligation_budget = none);
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert!(space.refusals().unwrap().contains(&Code::BudgetExceeded));
    assert_eq!(space.view().episodes.get(&episode_id).and_then(|episode| episode.end), Some(EpisodeEnd::Refused));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn an_episode_that_reaches_its_bound_closes_nothing() {
    shows!("CP-5-11"; by "episode.bound_reached");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    space.pass(599_999).unwrap();
    assert!(matches!(space.next(&episode_id).unwrap(), Next::Ask { .. }));
    space.pass(1).unwrap();
    space.finish(&episode_id).unwrap();
    assert_eq!(space.view().episodes.get(&episode_id).and_then(|episode| episode.end), Some(EpisodeEnd::BoundReached));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn an_answer_cites_only_evidence_on_record() {
    shows!("CP-B-17", "CP-6-02"; by "work.unknown_evidence_cited");
    let invents: Answer = Box::new(|work, view| {
        let assessments = vec![worker::relation(view, "p-o-1", &EvidenceId::from("ev-invented"), Relation::Supports)];
        WorkResult { assessments, ..worker::nothing(work) }
    });
    let mut space = space(invents);
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert!(space.refusals().unwrap().contains(&Code::UnresolvedRef));
    assert!(space.view().results.is_empty() && !claimed(&space));
}

#[test]
fn a_real_citation_with_the_wrong_inference_promotes_nothing() {
    shows!("CP-10.2-03", "CP-INV-01"; by "sufficiency.reference_agrees");
    let misquotes: Answer = Box::new(|work, view| {
        let cites = |id: &EvidenceId| {
            let mut relation = worker::relation(view, "p-o-1", id, Relation::Supports);
            relation.valid_at.observation_version += 1;
            relation
        };
        WorkResult { assessments: view.evidence.keys().map(cites).collect(), ..worker::nothing(work) }
    });
    let mut space = space(misquotes);
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert_eq!(space.view().results.len(), 1, "what was answered stays on record");
    assert!(!claimed(&space));
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn partial_evidence_leaves_the_gap_and_invents_nothing() {
    shows!("CP-10.2-02"; by "sufficiency.sources_suffice");
    let supports: fn() -> Answer = || {
        Box::new(|work, view| {
            let assessments = view.evidence.keys().map(|id| worker::relation(view, "p-o-1", id, Relation::Supports)).collect();
            WorkResult { assessments, ..worker::nothing(work) }
        })
    };
    let demanding = |sources: u32| {
        let mut deployment = Deployment::default();
        for item in &mut deployment.founding.items {
            if let closer_contracts::item::Item::Rule(rule) = item
                && let closer_contracts::item::RuleBody::Sufficiency { distinct_sources_min, .. } = &mut rule.body
            {
                *distinct_sources_min = sources;
            }
        }
        let mut space = Space::found(&deployment, supports()).unwrap();
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        recorded(&space.event("service-a", "price").unwrap());
        space.run().unwrap();
        space
    };
    let partial = demanding(2);
    assert!(!claimed(&partial));
    assert_eq!(status(&partial, "o-1"), ObligationStatus::Active);
    assert!(claimed(&demanding(1)), "one source is enough where the rule says so");
}

#[test]
fn work_is_answered_once_and_by_whom_it_was_issued_to() {
    shows!("CP-8.2-01"; by "work.answered_before");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Act { .. }));
    let answered = space.view().results.values().next().expect("the result").payload.clone();
    let again = changed(&answered, |envelope| envelope.payload_id = "pl.again".into());
    refused(&space.submit_payload(again).unwrap(), Code::Duplicate);
    assert_eq!(space.view().results.len(), 1);
}

#[test]
fn what_no_rule_releases_is_withheld_and_said_to_be() {
    shows!("CP-6-03"; by "work.category_released");
    let mut space = Space::found(&Deployment::default().with_profile(|profile| profile.disclosure_rules.clear()), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let work = space.view().works.values().next().expect("the work").body.clone();
    assert!(work.context_items.is_empty());
    let mut told = crate::support::since(&space, 0).into_iter().filter_map(|entry| match entry {
        closer_protocol::Entry::Artifact(artifact) => match &*artifact {
            closer_protocol::entry::ArtifactBody::DisclosureReceipt(receipt) if receipt.purpose.as_str() == "work" => Some(receipt.withheld_categories.len()),
            _ => None,
        },
        _ => None,
    });
    assert!(told.next().is_some_and(|withheld| withheld > 0));
}
