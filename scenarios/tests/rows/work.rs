//! Bounded work: what a packet holds, what an answer may cite, and what a used-up budget does not do.

use crate::support::{begun, changed, claimed, recorded, refused, space, status, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::canonical::Canonical;
use closer_contracts::delta::Change;
use closer_contracts::envelope::Body;
use closer_contracts::id::EvidenceId;
use closer_contracts::item::{EffectClass, IdentityKind, Item, RepeatSafety};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{Amounts, ArtifactRef, Plain, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial};
use closer_contracts::shows;
use closer_contracts::work::{ContextItem, ProposedClaim, Proposition, Relation, WorkResult};
use closer_protocol::entry::{Entry, EpisodeEnd};
use closer_protocol::episode::Next;
use closer_protocol::input::Input;
use closer_scenarios::founding::{self, identity, plan_target};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};

#[test]
fn a_packet_releases_a_receipt_only_where_its_own_receipt_says_so() {
    shows!("CP-C1-06"; by "disclose.item_not_covered");
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
    refused(
        &space.submit(Input::Issue { work: slipped, disclosure: packet.disclosure.clone() }).unwrap(),
        Code::DisclosureDenied,
    );
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
    assert!(space.view().works.is_empty(), "nothing is asked that the budget does not cover");
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
            let assessments =
                view.evidence.keys().map(|id| worker::relation(view, "p-o-1", id, Relation::Supports)).collect();
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
fn what_is_supported_is_distilled_into_one_delta_and_the_rest_is_left_out() {
    shows!("CP-7.2-01"; by "delta.claim_supported");
    let claims: Answer = Box::new(|work, view| {
        let claim = |proposition: &str| ProposedClaim {
            proposition: Proposition {
                proposition_id: proposition.into(),
                subject: "service-a".into(),
                predicate: "keeps".into(),
                object: Plain(serde_json::Value::String("the export".into())),
                scope: closer_scenarios::founding::scope(),
            },
            applicability: vec!["as observed".into()],
        };
        let supported = ["p-o-1", "p-export"];
        let assessments = supported.iter().flat_map(|id| {
            view.evidence.keys().map(|evidence| worker::relation(view, id, evidence, Relation::Supports))
        });
        WorkResult {
            claims: ["p-o-1", "p-export", "p-guess"].map(claim).to_vec(),
            assessments: assessments.collect(),
            ..worker::nothing(work)
        }
    });
    let mut space = space(claims);
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let distilled: Vec<_> =
        space.view().deltas.values().filter(|delta| delta.payload.envelope().episode_id.is_some()).collect();
    assert_eq!(distilled.len(), 1, "one batch");
    let known = |id: &str| space.view().state.claims_on(&id.into()).count();
    assert_eq!(["p-o-1", "p-export", "p-guess"].map(known), [1, 1, 0]);
}

/// A deployment in which settling `o-1` takes one proposition more, so that it stays open.
pub(crate) fn staying_open() -> Deployment {
    let mut deployment = Deployment::default();
    for (obligation, _) in &mut deployment.founding.obligations {
        let mut other = obligation.resolution_conditions[0].clone();
        other.id = "condition-other".into();
        other.proposition = "p-other".into();
        obligation.resolution_conditions.push(other);
    }
    deployment
}

#[test]
fn a_consolidated_claim_keeps_its_exceptions() {
    shows!("CP-7.2-02"; by "delta.exceptions_kept");
    let mut space = Space::found(&staying_open(), worker::relates(Relation::Supports)).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::Distil));
    let view = space.view().clone();
    let draft =
        closer_protocol::delta::distill(&view, view.episodes.get(&episode_id).expect("the episode"), &space.moment())
            .unwrap()
            .expect("a delta");
    let excepted = changed(&draft, |envelope| {
        let Body::Delta(delta) = &envelope.body else { unreachable!("a delta") };
        let mut delta = (**delta).clone();
        for change in &mut delta.changes {
            if let Change::Add { item } = change
                && let Item::Claim(claim) = &mut **item
            {
                claim.exceptions.push("not on holidays".into());
            }
        }
        envelope.body = delta.sealed().unwrap().into();
    });
    recorded(&space.submit_payload(excepted).unwrap());
    space.finish(&episode_id).unwrap();
    let exceptions = |space: &Space| {
        let claim =
            space.view().state.claims_on(&"p-o-1".into()).next().and_then(|accepted| accepted.item.as_claim().cloned());
        let claim = claim.expect("the claim");
        (claim.exceptions.len(), claim.relations.len())
    };
    assert_eq!(exceptions(&space).0, 1);
    let before = exceptions(&space).1;
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert_eq!(exceptions(&space).0, 1, "{:?}", space.refusals());
    assert!(exceptions(&space).1 > before, "it was revised on new evidence");
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}

#[test]
fn every_message_of_a_run_delivered_again_changes_nothing() {
    shows!("CP-8.2-01"; by "intake.payload_repeated");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let (state, effects) = (space.view().state.reference(), space.world.effects().len());
    let mut delivered = 0;
    for (_, entry) in space.entries().unwrap() {
        match entry {
            Entry::Payload(payload) => refused(&space.submit_payload((*payload).clone()).unwrap(), Code::Duplicate),
            Entry::Intent(intent) => {
                let again = Input::Dispatch { payload_id: intent.action_ref.id.as_str().into(), adjudication_id: None };
                assert!(space.submit(again).unwrap().refusal().is_some());
            }
            Entry::Commit(commit) => {
                refused(
                    &space.submit(Input::Commit { delta_id: commit.delta.delta_id.clone() }).unwrap(),
                    Code::Duplicate,
                );
            }
            Entry::Genesis(_)
            | Entry::Auth(_)
            | Entry::Artifact(_)
            | Entry::Outcome(_)
            | Entry::Refusal(_)
            | Entry::Ledger(_)
            | Entry::Ownership(_)
            | Entry::Activation(_)
            | Entry::Notice(_)
            | Entry::Passed => continue,
        }
        delivered += 1;
    }
    assert!(delivered > 10, "{delivered}");
    assert_eq!((space.view().state.reference(), space.world.effects().len()), (state, effects));
}

#[test]
fn newer_evidence_asks_for_a_new_endorsement_and_is_then_part_of_it() {
    shows!("CP-C9-03", "CP-5-06"; by "commit.snapshot_outdated");
    let mut space = Space::found(&staying_open(), worker::relates(Relation::Supports)).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let episode_id = begun(&mut space);
    let Next::Commit { delta_id } = until(&mut space, &episode_id, |next| matches!(next, Next::Commit { .. })) else {
        unreachable!("just matched")
    };
    space.world.set(&plan_target(), "plan", "gone");
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    refused(&space.submit(Input::Commit { delta_id }).unwrap(), Code::StaleVersion);
    assert!(!claimed(&space));
    let again = begun_again(&mut space, &episode_id);
    space.finish(&again).unwrap();
    assert!(claimed(&space), "assessed anew with both observations, it is committed");
}

/// The episode ends and another one begins on a new event.
fn begun_again(space: &mut Space, episode_id: &closer_contracts::id::EpisodeId) -> closer_contracts::id::EpisodeId {
    let end = Input::End {
        episode_id: episode_id.clone(),
        end: EpisodeEnd::NothingToDo,
        reason: "The evidence has changed.".into(),
    };
    recorded(&space.submit(end).unwrap());
    begun(space)
}

#[test]
fn an_answer_comes_from_whom_the_work_was_issued_to() {
    shows!("CP-6.2-05", "CP-B-17"; by "work.not_issued_to_producer");
    let second = identity("worker-2", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
    let mut space =
        Space::found(&Deployment::default().with(Item::Identity(second)), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let Next::Ask { work_id, .. } = until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. })) else {
        unreachable!("just matched")
    };
    let view = space.view().clone();
    let work = view.works.get(&work_id).expect("the work").body.clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let theirs = closer_protocol::work::draft_result(
        &view,
        episode,
        &"worker-2".into(),
        &work_id,
        worker::nothing(&work),
        &space.moment().now,
    )
    .unwrap();
    refused(&space.submit_payload(theirs).unwrap(), Code::UnresolvedRef);
    recorded(&space.advance(&episode_id).unwrap().1);
}

#[test]
fn a_proposal_stays_within_the_registered_vocabulary() {
    shows!("CP-3.3-01", "CP-C5-07"; by "work.proposal_outside_vocabulary");
    let invents: Answer = Box::new(|work, _| {
        let mut proposal = worker::proposal("p-o-1", "basic");
        proposal.operation = "plan.invent".into();
        WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
    });
    let mut space = space(invents);
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert!(space.refusals().unwrap().contains(&Code::UnregisteredOperation));
    assert!(space.view().results.is_empty() && space.view().actions.is_empty());
}

#[test]
fn an_observation_comes_from_its_source_and_moves_its_stream_forwards() {
    shows!("CP-B-07", "CP-6.3-05"; by "readback.source_unknown", "readback.observation_not_newer");
    let mut space = space(worker::proposes("basic"));
    let observation = space.observation(&plan_target(), Some("o-1")).unwrap();
    let with = |change: fn(&mut closer_contracts::evidence::Evidence)| {
        changed(&observation, |envelope| {
            let Body::Evidence(evidence) = &envelope.body else { unreachable!("an observation") };
            let mut evidence = (**evidence).clone();
            change(&mut evidence);
            envelope.body = evidence.into();
        })
    };
    refused(
        &space.submit_payload(with(|evidence| evidence.source.source_id = "feed".into())).unwrap(),
        Code::Unauthenticated,
    );
    recorded(&space.submit_payload(observation.clone()).unwrap());
    let rewound = changed(&with(|evidence| evidence.evidence_id = "ev-again".into()), |envelope| {
        envelope.payload_id = "pl.again".into()
    });
    refused(&space.submit_payload(rewound).unwrap(), Code::KeyConflict);
}

#[test]
fn an_example_in_a_packet_authorizes_nothing() {
    shows!("CP-C5-05"; by "monitor.operation_not_granted");
    let mut buy = founding::operation("plan.buy", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    buy.capability = "plan.change".into();
    let mut deployment = Deployment::default().with(Item::Operation(buy));
    for (obligation, _) in &mut deployment.founding.obligations {
        obligation.gap.text = "Is the plan changed? For example: plan.buy(plan=large).".into();
    }
    let buys: Answer = Box::new(|work, _| {
        assert!(work.question.text.as_str().contains("plan.buy"), "the example is in the packet");
        let mut proposal = worker::proposal("p-o-1", "basic");
        proposal.operation = "plan.buy".into();
        WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
    });
    let mut space = Space::found(&deployment, buys).unwrap();
    let episode_id = begun(&mut space);
    until(&mut space, &episode_id, |next| matches!(next, Next::AskUser { .. }));
    let view = space.view().clone();
    let (result, answered) = view.results.iter().next().expect("the result");
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let now = space.moment().now;
    let proposal = &answered.body.action_proposals[0];
    let action = closer_protocol::action::draft(&view, episode, result, proposal, &"grant-1".into(), 1, &now).unwrap();
    recorded(&space.submit_payload(action.clone()).unwrap());
    refused(&crate::support::dispatch(&mut space, action.id()), Code::MissingAuthority);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn a_compromised_participant_has_neither_tools_nor_items_beyond_its_own() {
    shows!("CP-12-06"; by "monitor.capability_undeclared", "disclose.item_not_released");
    let unable = identity("worker", IdentityKind::Producer, &[ProducerRole::Participant], &["plan.read"]);
    let rules = |profile: &mut closer_contracts::profile::Profile| {
        for rule in &mut profile.disclosure_rules {
            rule.categories.retain(|category| category.as_str() != "evidence");
        }
    };
    let deployment = Deployment::default().with(Item::Identity(unable)).with_profile(rules);
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    let hidden = space.view().evidence.keys().next().expect("the observation").to_string();
    let episode_id = begun(&mut space);
    let payload_id = crate::support::until_dispatch(&mut space, &episode_id);
    refused(&crate::support::dispatch(&mut space, &payload_id), Code::CapabilityUndeclared);
    let who = closer_contracts::refs::ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    refused(&space.ask(who, "worker", Some("work"), &[&hidden]).unwrap(), Code::DisclosureDenied);
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn a_failed_answer_is_counted_once_and_nothing_takes_its_place() {
    shows!("CP-C6-06"; by "work.failed_once", "work.second_answer", "episode.answer_failed");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let Next::Ask { work_id, participant } = until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }))
    else {
        unreachable!("just matched")
    };
    let view = space.view().clone();
    let denial = Denial::new(Code::SchemaInvalid, CheckKind::Schema, "the answer is no object");
    let failed = Input::Unanswered { work_id: work_id.clone(), denial, used: Amounts::default(), handed_in_by: None };
    refused(&space.submit(failed.clone()).unwrap(), Code::SchemaInvalid);
    assert_eq!(space.view().failures.get(&participant), Some(&1));
    refused(&space.submit(failed).unwrap(), Code::Duplicate);
    assert_eq!(space.view().failures.get(&participant), Some(&1), "it failed once");
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let answer = worker::nothing(&view.works.get(&work_id).expect("the work").body);
    let now = space.moment().now;
    let second = closer_protocol::work::draft_result(&view, episode, &participant, &work_id, answer, &now).unwrap();
    refused(&space.submit_payload(second).unwrap(), Code::Duplicate);
    space.finish(&episode_id).unwrap();
    let episode = space.view().episodes.get(&episode_id).expect("the episode");
    assert_eq!((episode.end, episode.work.len()), (Some(EpisodeEnd::NoAnswer), 1), "and nobody is asked again");
    assert_eq!(status(&space, "o-1"), ObligationStatus::Active);
}
