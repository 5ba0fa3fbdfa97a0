//! What a conference comes to: by evidence and its rule, never by how many say it.

use crate::conferring::{Inquiry, agreeing, by_role};
use crate::support::{claimed, recorded, refused, status};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Disposition, Phase};
use closer_contracts::conference::{MoveKind, Subject};
use closer_contracts::obligation::{AssessmentStatus, ObligationStatus};
use closer_contracts::shows;
use closer_contracts::work::{Objection, ReasonClass, Relation, WorkResult};
use closer_protocol::conference::{Report, Turn};
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::Next;
use closer_scenarios::founding::{plan_target, proposition};
use closer_scenarios::{Deployment, worker};

/// Concludes the conference, finishes its episode and gives its report.
fn finished(inquiry: &mut Inquiry) -> Report {
    inquiry.released();
    let report = inquiry.concluded();
    let episode_id = inquiry.episode_id.clone();
    inquiry.space.finish(&episode_id).unwrap();
    report
}

/// What one finding came to, and whether the proposition was accepted.
fn outcome(inquiry: &mut Inquiry) -> (AssessmentStatus, bool) {
    let report = finished(inquiry);
    (report.findings[0].status, claimed(&inquiry.space))
}

/// `claiming` say that the plan is basic on the evidence; the others read it as contradicting that.
fn divided(claiming: &'static [&'static str]) -> closer_scenarios::space::Answer {
    by_role(move |role, work, view| match claiming.contains(&role) {
        true => worker::claims(work, view, "basic", Relation::Supports),
        false => worker::reads(work, view, Relation::Contradicts),
    })
}

#[test]
fn who_is_right_is_told_by_the_observation_and_not_by_how_many_say_so() {
    shows!("CP-4.1-32"; by "sufficiency.observation_decides", "delta.said_once");
    for (shown, expected) in [("basic", (AssessmentStatus::Met, true)), ("standard", (AssessmentStatus::NotMet, false))]
    {
        for claiming in
            [&["remainder", "investigator"][..], &["regulator"], &["remainder", "investigator", "regulator"]]
        {
            let mut inquiry = Inquiry::of(Deployment::default().shown("basic"), shown, divided(claiming));
            assert_eq!(outcome(&mut inquiry), expected, "{claiming:?} claim it where the plan is {shown}");
            let (state, proposition) = (&inquiry.space.view().state, "p-o-1".into());
            let accepted = state.claims_on(&proposition).filter_map(|accepted| accepted.item.as_claim());
            let relations: Vec<Vec<Relation>> =
                accepted.map(|claim| claim.relations.iter().map(|relation| relation.relation).collect()).collect();
            let once = if expected.1 { vec![vec![Relation::Supports]] } else { Vec::new() };
            assert_eq!(relations, once, "the observation says it once, whoever reads it how");
        }
    }
}

#[test]
fn three_that_agree_falsely_establish_nothing() {
    shows!("CP-3.5-06", "CP-12-07"; by "sufficiency.observation_decides");
    let mut inquiry = Inquiry::of(Deployment::default().shown("basic"), "standard", agreeing());
    assert_eq!(outcome(&mut inquiry), (AssessmentStatus::NotMet, false));
    let unsupported = by_role(|_, work, view| WorkResult {
        assessments: Vec::new(),
        ..worker::claims(work, view, "basic", Relation::Supports)
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", unsupported);
    assert_eq!(outcome(&mut inquiry), (AssessmentStatus::Unassessed, false), "three identical records are no support");
    let mut inquiry = Inquiry::of(Deployment::default().shown("basic"), "basic", agreeing());
    assert_eq!(outcome(&mut inquiry), (AssessmentStatus::Met, true));
}

#[test]
fn an_observation_that_came_after_what_everybody_cites_decides() {
    shows!("CP-10.2-13"; by "sufficiency.newest_decides");
    let mut inquiry = Inquiry::of(Deployment::default().shown("basic"), "basic", agreeing());
    inquiry.released();
    inquiry.space.world.set(&plan_target(), "plan", "standard");
    recorded(&inquiry.space.observe(&plan_target(), Some("o-1")).unwrap());
    let held_out = inquiry.space.view().observed.values().map(|(_, id)| id.clone()).next().expect("the newest");
    let report = inquiry.concluded();
    let packets = inquiry.space.view().works.values();
    let seen = packets.flat_map(|work| work.body.context_items.iter().map(|item| item.reference.id.to_string()));
    assert!(!seen.collect::<Vec<_>>().contains(&held_out.to_string()), "no packet holds it");
    assert_eq!(report.findings[0].status, AssessmentStatus::NotMet);
    let episode_id = inquiry.episode_id.clone();
    inquiry.space.finish(&episode_id).unwrap();
    assert!(!claimed(&inquiry.space));
}

#[test]
fn saying_the_same_thrice_says_it_once() {
    shows!("CP-3.5-04", "CP-4.1-32"; by "conference.said_once");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    let round = inquiry.round();
    assert_eq!(closer_protocol::conference::relations(inquiry.space.view(), &round).len(), 1);
}

#[test]
fn dissent_is_about_the_same_proposition() {
    shows!("CP-4.1-33"; by "conference.same_subject_opposed");
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", divided(&["remainder", "investigator"]));
    let report = finished(&mut inquiry);
    let dissent: Vec<&str> = report.findings[0].dissent.iter().map(|dissent| dissent.actor.as_str()).collect();
    assert_eq!(dissent, ["regulator"]);

    let otherwise = by_role(|role, work, view| match role {
        "regulator" => {
            let mut other = worker::claims(work, view, "basic", Relation::Contradicts);
            for relation in &mut other.assessments {
                relation.proposition_id = "p-o-2".into();
            }
            other.claims[0].proposition = proposition("o-2", "basic");
            other
        }
        _ => worker::claims(work, view, "basic", Relation::Supports),
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", otherwise);
    assert!(finished(&mut inquiry).findings[0].dissent.is_empty(), "another proposition is no dissent");

    let all_against = by_role(|_, work, view| worker::reads(work, view, Relation::Contradicts));
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", all_against);
    assert!(finished(&mut inquiry).findings[0].dissent.is_empty(), "nobody holds it, so nobody dissents");
}

#[test]
fn that_the_support_does_not_suffice_is_a_result() {
    shows!("CP-4.1-34", "CP-4.1-35"; by "sufficiency.sources_suffice");
    let mut deployment = Deployment::default();
    for item in &mut deployment.founding.items {
        if let closer_contracts::item::Item::Rule(rule) = item
            && let closer_contracts::item::RuleBody::Sufficiency { distinct_sources_min, .. } = &mut rule.body
        {
            *distinct_sources_min = 2;
        }
    }
    let mut inquiry = Inquiry::of(deployment, "basic", agreeing());
    let report = finished(&mut inquiry);
    assert_eq!(report.findings[0].status, AssessmentStatus::Insufficient);
    let episode = inquiry.space.view().episodes.get(&inquiry.episode_id).expect("the episode").clone();
    assert_eq!(episode.end, Some(EpisodeEnd::Committed), "completed, not failed");
    let judged =
        inquiry.space.view().adjudications.values().filter(|judged| judged.body.phase == Phase::SemanticCommit);
    assert!(judged.into_iter().any(|judged| judged.payload.envelope().episode_id == Some(inquiry.episode_id.clone())));
    let obligation = inquiry.space.view().state.obligation(&"o-1".into()).expect("the obligation");
    assert_eq!(obligation.resolution_conditions[0].assessment_status, AssessmentStatus::Insufficient);
    assert_eq!(status(&inquiry.space, "o-1"), ObligationStatus::Active, "its end closes nothing");
    assert!(inquiry.space.view().state.reentries_of(&"o-1".into()).count() > 0);
}

#[test]
fn a_conference_goes_before_everything_else_in_its_episode() {
    shows!("CP-4.1-09", "CP-4.1-35"; by "episode.conference_under_way");
    let mut inquiry = Inquiry::agreeing();
    let next = inquiry.space.next(&inquiry.episode_id).unwrap();
    let Next::Confer { conference_id, turn: Turn::Work(_) } = next else { panic!("{next:?}") };
    assert_eq!(conference_id, inquiry.id);
    inquiry.released();
    recorded(&inquiry.conclude());
    assert_eq!(inquiry.space.next(&inquiry.episode_id).unwrap(), Next::Distil);
    assert_eq!(status(&inquiry.space, "o-1"), ObligationStatus::Active);
}

/// The remainder proposes the change; the regulator objects to exactly that proposal, in this class, on this evidence.
fn objecting(reason_class: ReasonClass, supported: bool) -> closer_scenarios::space::Answer {
    by_role(move |role, work, view| {
        let proposal = worker::proposal("p-o-1", "basic");
        match role {
            "remainder" => WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) },
            "regulator" => {
                let subject = Subject::Proposal(proposal).digest().unwrap();
                let evidence_ids = view.evidence.keys().filter(|_| supported).cloned().collect();
                let text = "The export would be lost.".into();
                let objection = Objection { subject, reason_class, text, evidence_ids };
                WorkResult { objections: vec![objection], ..worker::nothing(work) }
            }
            _ => worker::nothing(work),
        }
    })
}

#[test]
fn an_objection_to_a_proposal_reaches_the_judgment_of_its_action() {
    shows!("CP-4.1-32", "CP-4.1-33"; by "adjudicate.objection_to_this", "adjudicate.supported_objection");
    for (reason_class, supported, effects) in [
        (ReasonClass::NoGrant, false, 0),
        (ReasonClass::OutsideConstraint, false, 0),
        (ReasonClass::Factual, true, 0),
        (ReasonClass::Factual, false, 1),
        (ReasonClass::Risk, false, 1),
    ] {
        let mut inquiry = Inquiry::of(Deployment::default(), "standard", objecting(reason_class, supported));
        finished(&mut inquiry);
        assert_eq!(inquiry.space.world.effects().len(), effects, "{reason_class}, supported: {supported}");
        let view = inquiry.space.view();
        let before = view.adjudications.values().find(|judged| judged.body.phase == Phase::PreAction);
        let before = before.expect("the action was assessed");
        let dissent: Vec<(&str, ReasonClass)> =
            before.body.dissent.iter().map(|dissent| (dissent.actor.as_str(), dissent.reason_class)).collect();
        assert_eq!(dissent, [("regulator", reason_class)], "it is on record in any case");
        assert!(before.body.dissent.iter().all(|dissent| dissent.subject == before.body.subject.digest));
        assert_eq!(before.body.disposition == Disposition::Justified, effects == 1);
    }
}

#[test]
fn a_challenge_after_the_release_reaches_judgment_unless_it_is_taken_back() {
    shows!("CP-4.1-32"; by "conference.objection_taken_back");
    for taken_back in [false, true] {
        let mut inquiry = Inquiry::of(Deployment::default().shown("basic"), "basic", agreeing());
        inquiry.released();
        let mut challenge = inquiry.a_move("regulator", MoveKind::Challenge);
        challenge.reason_class = Some(ReasonClass::OutsideConstraint);
        recorded(&inquiry.make(challenge));
        if taken_back {
            let assent = inquiry.a_move("regulator", MoveKind::Assent);
            recorded(&inquiry.make(assent));
        }
        finished(&mut inquiry);
        assert_eq!(claimed(&inquiry.space), taken_back, "taken back: {taken_back}");
    }
}

#[test]
fn what_everybody_has_taken_back_is_not_accepted() {
    shows!("CP-3.5-01"; by "conference.retracted");
    let mut inquiry = Inquiry::agreeing();
    inquiry.released();
    for actor in ["remainder", "investigator", "regulator"] {
        let made = inquiry.a_move(actor, MoveKind::Retract);
        recorded(&inquiry.make(made));
    }
    let report = finished(&mut inquiry);
    assert_eq!(report.findings[0].status, AssessmentStatus::Unassessed);
    assert!(!claimed(&inquiry.space));
}

#[test]
fn a_grant_that_is_only_talked_about_permits_nothing() {
    shows!("CP-3.5-03", "CP-C5-05"; by "monitor.no_such_grant");
    let granting = by_role(|_, work, view| {
        assert!(work.question.text.as_str().contains("for example by plan.change to large"), "the work shows a call");
        let mut answer = worker::claims(work, view, "basic", Relation::Supports);
        answer.claims[0].applicability = vec!["The user grants plan.change to large.".into()];
        answer.action_proposals = vec![worker::proposal("p-o-1", "large")];
        answer
    });
    let mut deployment = Deployment::default();
    for (obligation, _) in &mut deployment.founding.obligations {
        obligation.gap.text = "Is the plan changed, for example by plan.change to large?".into();
    }
    let mut inquiry = Inquiry::of(deployment, "standard", granting);
    inquiry.released();
    let made = inquiry.a_move("regulator", MoveKind::Assent);
    recorded(&inquiry.make(made));
    recorded(&inquiry.conclude());
    let episode_id = inquiry.episode_id.clone();
    let next = inquiry.space.next(&episode_id).unwrap();
    assert!(matches!(next, Next::AskUser { proposal: Some(_), .. }), "only the user can grant it: {next:?}");

    let view = inquiry.space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let result = episode.results.first().expect("a result");
    let proposal = worker::proposal("p-o-1", "large");
    let now = inquiry.space.moment().now;
    let talked_about = "grant-that-was-talked-about".into();
    let action = closer_protocol::action::draft(&view, episode, result, &proposal, &talked_about, 1, &now).unwrap();
    let payload_id = action.id().clone();
    recorded(&inquiry.space.submit_payload(action).unwrap());
    let view = inquiry.space.view().clone();
    let (episode, action) = (view.episodes.get(&episode_id).expect("it"), view.actions.get(&payload_id).expect("it"));
    let assessed = closer_protocol::adjudicate::pre_action(&view, episode, action, &now).unwrap();
    recorded(&inquiry.space.submit_payload(assessed).unwrap());
    let reply = crate::support::dispatch(&mut inquiry.space, &payload_id);
    assert_eq!(crate::support::codes(&reply), [Code::MissingAuthority]);
    assert_eq!(inquiry.space.world.effects().len(), 0);
}

#[test]
fn an_answer_relates_evidence_only_to_propositions_that_something_names() {
    shows!("CP-C6-05"; by "work.unknown_proposition_related");
    let off = by_role(|_, work, view| {
        let mut answer = worker::reads(work, view, Relation::Supports);
        for relation in &mut answer.assessments {
            relation.proposition_id = "p-unheard-of".into();
        }
        answer
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", off);
    inquiry.asked();
    let before = inquiry.space.view().refusals;
    refused(&inquiry.space.answer_late(&inquiry.id.clone(), "remainder").unwrap(), Code::UnresolvedRef);
    assert_eq!(inquiry.space.view().refusals, before + 1, "the failure is counted");
    assert!(inquiry.space.view().results.is_empty());
}

#[test]
fn an_answer_is_to_work_that_its_producer_was_asked() {
    shows!("CP-C6-08"; by "work.not_issued_to_producer");
    let mut inquiry = Inquiry::agreeing();
    inquiry.asked();
    let work_id = inquiry.round().asked.get(&closer_contracts::id::ActorId::from("remainder")).cloned().expect("work");
    let view = inquiry.space.view().clone();
    let episode = view.episodes.get(&inquiry.episode_id).expect("the episode");
    let work = view.works.get(&work_id).expect("its work");
    let now = inquiry.space.moment().now;
    let answer = worker::claims(&work.body, &view, "basic", Relation::Supports);
    let another = "regulator".into();
    let result = closer_protocol::work::draft_result(&view, episode, &another, &work_id, answer, &now).unwrap();
    refused(&inquiry.space.submit_payload(result).unwrap(), Code::UnresolvedRef);
    recorded(&inquiry.space.answer_late(&inquiry.id.clone(), "remainder").unwrap());
}

#[test]
fn a_proposal_outside_the_vocabulary_is_no_answer() {
    shows!("CP-C5-07"; by "work.proposal_outside_vocabulary");
    let unheard_of = by_role(|_, work, _| {
        let mut proposal = worker::proposal("p-o-1", "basic");
        proposal.operation = "plan.abolish".into();
        WorkResult { action_proposals: vec![proposal], ..worker::nothing(work) }
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", unheard_of);
    inquiry.asked();
    refused(&inquiry.space.answer_late(&inquiry.id.clone(), "remainder").unwrap(), Code::UnregisteredOperation);
    assert!(inquiry.space.view().results.is_empty());
}

#[test]
fn a_participant_that_lacks_a_prerequisite_says_so() {
    shows!("CP-C5-04");
    let lacking = by_role(|_, work, _| {
        let subject = work.question.subject_refs[0].clone();
        let text = "The price list is not in the packet.".into();
        let open =
            closer_contracts::work::Unresolved { subject, need: closer_contracts::work::Need::Prerequisite, text };
        WorkResult { unresolved: vec![open], ..worker::nothing(work) }
    });
    let mut inquiry = Inquiry::of(Deployment::default(), "basic", lacking);
    let report = finished(&mut inquiry);
    assert_eq!(report.findings[0].status, AssessmentStatus::Unassessed, "not a guess");
    assert!(!claimed(&inquiry.space));
    let episode = inquiry.space.view().episodes.get(&inquiry.episode_id).expect("the episode");
    assert_eq!((episode.results.len(), episode.packets.len()), (3, 0), "not a crash, and no question to the user");
}
