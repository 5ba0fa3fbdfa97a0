//! Small words for tests: what was replied, and how far an episode has come.

use closer_contracts::Digest;
use closer_contracts::Payload;
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::delta::{AdmissionPath, AuthorityRef, Change, Delta};
use closer_contracts::envelope::{Body, Envelope};
use closer_contracts::id::{DeltaId, EpisodeId, PayloadId};
use closer_contracts::item::{AffectedScope, ItemKind};
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::refs::{ProducerRole, TargetPattern};
use closer_contracts::work::EvidenceRelation;
use closer_protocol::entry::Entry;
use closer_protocol::episode::Next;
use closer_protocol::input::{Input, Reply};
use closer_scenarios::founding::plan_target;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space};

/// A space of the small deployment with this worker.
pub(crate) fn space(answer: Answer) -> Space {
    Space::found(&Deployment::default(), answer).unwrap()
}

/// Every code of a refusal; none for what was recorded.
pub(crate) fn codes(reply: &Reply) -> Vec<Code> {
    match reply {
        Reply::Recorded(_) => Vec::new(),
        Reply::Refused(denials) => denials.iter().map(|denial| denial.code).collect(),
    }
}

/// It was refused, and this is the code that the caller is told.
#[track_caller]
pub(crate) fn refused(reply: &Reply, code: Code) {
    assert_eq!(reply.refusal().map(|denial| denial.code), Some(code), "{reply:?}");
}

/// It was recorded.
#[track_caller]
pub(crate) fn recorded(reply: &Reply) {
    assert!(reply.refusal().is_none(), "{reply:?}");
}

/// The status of an obligation.
pub(crate) fn status(space: &Space, id: &str) -> ObligationStatus {
    space.view().state.obligation(&id.into()).expect("the obligation").status
}

/// The price event arrives and an episode on `o-1` begins.
pub(crate) fn begun(space: &mut Space) -> EpisodeId {
    recorded(&space.event("service-a", "price").unwrap());
    space.open("o-1").unwrap()
}

/// Takes an episode on until `reached` is its next stage, and gives that stage.
#[track_caller]
pub(crate) fn until(space: &mut Space, episode_id: &EpisodeId, reached: impl Fn(&Next) -> bool) -> Next {
    for _ in 0..40 {
        let next = space.next(episode_id).unwrap();
        if reached(&next) {
            return next;
        }
        assert!(next != Next::Ended, "the episode ended before that: {:?}", space.refusals().unwrap());
        space.advance(episode_id).unwrap();
    }
    panic!("the stage is not reached");
}

/// Takes an episode on until its action is about to be dispatched; gives the action's payload.
pub(crate) fn until_dispatch(space: &mut Space, episode_id: &EpisodeId) -> PayloadId {
    let Next::Dispatch { payload_id } = until(space, episode_id, |next| matches!(next, Next::Dispatch { .. })) else {
        unreachable!("just matched")
    };
    payload_id
}

/// Asks for the admission of one attempt.
pub(crate) fn dispatch(space: &mut Space, payload_id: &PayloadId) -> Reply {
    space.submit(Input::Dispatch { payload_id: payload_id.clone(), adjudication_id: None }).unwrap()
}

/// The payload with something changed, sealed again.
pub(crate) fn changed(payload: &Payload, change: impl FnOnce(&mut Envelope)) -> Payload {
    let mut envelope = payload.envelope().clone();
    change(&mut envelope);
    Payload::seal(envelope).unwrap()
}

/// An ordinary delta on the current state.
pub(crate) fn delta(
    space: &mut Space,
    changes: Vec<Change>,
    support: Vec<EvidenceRelation>,
    authorities: Vec<AuthorityRef>,
) -> Delta {
    Delta {
        delta_id: DeltaId::new(space.fresh("delta")),
        parent_state: space.view().state.reference(),
        changes,
        support_relations: support,
        dependency_updates: Vec::new(),
        required_authority_refs: authorities,
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()
    .unwrap()
}

/// A routine change that rests on no work and needs nothing but endorsement: an open obligation stands elsewhere.
pub(crate) fn moved(obligation: &str, status: ObligationStatus) -> Change {
    Change::SetStatus { obligation_id: obligation.into(), status, successor: None, reason: "It waits.".into() }
}

/// The distiller proposes a delta about `o-1`.
pub(crate) fn propose(space: &mut Space, delta: Delta) -> Reply {
    let payload = space.write(ProducerRole::Distiller, &["o-1"], delta).unwrap();
    space.submit_payload(payload).unwrap()
}

/// The assessor adjudicates a delta.
pub(crate) fn endorse(space: &mut Space, delta: &Delta, disposition: Disposition) -> Reply {
    space.endorse(delta, disposition).unwrap()
}

/// A service submits a payload about `o-1`, outside any episode.
pub(crate) fn submit(space: &mut Space, role: ProducerRole, body: impl Into<Body>) -> Reply {
    let payload = space.write(role, &["o-1"], body).unwrap();
    space.submit_payload(payload).unwrap()
}

/// The semantic service is asked for the commit of a delta.
pub(crate) fn commit(space: &mut Space, delta: &Delta) -> Reply {
    space.submit(Input::Commit { delta_id: delta.delta_id.clone() }).unwrap()
}

/// The entries recorded from a position on.
pub(crate) fn since(space: &Space, position: usize) -> Vec<Entry> {
    space.records().iter().skip(position).map(|record| Entry::read(record).unwrap()).collect()
}

/// The narrowest restriction: the plan change on its one target.
pub(crate) fn narrow() -> AffectedScope {
    AffectedScope::Target { operation: Some("plan.change".into()), targets: TargetPattern::exactly(&plan_target()) }
}

/// Every grant's id and digest.
pub(crate) fn grants(space: &Space) -> Vec<(String, Digest)> {
    space
        .view()
        .state
        .items(ItemKind::Grant)
        .map(|accepted| (accepted.item.id().to_string(), accepted.digest))
        .collect()
}

/// Whether anything is claimed about `o-1`'s proposition.
pub(crate) fn claimed(space: &Space) -> bool {
    space.view().state.claims_on(&"p-o-1".into()).next().is_some()
}
