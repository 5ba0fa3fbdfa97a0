//! Human review: for one exact artifact, subject and kind of decision; silence approves nothing.

use crate::support::{commit, delta, endorse, propose, recorded, refused, space};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change};
use closer_contracts::digest::Digest;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole};
use closer_contracts::review::{Assurance, ReviewDecision, ReviewReceipt, Reviewer, SupportingMessage};
use closer_contracts::shows;
use closer_protocol::input::Reply;
use closer_protocol::review::{Review, review};
use closer_scenarios::founding::grant;
use closer_scenarios::{Space, worker};

fn reviewed() -> Space {
    space(Box::new(|work, _| worker::nothing(work)))
}

fn section(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// The user's review of a section, resting on the user's own declaration.
fn receipt(space: &mut Space, artifact: Digest, subject: &str, decision: ReviewDecision) -> ReviewReceipt {
    let (message, _) = space.view().declarations.values().next().expect("the declaration").clone();
    ReviewReceipt {
        receipt_id: space.fresh("review").as_str().into(),
        artifact_digest: artifact,
        subject: subject.into(),
        decision,
        reviewer: Reviewer { identity: "user".into(), assurance: Assurance::Session },
        issued_at: space.moment().now,
        supporting_message: SupportingMessage { message, assurance: Assurance::Session },
    }
}

fn submit_as(space: &mut Space, who: &str, role: ProducerRole, receipt: ReviewReceipt) -> Reply {
    let producer = ActorRef { actor_id: who.into(), role };
    space.submit_artifact(receipt, producer, SigningScope::ReviewReceipt).unwrap()
}

fn submit(space: &mut Space, receipt: ReviewReceipt) -> Reply {
    submit_as(space, "user", ProducerRole::User, receipt)
}

fn given(space: &mut Space, artifact: Digest, subject: &str, decision: ReviewDecision) {
    let receipt = receipt(space, artifact, subject, decision);
    recorded(&submit(space, receipt));
}

#[test]
fn a_review_is_its_reviewers_own_as_surely_as_it_says() {
    shows!("CP-D-01"; by "review.of_another", "review.assurance_overstated");
    let mut space = reviewed();
    let own = receipt(&mut space, section("7.2"), "section-7.2", ReviewDecision::WordingApproval);
    refused(&submit_as(&mut space, "worker", ProducerRole::Participant, own.clone()), Code::Unauthenticated);
    let mut surer = own.clone();
    surer.reviewer.assurance = Assurance::Signature;
    refused(&submit(&mut space, surer), Code::Unauthenticated);
    let before = space.view().state.reference();
    recorded(&submit(&mut space, own));
    assert_eq!(space.view().state.reference(), before, "whose statement it is, and not that it is true");
}

#[test]
fn a_message_supports_a_review_if_it_is_the_reviewers_and_on_record() {
    shows!("CP-D-08"; by "review.message_unknown", "review.message_of_another");
    let mut space = reviewed();
    let own = receipt(&mut space, section("7.2"), "section-7.2", ReviewDecision::WordingApproval);
    let mut unheard = own.clone();
    unheard.supporting_message.message = ArtifactRef { id: "message-1".into(), digest: Digest::of(b"relayed") };
    refused(&submit(&mut space, unheard), Code::UnresolvedRef);
    recorded(&space.event("service-a", "price").unwrap());
    let event = space.view().events.values().next().expect("the event").reference();
    let mut anothers = own.clone();
    anothers.supporting_message.message = event;
    refused(&submit(&mut space, anothers), Code::Unauthenticated);
    recorded(&submit(&mut space, own));
}

#[test]
fn no_kind_of_decision_stands_in_for_another() {
    shows!("CP-D-02", "CP-D-03"; by "review.kind_given");
    let kinds =
        [ReviewDecision::ConceptEndorsement, ReviewDecision::WordingApproval, ReviewDecision::EffectAuthorization];
    for kind in kinds {
        let mut space = reviewed();
        given(&mut space, section("7.2"), "section-7.2", kind);
        for wanted in kinds {
            let found = review(space.view(), section("7.2"), &"section-7.2".into(), wanted);
            assert_eq!(found, if wanted == kind { Review::Given } else { Review::Awaiting }, "{kind} for {wanted}");
        }
    }
}

#[test]
fn silence_and_what_stands_next_to_it_approve_nothing() {
    shows!("CP-D-04", "CP-D-05", "CP-D-06"; by "review.kind_given");
    let mut space = reviewed();
    let wanted = ReviewDecision::WordingApproval;
    let stands =
        |space: &Space, text: &str, subject: &str| review(space.view(), section(text), &subject.into(), wanted);
    assert_eq!(stands(&space, "7.2", "section-7.2"), Review::Awaiting, "nobody has said anything");
    given(&mut space, section("7.2"), "section-7.2", wanted);
    assert_eq!(stands(&space, "7.2", "section-7.2"), Review::Given);
    assert_eq!(stands(&space, "4.3", "section-4.3"), Review::Awaiting, "the section next to it");
    assert_eq!(stands(&space, "7.2", "section-4.3"), Review::Awaiting, "the same bytes as another subject");
    assert_eq!(stands(&space, "7.2, revised", "section-7.2"), Review::Awaiting, "a new version");
    assert_eq!(stands(&space, "7.2", "section-7.2"), Review::Given, "the old one stays approved");
    assert_eq!(space.replay().unwrap().reviews, space.view().reviews);
}

#[test]
fn a_request_for_revision_is_no_approval() {
    shows!("CP-D-09"; by "review.declined");
    for decision in [ReviewDecision::Revision, ReviewDecision::Rejection] {
        let mut space = reviewed();
        let wanted = ReviewDecision::WordingApproval;
        given(&mut space, section("7.2"), "section-7.2", decision);
        let stands = |space: &Space| review(space.view(), section("7.2"), &"section-7.2".into(), wanted);
        assert_eq!(stands(&space), Review::Declined(decision));
        given(&mut space, section("7.2"), "section-7.2", wanted);
        assert_eq!(stands(&space), Review::Given, "a later approval of the same text counts");
        given(&mut space, section("7.2"), "section-7.2", decision);
        assert_eq!(stands(&space), Review::Declined(decision), "and so does a later change of mind");
    }
}

/// Asks for the commit of a wider grant on the ground of a review; gives what became of it.
fn widened(
    space: &mut Space,
    decision: ReviewDecision,
    of: impl FnOnce(Digest) -> Digest,
    then: &[ReviewDecision],
) -> Reply {
    let wider = Item::Grant(grant("grant-wider", "plan.change", &["basic", "small", "large"]));
    let changes = vec![Change::Add { item: Box::new(wider) }];
    let artifact = of(digest_of(&changes).unwrap());
    let receipt = receipt(space, artifact, "grant-wider", decision);
    let reference = ArtifactRef { id: receipt.receipt_id.as_str().into(), digest: digest_of(&receipt).unwrap() };
    recorded(&submit(space, receipt));
    for later in then {
        given(space, artifact, "grant-wider", *later);
    }
    let authority = AuthorityRef { kind: AuthorityKind::Instruction, reference };
    let proposed = delta(space, changes, Vec::new(), vec![authority]);
    recorded(&propose(space, proposed.clone()));
    recorded(&endorse(space, &proposed, Disposition::Endorsed));
    commit(space, &proposed)
}

#[test]
fn only_an_effect_authorization_of_these_exact_changes_stands_behind_a_commit() {
    shows!(
        "CP-D-03", "CP-D-06"; by "commit.review_authorizes_effect", "commit.review_names_changes",
        "commit.review_stands"
    );
    let grants = |space: &Space| space.view().state.items(ItemKind::Grant).count();
    for decision in [ReviewDecision::ConceptEndorsement, ReviewDecision::WordingApproval] {
        let mut space = reviewed();
        refused(&widened(&mut space, decision, |digest| digest, &[]), Code::MissingAuthority);
        assert_eq!(grants(&space), 1);
    }
    let mut space = reviewed();
    let another = |_| section("other changes");
    refused(&widened(&mut space, ReviewDecision::EffectAuthorization, another, &[]), Code::MissingAuthority);
    let mut space = reviewed();
    let taken_back = [ReviewDecision::Rejection];
    refused(
        &widened(&mut space, ReviewDecision::EffectAuthorization, |digest| digest, &taken_back),
        Code::MissingAuthority,
    );
    let mut space = reviewed();
    recorded(&widened(&mut space, ReviewDecision::EffectAuthorization, |digest| digest, &[]));
    assert_eq!(grants(&space), 2);
}
