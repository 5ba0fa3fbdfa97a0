//! Commits: on the current parent or not at all, one receipt for every version, and a replay that is the live view.

use crate::support::{commit, delta, endorse, moved, propose, recorded, refused, space, status};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::{Disposition, Stance};
use closer_contracts::audit::{DecisionType, RestrictiveAction};
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::id::{ArtifactId, ObligationId};
use closer_contracts::item::{Dependency, Item};
use closer_contracts::obligation::{ObligationStatus as Status, Origin};
use closer_contracts::refs::{ArtifactRef, StateRef};
use closer_contracts::work::Need;
use closer_contracts::{Digest, shows};
use closer_protocol::View;
use closer_protocol::entry::{ArtifactBody, Entry};
use closer_scenarios::founding::{grant, obligation};
use closer_scenarios::{Deployment, Mode, Space, worker};

fn two() -> Space {
    Space::found(&Deployment::default().with_obligation("o-2", "service-b"), worker::proposes("basic")).unwrap()
}

fn endorsed(space: &mut Space, changes: Vec<Change>) -> closer_contracts::delta::Delta {
    let delta = delta(space, changes, Vec::new(), Vec::new());
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    delta
}

#[test]
fn two_deltas_that_touch_the_same_thing_never_both_commit() {
    shows!("CP-5-06", "CP-C10-06", "CP-8.1-11"; by "state.rebase_touched");
    let mut space = two();
    let first = endorsed(&mut space, vec![moved("o-1", Status::AwaitingEvent)]);
    let second = endorsed(&mut space, vec![moved("o-1", Status::AwaitingUserJudgment)]);
    assert_eq!(first.parent_state, second.parent_state);
    recorded(&commit(&mut space, &first));
    refused(&commit(&mut space, &second), Code::StaleParent);
    assert_eq!(status(&space, "o-1"), Status::AwaitingEvent);
    let fresh = endorsed(&mut space, vec![moved("o-1", Status::AwaitingUserJudgment)]);
    recorded(&commit(&mut space, &fresh));
}

#[test]
fn a_delta_about_something_else_is_reissued_on_the_newer_parent() {
    shows!("CP-8.1-10", "CP-5-06"; by "state.rebase_touched");
    let mut space = two();
    let first = endorsed(&mut space, vec![moved("o-1", Status::AwaitingEvent)]);
    let second = endorsed(&mut space, vec![moved("o-2", Status::AwaitingEvent)]);
    recorded(&commit(&mut space, &first));
    recorded(&commit(&mut space, &second));
    let newest = space.view().commits.get_max().expect("a commit").1.clone();
    assert_ne!(newest.commit.delta.delta_id, second.delta_id, "the original stays as it was");
    assert_eq!(newest.commit.delta.changes, second.changes);
    assert_eq!(newest.commit.delta.parent_state, newest.commit.parent);
    let cited = &newest.receipt.expect("its receipt").adjudication_refs;
    assert_eq!(cited.len(), 2, "the rule's endorsement and the original one");
    let original = space.view().deltas.get(&second.delta_id).expect("on record");
    assert_eq!(original.body.parent_state, first.parent_state, "each shows the parent it was made on");
}

#[test]
fn a_delta_on_a_parent_that_was_never_accepted_is_not_recorded() {
    shows!("CP-C10-10", "CP-B-19"; by "delta.parent_differs");
    let mut space = two();
    let mut forged = delta(&mut space, vec![moved("o-1", Status::AwaitingEvent)], Vec::new(), Vec::new());
    forged.parent_state.digest = Digest::of(b"forged");
    let forged = forged.sealed().unwrap();
    refused(&propose(&mut space, forged.clone()), Code::DigestMismatch);
    let ahead = StateRef { version: 99, digest: Digest::of(b"ahead") };
    let ahead = closer_contracts::delta::Delta { parent_state: ahead, ..forged }.sealed().unwrap();
    refused(&propose(&mut space, ahead), Code::UnresolvedRef);
}

/// A run with everything in it: a restriction, a question, an answer, a lost answer, closure.
fn eventful() -> Space {
    let mut space =
        Space::found(&Deployment::default().with_obligation("o-2", "service-b"), worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    recorded(&space.event("service-b", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    recorded(&space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap());
    space.world.effect_mode = Mode::AppliedUnanswered;
    space.run().unwrap();
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    space.pass(400 * 24 * 3_600_000).unwrap();
    space
}

/// What a view says, as far as it can be compared.
fn told(view: &View) -> String {
    format!("{view:?}")
}

#[test]
fn replay_equals_the_live_view_after_every_record() {
    shows!("CP-5-12", "CP-C10-13"; by "state.replay_root", "state.replay_after");
    let space = eventful();
    let mut view = View::default();
    let mut versions: Vec<StateRef> = Vec::new();
    for record in space.records() {
        view.fold(&Entry::read(record).unwrap(), &record.admitted_at).unwrap();
        let reference = view.state.reference();
        match versions.last() {
            Some(newest) if newest.version == reference.version => {
                assert_eq!(*newest, reference, "a version never changes")
            }
            Some(_) | None => versions.push(reference),
        }
    }
    assert!(versions.len() > 5, "the run is eventful: {}", versions.len());
    assert!(versions.windows(2).all(|pair| pair[1].version == pair[0].version + 1));
    assert_eq!(told(&view), told(space.view()));
}

#[test]
fn every_version_has_exactly_one_receipt_and_they_chain() {
    shows!("CP-C14-10", "CP-C14-11", "CP-C10-04"; by "state.receipts_chain");
    let space = eventful();
    let receipts: Vec<_> = space
        .entries()
        .unwrap()
        .into_iter()
        .filter_map(|(_, entry)| {
            let Entry::Artifact(artifact) = entry else { return None };
            if let ArtifactBody::CommitReceipt(receipt) = &*artifact { Some((**receipt).clone()) } else { None }
        })
        .collect();
    let versions: Vec<u64> = receipts.iter().map(|receipt| receipt.after_state.version).collect();
    assert_eq!(versions, (1..=space.view().state.reference().version).collect::<Vec<_>>());
    closer_state::receipt::verify_chain(&receipts).unwrap();
    let missing = receipts.iter().enumerate().filter(|(i, _)| *i != 2).map(|(_, receipt)| receipt);
    assert!(closer_state::receipt::verify_chain(missing).is_err(), "a gap is noticed");
}

#[test]
fn a_long_list_of_what_was_invalidated_is_paged_and_says_so() {
    shows!("CP-B-12", "CP-B-13"; by "state.page_is_whole");
    const DELEGATES: usize = 300;
    let mut deployment = Deployment::default();
    for number in 0..DELEGATES {
        let delegate = format!("grant-delegate-{number:03}");
        deployment = deployment.with(Item::Grant(grant(&delegate, "plan.change", &["basic"]))).with(Item::Dependency(
            Dependency {
                dependency_id: format!("rests-{number:03}").as_str().into(),
                premise: "grant-1".into(),
                dependent: delegate.as_str().into(),
            },
        ));
    }
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    let committed = space.view().commits.get_max().expect("the commit").1.clone();
    let page = &committed.receipt.expect("its receipt").invalidated_dependencies;
    assert_eq!((page.total, page.complete), (DELEGATES as u64, false));
    assert!(page.items.len() < DELEGATES);
    let whole: Vec<_> = committed
        .commit
        .derived
        .iter()
        .filter(|derived| matches!(derived, closer_state::DerivedChange::RevokeDelegate { .. }))
        .map(|derived| derived.subject())
        .map(|(kind, id)| closer_contracts::audit::InvalidatedItem { kind, id })
        .collect();
    assert_eq!(whole.len(), DELEGATES, "none is dropped");
    assert_eq!(digest_of(&whole).unwrap(), page.list_digest, "the page names the whole list");
    let first = space.view().commits.get_min().expect("a commit").1.clone();
    assert!(first.receipt.expect("its receipt").invalidated_dependencies.complete);
}

#[test]
fn an_obligation_comes_from_a_declaration_or_an_accepted_requirement() {
    shows!("CP-1.1-17", "CP-C3-02", "CP-1.1-18"; by "state.origin_resolves");
    let mut space = two();
    recorded(&space.event("service-a", "price").unwrap());
    let event = space.view().events.values().next().expect("the event").reference();
    let admitted = |space: &mut Space, origin: Option<ArtifactRef>| {
        let (mut obligation, reentries) = obligation("o-3", "service-c");
        if let Some(origin) = origin {
            obligation.origin = Origin::Declaration(origin);
        }
        let delta = endorsed(space, vec![Change::AdmitObligation { obligation: Box::new(obligation), reentries }]);
        commit(space, &delta)
    };
    refused(&admitted(&mut space, Some(event)), Code::NoOrigin);
    let nothing = ArtifactRef { id: ArtifactId::from("claim"), digest: Digest::of(b"a model says so") };
    refused(&admitted(&mut space, Some(nothing)), Code::NoOrigin);
    assert!(space.view().state.obligation(&"o-3".into()).is_none());
    recorded(&admitted(&mut space, None));
    assert_eq!(status(&space, "o-3"), Status::Active);
}

#[test]
fn a_declaration_outside_its_period_is_no_origin() {
    shows!("CP-C14-18"; by "commit.declaration_in_effect");
    for (from, admissible) in [("2025-12-31T00:00:00Z", true), ("2026-02-01T00:00:00Z", false)] {
        let mut deployment = Deployment::default();
        for declaration in &mut deployment.founding.declarations {
            declaration.effective_period.from = closer_contracts::Timestamp::parse(from).unwrap();
            let digest = digest_of(declaration).unwrap();
            for (obligation, _) in &mut deployment.founding.obligations {
                obligation.origin = Origin::Declaration(ArtifactRef {
                    id: ArtifactId::new(declaration.declaration_id.as_str()),
                    digest,
                });
            }
        }
        let founded = Space::found(&deployment, worker::proposes("basic"));
        assert_eq!(founded.is_ok(), admissible, "{from}");
        if let Err(broken) = founded {
            assert!(broken.to_string().contains("origin"), "{broken}");
        }
    }
}

#[test]
fn nothing_but_an_adjudicated_commit_closes_an_obligation() {
    shows!("CP-5-10", "CP-C3-03"; by "state.closing_authorized");
    let mut space = space(worker::leaves_open(Need::Evidence));
    for closing in [Status::Resolved, Status::Withdrawn, Status::Superseded] {
        let change = Change::SetStatus {
            obligation_id: ObligationId::from("o-1"),
            status: closing,
            successor: None,
            reason: "It is time.".into(),
        };
        let (reference, _) = space.view().declarations.values().next().expect("the declaration").clone();
        let authority = AuthorityRef { kind: AuthorityKind::Declaration, reference };
        let delta = delta(&mut space, vec![change], Vec::new(), vec![authority]);
        recorded(&propose(&mut space, delta.clone()));
        let mut adjudication = space.endorsement(&delta, Disposition::Endorsed).unwrap();
        adjudication.role_positions[0].position = Stance::Against;
        recorded(&crate::support::submit(&mut space, closer_contracts::refs::ProducerRole::Assessor, adjudication));
        refused(&commit(&mut space, &delta), Code::NotClosable);
    }
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    space.pass(400 * 24 * 3_600_000).unwrap();
    assert!(status(&space, "o-1").is_open(), "neither an episode's end nor time closes it");
}

/// A wider grant, under this authority.
fn wider() -> Vec<Change> {
    let wider = Item::Grant(grant("grant-wider", "plan.change", &["basic", "small", "large"]));
    vec![Change::Add { item: Box::new(wider) }]
}

fn widened(space: &mut Space, kind: AuthorityKind, reference: ArtifactRef) -> closer_protocol::Reply {
    let delta = delta(space, wider(), Vec::new(), vec![AuthorityRef { kind, reference }]);
    recorded(&propose(space, delta.clone()));
    recorded(&endorse(space, &delta, Disposition::Endorsed));
    commit(space, &delta)
}

#[test]
fn an_issuers_appointment_is_no_authority_for_a_grant() {
    shows!("CP-INV-02", "CP-7.2-10"; by "commit.appointment_only_restricts");
    let mut space = space(worker::proposes("basic"));
    let digest = digest_of(space.view().state.appointment(&"issuer-1".into()).expect("the appointment")).unwrap();
    let appointment = ArtifactRef { id: ArtifactId::from("issuer-1"), digest };
    refused(&widened(&mut space, AuthorityKind::Appointment, appointment), Code::MissingAuthority);
}

#[test]
fn the_profile_is_no_authority_for_a_grant() {
    shows!("CP-INV-02", "CP-C10-08"; by "commit.profile_predeclares");
    let mut space = space(worker::proposes("basic"));
    let profile = closer_protocol::commit::profile_authority(space.view()).expect("the profile").reference;
    refused(&widened(&mut space, AuthorityKind::Profile, profile), Code::MissingAuthority);
}

#[test]
fn a_declaration_authorizes_the_exact_changes_it_names_and_no_others() {
    shows!("CP-INV-02", "CP-3.3-03"; by "commit.declaration_names_changes");
    let mut space = space(worker::proposes("basic"));
    let (standing, _) = space.view().declarations.values().next().expect("one").clone();
    refused(&widened(&mut space, AuthorityKind::Declaration, standing), Code::MissingAuthority);
    let named = space.instruct(&wider()).unwrap();
    recorded(&widened(&mut space, AuthorityKind::Declaration, named.reference));
}

#[test]
fn a_declaration_whose_period_is_over_authorizes_nothing() {
    shows!("CP-C14-18", "CP-INV-02"; by "commit.authority_in_effect");
    let mut deployment = Deployment::default();
    for declaration in &mut deployment.founding.declarations {
        let named = closer_protocol::commit::instruction(&wider()).unwrap();
        declaration.success_criteria.push(named);
        declaration.effective_period.to = Some(closer_contracts::Timestamp::parse("2026-01-01T12:00:10Z").unwrap());
        let digest = digest_of(declaration).unwrap();
        for (obligation, _) in &mut deployment.founding.obligations {
            obligation.origin =
                Origin::Declaration(ArtifactRef { id: ArtifactId::new(declaration.declaration_id.as_str()), digest });
        }
    }
    for (passed, authorizes) in [(9_999, true), (10_000, false)] {
        let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
        space.pass(passed).unwrap();
        let (reference, _) = space.view().declarations.values().next().expect("the declaration").clone();
        let reply = widened(&mut space, AuthorityKind::Declaration, reference);
        assert_eq!(reply.refusal().is_none(), authorizes, "after {passed} ms: {reply:?}");
    }
}
