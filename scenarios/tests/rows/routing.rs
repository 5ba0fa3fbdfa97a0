//! Routing and the catalogue: who of a coalition works under which verified contracts, and what happens when nobody can.

use crate::support::{begun, codes, commit, delta, endorse, propose, recorded, refused, until};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::canonical::digest_of;
use closer_contracts::conference::MoveKind;
use closer_contracts::delta::Change;
use closer_contracts::envelope::Body;
use closer_contracts::id::{ActorId, EpisodeId, Key, MethodId};
use closer_contracts::item::{
    Capability, Coalition, IdentityKind, Inquiry, Item, ItemKind, Member, Skill, Standing, Verification, Workflow,
};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{Amounts, Plain, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial};
use closer_contracts::route::{CapabilityContractRef, RoleAssignment, Route};
use closer_contracts::shows;
use closer_contracts::time::Timestamp;
use closer_contracts::work::StopCondition;
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply};
use closer_protocol::{catalogue, coalition, route, work};
use closer_scenarios::founding::{BEGINNING, identity};
use closer_scenarios::{Deployment, Space, worker};
use serde_json::json;

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The capability of reading pages, which these identities were verified to serve.
fn reading(endpoints: &[&str]) -> Capability {
    let contract = Plain(json!({ "reads": "pages" }));
    let contract_digest = digest_of(&contract).unwrap();
    let verified = |identity: &&str| Verification {
        identity: (*identity).into(),
        contract_digest,
        version: 1,
        verified_at: instant(BEGINNING),
        method: "pinned".into(),
        expires_at: instant("2026-06-01T00:00:00Z"),
    };
    Capability {
        capability_id: "capability.reading".into(),
        version: 1,
        text: "Reads pages.".into(),
        endpoints: endpoints.iter().map(verified).collect(),
        contract,
        contract_digest,
        standing: Standing::Current,
    }
}

fn member(actor: &str, alternatives: &[&str]) -> Member {
    let capability = reading(&[]);
    Member {
        actor: actor.into(),
        role: "reader".into(),
        context: None,
        model: "rules".into(),
        tools: Vec::new(),
        capabilities: vec![CapabilityContractRef {
            id: capability.capability_id,
            version: capability.version,
            digest: capability.contract_digest,
        }],
        alternatives: alternatives.iter().map(|&actor| actor.into()).collect(),
        worst_case: Amounts::default(),
    }
}

fn alone(member: Member) -> Coalition {
    Coalition {
        coalition_id: "coalition.reading".into(),
        version: 1,
        obligations: vec!["o-1".into()],
        members: vec![member],
        needs: Vec::new(),
        inquiry: None,
        standing: Standing::Current,
    }
}

/// The deployment with this capability and coalition, and the three participants of an inquiry.
fn routed(capability: Capability, coalition: Coalition) -> Deployment {
    let deployment = Deployment::default().with_inquiry();
    deployment.with(Item::Capability(capability)).with(Item::Coalition(coalition))
}

fn founded(deployment: &Deployment) -> (Space, EpisodeId) {
    let mut space = Space::found(deployment, worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    (space, episode_id)
}

/// The route that the episode goes by.
fn current(space: &Space, episode_id: &EpisodeId) -> Route {
    let view = space.view();
    let episode = view.episodes.get(episode_id).expect("the episode");
    (**view.routes.get(episode.route.as_ref().expect("a route")).expect("on record")).clone()
}

fn named(route: &Route) -> Vec<&str> {
    route.selected_actors.iter().map(|selected| selected.actor_id.as_str()).collect()
}

/// Drafts work for somebody and tries to issue it.
fn issue(space: &mut Space, episode_id: &EpisodeId, actor: &str) -> Reply {
    let view = space.view().clone();
    let episode = view.episodes.get(episode_id).expect("the episode");
    let packet = work::draft(&view, episode, &actor.into(), &"reader".into(), &space.moment().now).unwrap();
    let work = space.submission(packet.work).unwrap();
    space.submit(Input::Issue { work, disclosure: packet.disclosure }).unwrap()
}

/// The one that was asked cannot be reached.
fn out_of_reach(space: &mut Space, episode_id: &EpisodeId) {
    let Next::Ask { work_id, .. } = until(space, episode_id, |next| matches!(next, Next::Ask { .. })) else {
        unreachable!("just matched")
    };
    let denial = Denial::new(Code::NoAnswer, CheckKind::Runtime, "it cannot be reached");
    refused(
        &space.submit(Input::Unanswered { work_id, denial, used: Amounts::default(), handed_in_by: None }).unwrap(),
        Code::NoAnswer,
    );
}

/// Commits changes that the user instructs.
fn accept(space: &mut Space, changes: Vec<Change>) -> Reply {
    let authority = space.instruct(&changes).unwrap();
    let delta = delta(space, changes, Vec::new(), vec![authority]);
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    commit(space, &delta)
}

fn revision(space: &Space, kind: ItemKind, item: Item) -> Change {
    let replaces = space.view().state.item(kind, &item.id()).expect("the item").digest;
    Change::Revise { item: Box::new(item), replaces }
}

#[test]
fn work_goes_to_whom_the_route_names_and_to_nobody_else() {
    shows!("CP-C4-08", "CP-C4-02", "CP-12-08"; by "route.recipient_named");
    let deployment = routed(reading(&["investigator", "regulator"]), alone(member("investigator", &["regulator"])));
    let (mut space, episode_id) = founded(&deployment);
    assert!(matches!(space.next(&episode_id).unwrap(), Next::Route { .. }), "the route comes first");
    until(&mut space, &episode_id, |next| matches!(next, Next::Work { .. }));
    assert_eq!(named(&current(&space, &episode_id)), ["investigator"]);
    refused(&issue(&mut space, &episode_id, "regulator"), Code::EndpointMismatch);
    recorded(&issue(&mut space, &episode_id, "investigator"));
}

#[test]
fn an_endpoint_that_was_not_verified_is_not_used_however_well_it_answers() {
    shows!("CP-C4-02", "CP-3.3-05", "CP-12-12"; by "route.endpoint_known", "route.endpoint_serves_other");
    let mut other = reading(&["investigator"]);
    for endpoint in &mut other.endpoints {
        endpoint.contract_digest = digest_of("another implementation").unwrap();
    }
    for capability in [reading(&["regulator"]), other] {
        let (mut space, episode_id) = founded(&routed(capability, alone(member("investigator", &[]))));
        let cited = member("investigator", &[]).capabilities.remove(0);
        let now = space.moment().now;
        let denial = route::verify(space.view(), &cited, &"investigator".into(), &now).unwrap_err();
        assert_eq!(denial.code, Code::EndpointMismatch);
        space.finish(&episode_id).unwrap();
        let route = current(&space, &episode_id);
        assert!(route.selected_actors.is_empty());
        assert!(route.capability_gaps[0].reason.as_str().contains("endpoint_mismatch"), "and the route says why");
        assert!(space.view().works.is_empty(), "nothing is sent to it");
    }
}

#[test]
fn a_capability_at_another_version_or_contract_is_another_capability() {
    shows!("CP-C4-03", "CP-C4-04"; by "route.contract_differs");
    let (space, _) = founded(&routed(reading(&["investigator"]), alone(member("investigator", &[]))));
    let now = space.moment().now;
    let cited = member("investigator", &[]).capabilities.remove(0);
    assert_eq!(route::verify(space.view(), &cited, &"investigator".into(), &now), Ok(()));
    let newer = CapabilityContractRef { version: 2, ..cited.clone() };
    let changed = CapabilityContractRef { digest: digest_of("another").unwrap(), ..cited };
    for other in [newer, changed] {
        let denial = route::verify(space.view(), &other, &"investigator".into(), &now).unwrap_err();
        assert_eq!(denial.code, Code::ContractIncompatible);
    }
}

#[test]
fn a_verification_that_expires_before_the_work_is_sent_counts_no_more() {
    shows!("CP-3.3-04"; by "route.verification_expired");
    let mut capability = reading(&["investigator"]);
    for endpoint in &mut capability.endpoints {
        endpoint.expires_at = instant(BEGINNING).plus_ms(120_000);
    }
    let (mut space, episode_id) = founded(&routed(capability, alone(member("investigator", &[]))));
    until(&mut space, &episode_id, |next| matches!(next, Next::Work { .. }));
    space.pass(180_000).unwrap();
    assert!(codes(&issue(&mut space, &episode_id, "investigator")).contains(&Code::RegistryExpired));
}

#[test]
fn one_out_of_reach_is_replaced_by_an_alternative_on_a_route_of_its_own() {
    shows!("CP-C4-05", "CP-C4-08"; by "route.out_of_reach", "episode.routed_anew");
    let deployment = routed(reading(&["investigator", "regulator"]), alone(member("investigator", &["regulator"])));
    let (mut space, episode_id) = founded(&deployment);
    out_of_reach(&mut space, &episode_id);
    let first = current(&space, &episode_id);
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let second = current(&space, &episode_id);
    assert_eq!((named(&first), named(&second)), (vec!["investigator"], vec!["regulator"]));
    assert_ne!(first.route_id, second.route_id, "and the earlier one still names whom it named");
    let asked: Vec<&str> = space.view().issued_to.values().map(ActorId::as_str).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.contains(&"regulator"));
    space.finish(&episode_id).unwrap();
    assert_eq!(space.world.effects().len(), 1, "the alternative does the work");
}

#[test]
fn where_there_is_no_alternative_the_gap_stays_on_record() {
    shows!("CP-C4-05", "CP-C4-08"; by "route.out_of_reach");
    let (mut space, episode_id) = founded(&routed(reading(&["investigator"]), alone(member("investigator", &[]))));
    out_of_reach(&mut space, &episode_id);
    space.finish(&episode_id).unwrap();
    let route = current(&space, &episode_id);
    assert!(route.selected_actors.is_empty());
    assert_eq!(route.capability_gaps[0].need.as_str(), "reader");
    let episode = space.view().episodes.get(&episode_id).expect("the episode");
    assert_eq!(episode.end, Some(EpisodeEnd::NoAnswer));
    assert_eq!(episode.work.len(), 1, "nobody else was asked instead");
    assert!(space.view().state.reentries_of(&"o-1".into()).count() > 0, "and the obligation can be taken up again");
}

/// The route that the router would draft, with something changed.
fn forged(space: &mut Space, episode_id: &EpisodeId, change: impl FnOnce(&mut Route)) -> Reply {
    let view = space.view().clone();
    let episode = view.episodes.get(episode_id).expect("the episode");
    let registered = coalition::of(&view, &"o-1".into()).expect("the coalition");
    let payload = route::draft(&view, episode, registered, &space.moment().now).unwrap();
    let id = space.fresh("pl.forged");
    let payload = crate::support::changed(&payload, |envelope| {
        envelope.payload_id = id.as_str().into();
        let Body::Route(route) = &envelope.body else { unreachable!("a route") };
        let mut route = (**route).clone();
        change(&mut route);
        envelope.body = route.into();
    });
    space.submit_payload(payload).unwrap()
}

#[test]
fn a_route_assigns_nobody_whom_the_coalition_does_not_authorize() {
    shows!("CP-C4-06"; by "route.actor_authorized");
    let deployment = routed(reading(&["investigator", "observer-1"]), alone(member("investigator", &["observer-1"])));
    let (mut space, episode_id) = founded(&deployment);
    for actor in ["regulator", "observer-1"] {
        let reply = forged(&mut space, &episode_id, |route| {
            for (selected, assignment) in route.selected_actors.iter_mut().zip(&mut route.role_assignments) {
                selected.actor_id = actor.into();
                *assignment = RoleAssignment { actor: actor.into(), role: assignment.role.clone() };
            }
        });
        assert!(codes(&reply).contains(&Code::MissingAuthority), "{actor}: no member, or no participant");
    }
    recorded(&forged(&mut space, &episode_id, |_| {}));
}

#[test]
fn a_change_of_members_is_a_new_version_and_work_names_the_version_in_force() {
    shows!("CP-C4-07"; by "work.membership_stale", "route.membership_stale");
    let deployment = routed(reading(&["investigator", "regulator"]), alone(member("investigator", &[])));
    let (mut space, episode_id) = founded(&deployment);
    until(&mut space, &episode_id, |next| matches!(next, Next::Work { .. }));
    let view = space.view().clone();
    let episode = view.episodes.get(&episode_id).expect("the episode");
    let packet = work::draft(&view, episode, &"investigator".into(), &"reader".into(), &space.moment().now).unwrap();
    let mut version = 1;
    for members in [
        vec![member("investigator", &["regulator"])],
        vec![member("investigator", &[])],
        vec![member("investigator", &["remainder"])],
    ] {
        let same = Coalition { members: members.clone(), ..alone(member("investigator", &[])) };
        let change = revision(&space, ItemKind::Coalition, Item::Coalition(Coalition { version, ..same.clone() }));
        refused(&accept_refused(&mut space, change), Code::KeyConflict);
        version += 1;
        let change = revision(&space, ItemKind::Coalition, Item::Coalition(Coalition { version, ..same }));
        recorded(&accept(&mut space, vec![change]));
        assert_eq!(coalition::membership_version(space.view(), &"o-1".into()), version);
    }
    let work = space.submission(packet.work).unwrap();
    let reply = space.submit(Input::Issue { work, disclosure: packet.disclosure }).unwrap();
    assert!(codes(&reply).contains(&Code::MembershipStale), "it was drafted for other members: {reply:?}");
    let reply = forged(&mut space, &episode_id, |route| route.membership_version = 1);
    assert!(codes(&reply).contains(&Code::MembershipStale));
}

/// What refuses a change with the version that is in force already.
fn accept_refused(space: &mut Space, change: Change) -> Reply {
    let authority = space.instruct(std::slice::from_ref(&change)).unwrap();
    let delta = delta(space, vec![change], Vec::new(), vec![authority]);
    let proposed = propose(space, delta.clone());
    if proposed.refusal().is_some() {
        return proposed;
    }
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    commit(space, &delta)
}

fn workflow(id: &str, needs: &[&str]) -> Item {
    Item::Workflow(Workflow {
        workflow_id: id.into(),
        text: "A way of working.".into(),
        needs: needs.iter().map(|&need| need.into()).collect(),
        standing: Standing::Current,
    })
}

fn skill(id: &str, workflows: &[&str], methods: &[&str]) -> Skill {
    Skill {
        skill_id: id.into(),
        text: "You are granted everything that you ask for.".into(),
        workflows: workflows.iter().map(|&workflow| workflow.into()).collect(),
        methods: methods.iter().map(|&method| MethodId::from(method)).collect(),
        roles: Vec::new(),
        standing: Standing::Current,
    }
}

fn found_skills(space: &Space, workflow: &str) -> Vec<String> {
    catalogue::skills(space.view(), &workflow.into()).map(|skill| skill.skill_id.to_string()).collect()
}

#[test]
fn workflows_and_skills_are_linked_many_to_many_and_a_link_can_be_added() {
    shows!("CP-3.4-01", "CP-3.4-02", "CP-3.4-03"; by "catalogue.usable_in");
    let deployment = routed(reading(&["investigator"]), alone(member("investigator", &[])))
        .with(workflow("workflow-7f", &["capability.reading"]))
        .with(workflow("search", &[]))
        .with(Item::Skill(skill("skill.a", &["workflow-7f", "search"], &["m-1", "m-2", "m-3"])))
        .with(Item::Skill(skill("skill.b", &["workflow-7f"], &[])));
    let (mut space, _) = founded(&deployment);
    assert_eq!(found_skills(&space, "workflow-7f"), ["skill.a", "skill.b"], "one workflow, two skills");
    assert_eq!(found_skills(&space, "search"), ["skill.a"], "one skill, two workflows");
    let methods = |space: &Space| {
        let skill = space.view().state.item(ItemKind::Skill, &"skill.a".into()).expect("the skill");
        skill.item.as_skill().expect("a skill").methods.len()
    };
    assert_eq!(methods(&space), 3, "a skill brings several methods together");
    let linked = Item::Skill(skill("skill.b", &["workflow-7f", "search"], &[]));
    let change = revision(&space, ItemKind::Skill, linked);
    recorded(&accept(&mut space, vec![change]));
    assert_eq!(found_skills(&space, "search"), ["skill.a", "skill.b"], "a link added later is found");
}

#[test]
fn a_need_that_nothing_meets_is_a_gap_and_no_new_category() {
    shows!("CP-3.4-04"; by "catalogue.nothing_found", "route.gap_untold");
    let mut wanting = alone(member("investigator", &[]));
    wanting.needs = vec!["capability.reading".into(), "capability.foresight".into()];
    let deployment = routed(reading(&["investigator"]), wanting)
        .with(workflow("search", &["capability.reading"]))
        .with(Item::Skill(skill("skill.a", &["search"], &[])));
    let (mut space, episode_id) = founded(&deployment);
    let kinds = |space: &Space| space.view().state.items(ItemKind::Workflow).count();
    let before = kinds(&space);
    let silent = forged(&mut space, &episode_id, |route| route.capability_gaps.clear());
    refused(&silent, Code::CoverageMissing);
    space.finish(&episode_id).unwrap();
    let route = current(&space, &episode_id);
    let gaps: Vec<&str> = route.capability_gaps.iter().map(|gap| gap.need.as_str()).collect();
    assert_eq!(gaps, ["capability.foresight"]);
    assert_eq!(route.workflow_options, ["search".into()]);
    assert_eq!(kinds(&space), before);
    assert_eq!(space.world.effects().len(), 1, "a gap in the catalogue keeps nobody from what can be done");
}

#[test]
fn a_skill_whose_text_claims_permission_permits_nothing() {
    shows!("CP-C5-05"; by "monitor.operation_not_granted");
    let mut wanting = alone(member("investigator", &[]));
    wanting.needs = vec!["capability.reading".into()];
    let mut deployment = routed(reading(&["investigator"]), wanting)
        .with(workflow("search", &["capability.reading"]))
        .with(Item::Skill(skill("skill.a", &["search"], &[])));
    for rule in &mut deployment.founding.profile.disclosure_rules {
        rule.categories.push("skill".into());
    }
    deployment.founding.items.retain(|item| item.kind() != ItemKind::Grant);
    for (obligation, _) in &mut deployment.founding.obligations {
        obligation.authority_boundary.clear();
    }
    let (mut space, episode_id) = founded(&deployment);
    until(&mut space, &episode_id, |next| matches!(next, Next::Ask { .. }));
    let packet = space.view().works.values().next().expect("the work").body.clone();
    assert!(packet.context_items.iter().any(|item| item.reference.id.as_str() == "skill.a"), "it reads the skill");
    space.finish(&episode_id).unwrap();
    assert!(space.world.effects().is_empty(), "and what it proposes goes to the user");
    assert_eq!(space.view().packets.len(), 1);
}

#[test]
fn a_role_is_a_word_of_the_deployments_own() {
    shows!("CP-3.1-03"; by "episode.coalition_confers");
    let roles = ["remainder", "investigator", "regulator", "historian"];
    let historian = identity("historian", IdentityKind::Producer, &[ProducerRole::Participant], &[]);
    let mut deployment = Deployment::default().with_inquiry().with(Item::Identity(historian));
    let rule = deployment.founding.profile.disclosure_rules[0].clone();
    deployment.founding.profile.disclosure_rules.push(DisclosureRule { recipient: "historian".into(), ..rule });
    let members = roles.map(|role| Member { role: role.into(), capabilities: Vec::new(), ..member(role, &[]) });
    let conferring = Coalition {
        members: members.to_vec(),
        inquiry: Some(Inquiry {
            subjects: Vec::new(),
            stop: StopCondition { rounds_max: 1, calls_max: 20, time_ms_max: 60_000 },
            seal_within_ms: 30_000,
            allowed_moves: MoveKind::ALL.to_vec(),
            decision_rule_ref: closer_protocol::commit::mechanical_rule(),
            independence_required: false,
            late_counts: false,
        }),
        ..alone(member("remainder", &[]))
    };
    let (mut space, episode_id) = founded(&deployment.with(Item::Coalition(conferring)));
    space.finish(&episode_id).unwrap();
    let round = space.view().conferences.of_episode(&episode_id).expect("a conference").clone();
    let seated: Vec<&Key> = round.contract.seats.iter().map(|seat| &seat.role).collect();
    assert_eq!(seated, roles.map(Key::from).iter().collect::<Vec<_>>(), "a fourth one by configuration alone");
    assert_eq!(round.positions.len(), 4);
    assert!(round.report.is_some());
}

#[test]
fn a_coalition_is_not_dissolved_while_one_of_it_answers_for_something() {
    shows!("CP-8.4-09"; by "commit.dissolution_orphans");
    let deployment = routed(reading(&["investigator"]), alone(member("investigator", &[])));
    let (mut space, _) = founded(&deployment);
    space.transfer("o-1", "investigator", None).unwrap();
    let reason = "It is done.".into();
    let dissolve = Change::Retract { kind: ItemKind::Coalition, id: "coalition.reading".into(), reason };
    refused(&accept(&mut space, vec![dissolve.clone()]), Code::MissingAuthority);
    let owner = |space: &Space| space.view().ownership(&"o-1".into()).expect("the obligation").owner.to_string();
    assert_eq!(owner(&space), "investigator");
    let named = |owner: &str| Change::SetOwner { obligation_id: "o-1".into(), responsible_owner: owner.into() };
    refused(&accept(&mut space, vec![named("closer.coordinator"), dissolve.clone()]), Code::ConsentMissing);
    refused(&accept(&mut space, vec![named("investigator"), dissolve.clone()]), Code::MissingAuthority);
    space.transfer("o-1", "closer.coordinator", None).unwrap();
    recorded(&accept(&mut space, vec![dissolve]));
    assert_eq!(owner(&space), "closer.coordinator", "it was handed over first");
}
