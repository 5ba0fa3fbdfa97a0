//! An organization as the user, and who decides while somebody is away. Spec: SR1, §7.3, Appendix A.

use crate::support::{commit, delta, endorse, grants, propose, recorded, refused};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, UserDecision};
use closer_contracts::auth::SigningScope;
use closer_contracts::briefcase::{DecisionClass, PacketStatus};
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::id::{ArtifactId, DecisionId};
use closer_contracts::item::{IdentityKind, Item};
use closer_contracts::people::{Absence, Mandate, People, Quorum};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::{Timestamp, shows};
use closer_protocol::Reply;
use closer_protocol::bench::PACKET_MS;
use closer_protocol::entry::NoticeKind;
use closer_scenarios::founding::{declaration, grant, identity};
use closer_scenarios::{Deployment, Space, worker};

const MEMBERS: [&str; 3] = ["alice", "bob", "carol"];

/// Two of three decide for the organization.
fn two_of_three(kind: AuthorityKind) -> People {
    let of = MEMBERS.iter().map(|&member| member.into()).collect();
    People { quorum: vec![Quorum { kind, of, needed: 2 }], ..People::default() }
}

fn mandate(person: &str, operations: &[&str]) -> Mandate {
    Mandate {
        person: person.into(),
        classes: vec![DecisionClass::NewAuthority],
        operations: operations.iter().map(|&operation| operation.into()).collect(),
    }
}

fn absence(person: &str, deputy: &str, until_hour: u64) -> Absence {
    let from = Timestamp::parse(closer_scenarios::founding::BEGINNING).unwrap();
    Absence { person: person.into(), to: from.plus_ms(until_hour * 3_600_000), from, deputy: deputy.into() }
}

/// A space whose people these are, with one open packet that asks to allow the large plan.
fn asked(people: People) -> (Space, DecisionId) {
    let mut deployment = Deployment::default().with_profile(|profile| profile.people = people);
    for person in ["alice", "bob", "carol", "dora"] {
        deployment = deployment.with(Item::Identity(identity(person, IdentityKind::User, &[ProducerRole::User], &[])));
    }
    let mut space = Space::found(&deployment, worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().waiting.iter().next().expect("a packet").clone();
    (space, decision_id)
}

fn answer_of(space: &mut Space, id: &DecisionId, person: &str, decision_type: DecisionType) -> UserDecision {
    let mut decision = space.decision(id, decision_type).unwrap();
    decision.authenticated_issuer.identity = person.into();
    decision
}

fn submit(space: &mut Space, decision: UserDecision) -> Reply {
    let person = ActorRef { actor_id: decision.authenticated_issuer.identity.clone(), role: ProducerRole::User };
    space.submit_artifact(decision, person, SigningScope::UserDecision).unwrap()
}

fn allows(space: &mut Space, id: &DecisionId, person: &str) -> Reply {
    let decision = answer_of(space, id, person, DecisionType::ScopedAuthorization);
    submit(space, decision)
}

fn status(space: &Space, id: &DecisionId) -> PacketStatus {
    space.view().packets.get(id).expect("the packet").status
}

#[test]
fn it_takes_as_many_as_the_quorum_says_and_each_counts_once() {
    shows!("CP-2-01"; by "bench.quorum_awaited", "bench.counted_before");
    let (mut space, id) = asked(two_of_three(AuthorityKind::UserDecision));
    let before = grants(&space);
    recorded(&allows(&mut space, &id, "alice"));
    assert_eq!((grants(&space), status(&space, &id)), (before.clone(), PacketStatus::Open), "one of two");
    refused(&allows(&mut space, &id, "alice"), Code::Duplicate);
    space.crash().unwrap();
    assert_eq!(grants(&space), before, "and not after a restart either");
    recorded(&allows(&mut space, &id, "carol"));
    assert_eq!((grants(&space).len(), status(&space, &id)), (before.len() + 1, PacketStatus::Answered));
    space.run().unwrap();
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn answers_that_allow_different_things_do_not_come_together_and_one_refusal_is_enough() {
    let (mut space, id) = asked(two_of_three(AuthorityKind::UserDecision));
    let before = grants(&space);
    recorded(&allows(&mut space, &id, "alice"));
    let mut other = answer_of(&mut space, &id, "bob", DecisionType::ScopedAuthorization);
    other.amendment = Some(worker::proposal("p-o-1", "medium"));
    recorded(&submit(&mut space, other));
    assert_eq!((grants(&space), status(&space, &id)), (before.clone(), PacketStatus::Open));
    let refusal = answer_of(&mut space, &id, "carol", DecisionType::Rejection);
    recorded(&submit(&mut space, refusal));
    assert_eq!((grants(&space), status(&space, &id)), (before, PacketStatus::Answered));
    assert_eq!(space.world.effects().len(), 0);
}

#[test]
fn nobody_outside_the_group_decides_for_it() {
    shows!("CP-A-05"; by "bench.outside_quorum");
    let (mut space, id) = asked(two_of_three(AuthorityKind::UserDecision));
    refused(&allows(&mut space, &id, "dora"), Code::MissingAuthority);
    refused(&allows(&mut space, &id, "user"), Code::MissingAuthority);
    let (mut space, id) = asked(People::default());
    recorded(&allows(&mut space, &id, "dora"));
    assert_eq!(status(&space, &id), PacketStatus::Answered, "where nothing is said, one answer decides");
}

#[test]
fn one_answer_of_several_is_no_authority_however_it_is_cited() {
    shows!("CP-A-05", "CP-INV-02"; by "commit.quorum_reached");
    let (mut space, id) = asked(two_of_three(AuthorityKind::UserDecision));
    recorded(&allows(&mut space, &id, "alice"));
    let (reference, _) = space.view().decisions.get(&id).and_then(|decisions| decisions.first()).expect("it").clone();
    let asked = space.view().packets.get(&id).expect("the packet").packet.body.requested_authorization.clone();
    let asked = asked.expect("it asks").grant().clone();
    let mut wanted = grant("grant-by-one", "plan.change", &["large"]);
    (wanted.parameter_bounds, wanted.expiry) = (asked.parameter_bounds, asked.expiry);
    let authority = AuthorityRef { kind: AuthorityKind::UserDecision, reference };
    let changes = vec![Change::Add { item: Box::new(Item::Grant(wanted)) }];
    let proposed = delta(&mut space, changes, Vec::new(), vec![authority]);
    recorded(&propose(&mut space, proposed.clone()));
    recorded(&endorse(&mut space, &proposed, Disposition::Endorsed));
    refused(&commit(&mut space, &proposed), Code::MissingAuthority);
}

#[test]
fn a_declaration_of_one_permits_nothing_where_it_takes_two() {
    shows!("CP-A-05", "CP-2-01"; by "commit.declared_by_enough");
    let (mut space, _) = asked(two_of_three(AuthorityKind::Declaration));
    let changes = vec![Change::Add { item: Box::new(Item::Grant(grant("grant-2", "plan.change", &["large"]))) }];
    let mut declared = Vec::new();
    for person in ["alice", "bob"] {
        let mut instruction = declaration();
        instruction.declaration_id = format!("instruction-of-{person}").as_str().into();
        instruction.authenticated_issuer.identity = person.into();
        instruction.success_criteria.push(closer_protocol::commit::instruction(&changes).unwrap());
        let reference = ArtifactRef {
            id: ArtifactId::new(instruction.declaration_id.as_str()),
            digest: digest_of(&instruction).unwrap(),
        };
        let producer = ActorRef { actor_id: person.into(), role: ProducerRole::User };
        recorded(&space.submit_artifact(instruction, producer, SigningScope::Declaration).unwrap());
        declared.push(AuthorityRef { kind: AuthorityKind::Declaration, reference });
        let proposed = delta(&mut space, changes.clone(), Vec::new(), vec![declared[0].clone()]);
        recorded(&propose(&mut space, proposed.clone()));
        recorded(&endorse(&mut space, &proposed, Disposition::Endorsed));
        let reply = commit(&mut space, &proposed);
        match person {
            "alice" => refused(&reply, Code::MissingAuthority),
            _ => recorded(&reply),
        }
    }
}

#[test]
fn whoever_has_no_mandate_for_a_question_does_not_decide_it() {
    shows!("CP-A-05"; by "bench.no_standing", "people.mandate_names_operation");
    let people = People { mandate: vec![mandate("bob", &["plan.change"]), mandate("carol", &[])], ..People::default() };
    for (person, decides) in [("alice", false), ("carol", false), ("bob", true), ("user", true)] {
        let (mut space, id) = asked(people.clone());
        let reply = allows(&mut space, &id, person);
        match decides {
            true => recorded(&reply),
            false => refused(&reply, Code::MissingAuthority),
        }
        assert_eq!(status(&space, &id) == PacketStatus::Answered, decides, "{person}");
    }
}

/// Whom it was told that the packet's deadline has passed, and when that was.
fn told(people: People) -> Vec<String> {
    let (mut space, _) = asked(people);
    for _ in 0..3 {
        space.pass(PACKET_MS).unwrap();
    }
    let notices = space.view().notices.values().filter(|notice| notice.kind == NoticeKind::Overdue);
    notices.map(|notice| notice.owner.as_ref().map_or("nobody", |owner| owner.as_str()).to_owned()).collect()
}

#[test]
fn a_deputy_is_asked_while_its_person_is_away_and_only_for_what_it_may_decide_anyway() {
    shows!("CP-7.3-15"; by "people.away_now", "people.deputy_covers");
    let away = |until_hour, operations: &[&str]| People {
        mandate: vec![mandate("bob", operations)],
        absence: vec![absence("user", "bob", until_hour)],
        ..People::default()
    };
    assert_eq!(told(away(48, &["plan.change"])), ["bob"], "while the user is away");
    assert_eq!(told(away(12, &["plan.change"])), ["user"], "who is back by then");
    assert_eq!(told(away(48, &["plan.cancel"])), ["user"], "an absence widens no mandate");
    let (mut space, id) = asked(away(48, &["plan.cancel"]));
    refused(&allows(&mut space, &id, "bob"), Code::MissingAuthority);
}

#[test]
fn a_deputy_takes_the_seat_of_who_is_away_and_no_second_one() {
    shows!("CP-A-05"; by "people.deputy_has_seat");
    let people = |operations: &[&str]| People {
        mandate: vec![mandate("dora", operations)],
        absence: vec![absence("alice", "dora", 48)],
        ..two_of_three(AuthorityKind::UserDecision)
    };
    let (mut space, id) = asked(people(&["plan.change"]));
    recorded(&allows(&mut space, &id, "dora"));
    refused(&allows(&mut space, &id, "alice"), Code::Duplicate);
    recorded(&allows(&mut space, &id, "bob"));
    assert_eq!(status(&space, &id), PacketStatus::Answered);
    let (mut space, id) = asked(people(&[]));
    refused(&allows(&mut space, &id, "dora"), Code::MissingAuthority);
}
