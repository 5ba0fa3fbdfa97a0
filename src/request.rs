//! What can be asked of a space, by whom, and how it is answered: one function behind every face.
//!
//! The socket carries these requests as they stand; a verb on a resting space answers them in its own process. Whatever is
//! told comes from the record; whatever is changed goes through the sequence like any other input.

mod act;
mod bench;
mod briefcase;
mod change;
mod disclosure;
mod grant;
mod handoff;
mod keys;
mod obligation;
mod profile;
mod record;
mod restrict;
mod trigger;
mod why;
mod words;

use crate::error::Error;
use crate::space::Space;
use closer_contracts::audit::RestrictionStatement;
use closer_contracts::handoff::{Owed, ResponsibilityContract};
use closer_contracts::id::{ActorId, DecisionId, EntityId, EvidenceId, GrantId, Key, KeyId, ObligationId, OperationId};
use closer_contracts::id::{ArtifactId, CapabilityId, ChangeKindId, HandoffId, IncidentId, PurposeId, SourceId, Text};
use closer_contracts::item::IdentityKind;
use closer_contracts::refs::{ProducerRole, TargetPattern};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_protocol::{Reply, View, urgent};
use closer_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A request and who makes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The identity it is made as; without one, the identity that the face stands for.
    pub identity: Option<ActorId>,
    /// The request.
    pub request: Request,
}

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The obligations.
    ObligationList {
        /// Settled ones too.
        all: bool,
    },
    /// One obligation.
    ObligationShow {
        /// Which.
        obligation_id: ObligationId,
    },
    /// What led to where an obligation stands, stage by stage.
    ObligationTrace {
        /// Which.
        obligation_id: ObligationId,
    },
    /// Why an obligation waits, was refused, and what would wake it.
    ObligationWhy {
        /// Which.
        obligation_id: ObligationId,
    },
    /// The triggers.
    ReentryList {
        /// Of one obligation only.
        obligation_id: Option<ObligationId>,
    },
    /// Installs a trigger beside those an obligation has.
    ReentryRegister {
        /// The REENTRY; what a deployment file may leave out may be left out.
        reentry: Value,
    },
    /// When a predicate would have come true on what is on record.
    ReentryTest {
        /// The predicate.
        predicate: Value,
    },
    /// The packets on The Bench.
    BenchList {
        /// Answered ones too.
        all: bool,
    },
    /// One packet.
    BenchShow {
        /// Which.
        decision_id: DecisionId,
    },
    /// Answers a packet.
    BenchDecide {
        /// Which.
        decision_id: DecisionId,
        /// The option, by its id.
        option: String,
        /// Parameters of the proposed action that the user puts other values in, where any.
        #[serde(default)]
        amend: BTreeMap<Key, Value>,
        /// Fields that the target has to show then, where others than before.
        #[serde(default)]
        expect: BTreeMap<Key, Value>,
    },
    /// The ten answers of the profile in force.
    ProfileCheck,
    /// The four views of what is on record.
    BriefcaseShow,
    /// Who answers for what, and what was offered.
    HandoffList,
    /// Writes down what a responsibility takes.
    HandoffContract {
        /// What the recipient is registered to be able to do.
        capabilities: Vec<CapabilityId>,
        /// The records that a handoff has to cite.
        context: Vec<ArtifactId>,
        /// What is owed when it is given back.
        owes: Vec<Owed>,
    },
    /// Offers a responsibility.
    HandoffOffer(HandoffDraft),
    /// Consents to a handoff as its recipient.
    HandoffAccept {
        /// Which.
        handoff_id: HandoffId,
    },
    /// Announces a change.
    EventSend(EventDraft),
    /// Writes the payload that would announce a change, for a producer who signs elsewhere. Records nothing.
    EventDraft(EventDraft),
    /// Hands in a payload as it was written and signed elsewhere.
    PayloadSend {
        /// The payload's text.
        payload: String,
        /// The key it is signed with, where it is.
        key_id: Option<KeyId>,
        /// The signature.
        signature: Option<Key>,
    },
    /// The grants.
    GrantList {
        /// Revoked and expired ones too.
        all: bool,
    },
    /// One grant.
    GrantShow {
        /// Which.
        grant_id: GrantId,
    },
    /// Restricts at once, as whoever asks.
    Restrict(RestrictDraft),
    /// Writes the statement that would restrict, for an issuer who signs it elsewhere. Records nothing.
    RestrictDraft {
        /// The issuer.
        issuer: ActorId,
        /// What it restricts.
        draft: RestrictDraft,
    },
    /// Hands in an issuer's signed statement.
    StatementSend {
        /// The statement.
        statement: RestrictionStatement,
        /// The key it is signed with.
        key_id: KeyId,
        /// The signature.
        signature: Key,
    },
    /// One receipt, by its id or the version it led to.
    ReceiptShow {
        /// Which.
        receipt: String,
    },
    /// Releases a part of the record to a recipient for a purpose, under a receipt.
    Export {
        /// For whom.
        recipient: ActorId,
        /// For what.
        purpose: Option<PurposeId>,
        /// Exactly these items; none for everything that the purpose releases.
        items: Vec<ArtifactId>,
    },
    /// Opens an incident: items that went to recipients who should not have them.
    IncidentReport {
        /// Which items.
        items: Vec<ArtifactId>,
        /// To whom they went.
        recipients: Vec<ActorId>,
        /// Who answers for it; the user without one.
        owner: Option<ActorId>,
    },
    /// One incident, with what was done about it and what stays open.
    IncidentShow {
        /// Which.
        incident_id: IncidentId,
    },
    /// Withdraws an incident's items and tells its recipients.
    IncidentNotify {
        /// Which.
        incident_id: IncidentId,
    },
    /// Records that a recipient failed to do as it was asked.
    IncidentFailed {
        /// Which incident.
        incident_id: IncidentId,
        /// Whose failure.
        recipient: ActorId,
        /// For people.
        reason: Text,
    },
    /// Reconciles an incident; whoever gave no answer is named as an unknown copy.
    IncidentReconcile {
        /// Which.
        incident_id: IncidentId,
        /// Why it may be closed with what is left open.
        justification: Text,
    },
    /// Walks everything on disk and checks it.
    Verify,
    /// Throws the derived state away and builds it again.
    Rebuild,
    /// Copies everything durable into a new folder.
    Backup {
        /// The folder, absolute.
        destination: String,
    },
    /// The registered keys.
    KeysList,
    /// Registers another key of an identity, under the user's authority.
    KeysRotate {
        /// Whose.
        identity: ActorId,
        /// 64 hexadecimal digits.
        public_key: String,
        /// What it may sign.
        signing_scope: Vec<String>,
    },
    /// Revokes a key, under the user's authority.
    KeysRevoke {
        /// Which.
        key_id: KeyId,
        /// Whether it was compromised: whatever it signed is then flagged.
        compromised: bool,
    },
}

impl Request {
    /// Whether it restricts, so that it is heard however many others wait (design §3, the urgent lane).
    #[must_use]
    pub fn is_urgent(&self, view: &View) -> bool {
        let restricts = |source: &SourceId, kind: &ChangeKindId, entity: &EntityId| {
            urgent::listed(view, source, kind, entity).is_some()
        };
        match self {
            Self::Restrict(_) | Self::StatementSend { .. } => true,
            Self::EventSend(draft) => restricts(&draft.source_id, &draft.change_kind, &draft.entity_ref),
            Self::PayloadSend { payload, .. } => act::event_of(payload)
                .is_some_and(|event| restricts(&event.source.source_id, &event.change_kind, &event.entity_ref)),
            Self::ObligationList { .. }
            | Self::ObligationShow { .. }
            | Self::ObligationTrace { .. }
            | Self::ObligationWhy { .. }
            | Self::ReentryList { .. }
            | Self::ReentryRegister { .. }
            | Self::ReentryTest { .. }
            | Self::BenchList { .. }
            | Self::BenchShow { .. }
            | Self::BenchDecide { .. }
            | Self::EventDraft(_)
            | Self::GrantList { .. }
            | Self::GrantShow { .. }
            | Self::RestrictDraft { .. }
            | Self::ProfileCheck
            | Self::BriefcaseShow
            | Self::HandoffList
            | Self::HandoffContract { .. }
            | Self::HandoffOffer(_)
            | Self::HandoffAccept { .. }
            | Self::ReceiptShow { .. }
            | Self::Export { .. }
            | Self::IncidentReport { .. }
            | Self::IncidentShow { .. }
            | Self::IncidentNotify { .. }
            | Self::IncidentFailed { .. }
            | Self::IncidentReconcile { .. }
            | Self::Verify
            | Self::Rebuild
            | Self::Backup { .. }
            | Self::KeysList
            | Self::KeysRotate { .. }
            | Self::KeysRevoke { .. } => false,
        }
    }
}

/// An event to be announced.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventDraft {
    /// Its source.
    pub source_id: SourceId,
    /// What it is about.
    pub entity_ref: EntityId,
    /// What kind of change.
    pub change_kind: ChangeKindId,
    /// The evidence it cites.
    pub evidence: Vec<EvidenceId>,
    /// What makes a repeat of it the same event; without one it has no repeats.
    pub deduplication_key: Option<Key>,
}

/// A responsibility to be handed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffDraft {
    /// What is handed over.
    pub obligation_id: ObligationId,
    /// To whom.
    pub recipient: ActorId,
    /// In words.
    pub responsibility: Text,
    /// The contract, by its id.
    pub contract: ArtifactId,
    /// What is owed when it is given back; the same contract without one.
    pub return_contract: Option<ArtifactId>,
    /// The records that are handed over as context.
    pub context: Vec<ArtifactId>,
    /// For how long, in milliseconds; for no limited time without one.
    pub lease_ms: Option<u64>,
}

/// A restriction to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestrictDraft {
    /// Revoke this grant.
    pub grant_id: Option<GrantId>,
    /// Or restrict this operation.
    pub operation: Option<OperationId>,
    /// On these targets.
    pub targets: Option<TargetPattern>,
    /// Or everything for this obligation.
    pub obligation_id: Option<ObligationId>,
    /// Why.
    pub reason: Text,
    /// Within which time it is reconciled, in milliseconds; without one, the most that the appointment allows.
    pub reconcile_within_ms: Option<u64>,
}

impl RestrictDraft {
    /// The revocation of one grant.
    #[must_use]
    pub fn of_grant(grant_id: GrantId, reason: String) -> Self {
        Self {
            grant_id: Some(grant_id),
            operation: None,
            targets: None,
            obligation_id: None,
            reason: Text::from(reason),
            reconcile_within_ms: None,
        }
    }
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As asked.
    Done,
    /// The protocol declined.
    Refused,
    /// There is no such thing on record.
    NotFound,
    /// Bytes on disk are not what was written.
    Corruption,
    /// It failed.
    Failed,
}

/// What a request is answered with: data for programs, the same in lines for people.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// How it went.
    pub outcome: Outcome,
    /// The foremost code, where it was refused.
    pub code: Option<RefusalCode>,
    /// For programs.
    pub data: Value,
    /// For people.
    pub text: Vec<String>,
    /// For people: what to type next, told after the text.
    #[serde(default)]
    pub hints: Vec<Hint>,
}

/// A verb that may be wanted next. How the program is called for this space is known where it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// What it is for.
    pub what: String,
    /// The verb and its arguments.
    pub arguments: Vec<String>,
}

impl Answer {
    pub(crate) const fn new(outcome: Outcome, data: Value, text: Vec<String>) -> Self {
        Self { outcome, code: None, data, text, hints: Vec::new() }
    }

    /// The answer with a verb that may be wanted next.
    #[must_use]
    pub fn hint<const N: usize>(mut self, what: &str, arguments: [&str; N]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        self.hints.push(Hint { what: what.to_owned(), arguments });
        self
    }

    pub(crate) fn done(data: Value, text: Vec<String>) -> Self {
        Self::new(Outcome::Done, data, text)
    }

    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::absent(format!("no {what} on record is called `{}`", words::told_id(id)))
    }

    /// There is nothing where something was looked for.
    #[must_use]
    pub fn absent(text: String) -> Self {
        Self::new(Outcome::NotFound, json!({ "error": text }), vec![text])
    }

    /// Nothing ordinary can be recorded, for want of room.
    #[must_use]
    pub fn full() -> Self {
        Self::refused(&[closer_actors::storage_full()])
    }

    /// What went wrong, as an answer.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        if matches!(error, Error::Actors(closer_actors::Error::Busy)) {
            let reason = "as much work is admitted as the runtime takes; try again shortly";
            return Self::refused(&[Denial::new(RefusalCode::Busy, CheckKind::Runtime, reason)]);
        }
        let text = error.told();
        match error {
            Error::Store(StoreError::Corruption(damage))
            | Error::Actors(closer_actors::Error::Store(StoreError::Corruption(damage))) => record::damaged(damage),
            Error::Divergence(_)
            | Error::Actors(closer_actors::Error::Divergence(_))
            | Error::Store(StoreError::Manifest(_))
            | Error::Actors(closer_actors::Error::Store(StoreError::Manifest(_))) => {
                Self::new(Outcome::Corruption, json!({ "error": text }), vec![text])
            }
            Error::Store(StoreError::StoreFull) | Error::Actors(closer_actors::Error::Store(StoreError::StoreFull)) => {
                Self::full()
            }
            Error::Deployment(_)
            | Error::Store(_)
            | Error::Actors(_)
            | Error::Fault(_)
            | Error::Io { .. }
            | Error::Unreachable { .. }
            | Error::World(_)
            | Error::Runtime(_) => Self::new(Outcome::Failed, json!({ "error": text }), vec![text]),
        }
    }

    /// A refusal: the foremost denial first, each with its page.
    pub(crate) fn refused(denials: &[Denial]) -> Self {
        let Some(first) = closer_contracts::refusal::foremost(denials) else {
            return Self::done(json!({}), Vec::new());
        };
        let line = |denial: &Denial| {
            let offending = denial.offending.as_ref().map(|offending| format!(" ({offending})")).unwrap_or_default();
            format!("refused: {}: {}{offending}", denial.code.as_str(), denial.reason)
        };
        let told = |denial: &Denial| {
            json!({
                "code": denial.code, "number": denial.code as u16, "check": denial.check, "offending": denial.offending,
                "reason": denial.reason, "spec_ref": denial.code.spec_ref(), "retryable": denial.code.is_retryable(),
            })
        };
        let others = denials.iter().filter(|denial| *denial != first);
        let mut text: Vec<String> = std::iter::once(first).chain(others).map(line).collect();
        text.push(format!("see docs/refusals/{}.md", first.code.as_str()));
        let denials: Vec<Value> = denials.iter().map(told).collect();
        Self {
            outcome: Outcome::Refused,
            code: Some(first.code),
            data: json!({ "code": first.code, "reason": first.reason, "denials": denials }),
            text,
            hints: Vec::new(),
        }
    }

    /// What the sequence replied: the records, or the refusal.
    pub(crate) fn replied(reply: &Reply, what: &str) -> Self {
        match reply {
            Reply::Recorded(references) => {
                let lines =
                    references.iter().map(|reference| format!("{} {}", reference.id, words::short(&reference.digest)));
                let text = std::iter::once(what.to_owned()).chain(lines).collect();
                Self::done(json!({ "recorded": references }), text)
            }
            Reply::Refused(denials) => Self::refused(denials),
        }
    }
}

/// Answers one request for an identity.
///
/// # Errors
/// What kept it from being answered; a refusal is an [`Answer`].
pub async fn answer(space: &dyn Space, identity: &ActorId, request: Request) -> Result<Answer, Error> {
    if let Some(answer) = not_to_be_spoken_for(&space.view(), identity) {
        return Ok(answer);
    }
    match request {
        Request::ObligationList { all } => Ok(obligation::list(&space.view(), all)),
        Request::ObligationShow { obligation_id } => Ok(obligation::show(&space.view(), &obligation_id)),
        Request::ObligationTrace { obligation_id } => Ok(obligation::trace(&space.view(), &obligation_id)),
        Request::ObligationWhy { obligation_id } => why::why(space, &obligation_id),
        Request::ReentryList { obligation_id } => Ok(trigger::list(space, obligation_id.as_ref())),
        Request::ReentryRegister { reentry } => trigger::register(space, identity, reentry).await,
        Request::ReentryTest { predicate } => trigger::test(space, predicate),
        Request::BenchList { all } => Ok(bench::list(&space.view(), all, &space.moment().now)),
        Request::BenchShow { decision_id } => Ok(bench::show(&space.view(), &decision_id, &space.moment().now)),
        Request::BenchDecide { decision_id, option, amend, expect } => {
            bench::decide(space, identity, &decision_id, &option, (amend, expect)).await
        }
        Request::ProfileCheck => Ok(profile::check(&space.view())),
        Request::BriefcaseShow => Ok(briefcase::show(&space.view())),
        Request::HandoffList => Ok(handoff::list(&space.view())),
        Request::HandoffContract { capabilities, context, owes } => {
            let contract_id = ArtifactId::new(space.fresh("contract"));
            let contract = ResponsibilityContract { contract_id, capabilities, context, owed_on_return: owes };
            handoff::contract(space, identity, contract).await
        }
        Request::HandoffOffer(draft) => handoff::offer(space, identity, draft).await,
        Request::HandoffAccept { handoff_id } => handoff::accept(space, identity, &handoff_id).await,
        Request::EventSend(draft) => act::send(space, identity, draft).await,
        Request::PayloadSend { payload, key_id, signature } => {
            act::hand_in(space, &payload, key_id.zip(signature)).await
        }
        Request::EventDraft(draft) => act::draft(space, identity, draft),
        Request::GrantList { all } => Ok(grant::list(space, all)),
        Request::GrantShow { grant_id } => Ok(grant::show(space, &grant_id)),
        Request::Restrict(draft) => restrict::restrict(space, identity, draft).await,
        Request::RestrictDraft { issuer, draft } => Ok(restrict::draft(space, &issuer, draft)),
        Request::StatementSend { statement, key_id, signature } => {
            restrict::hand_in(space, statement, (key_id, signature)).await
        }
        Request::ReceiptShow { receipt } => Ok(record::receipt(&space.view(), &receipt)),
        Request::Export { recipient, purpose, items } => {
            disclosure::export(space, identity, recipient, purpose, items).await
        }
        Request::IncidentReport { items, recipients, owner } => {
            disclosure::report(space, identity, &items, recipients, owner).await
        }
        Request::IncidentShow { incident_id } => disclosure::show(space, identity, &incident_id).await,
        Request::IncidentNotify { incident_id } => disclosure::notify(space, identity, &incident_id).await,
        Request::IncidentFailed { incident_id, recipient, reason } => {
            disclosure::failed(space, identity, &incident_id, recipient, reason).await
        }
        Request::IncidentReconcile { incident_id, justification } => {
            disclosure::reconcile(space, identity, &incident_id, justification).await
        }
        Request::Verify => {
            let held = space.view().state.reference();
            tokio::task::block_in_place(|| verify(space.log(), Some(held), &mut |_| {}))
        }
        Request::Rebuild => tokio::task::block_in_place(|| rebuild(space.log(), &mut |_| {})),
        Request::Backup { destination } => {
            tokio::task::block_in_place(|| backup(space, identity, &destination, &mut |_| {}))
        }
        Request::KeysList => Ok(keys::list(&space.view())),
        Request::KeysRotate { identity: whose, public_key, signing_scope } => {
            keys::rotate(space, identity, &whose, &public_key, signing_scope).await
        }
        Request::KeysRevoke { key_id, compromised } => keys::revoke(space, identity, &key_id, compromised).await,
    }
}

pub use bench::futile;
pub use obligation::trace;
pub use record::{backup, rebuild, verify, verify_at_rest};

/// The identity that whoever runs this process speaks for unless told otherwise: the user.
#[must_use]
pub fn default_identity(view: &View) -> ActorId {
    view.state.profile().map_or_else(|| ActorId::from("nobody"), |profile| profile.user.clone())
}

/// A face speaks for people and for what observes on their behalf, never for the runtime's services or a participant.
fn not_to_be_spoken_for(view: &View, identity: &ActorId) -> Option<Answer> {
    let registered = view.state.identity(identity);
    let allowed = registered.is_some_and(|registered| {
        let own = match registered.kind {
            IdentityKind::User | IdentityKind::Issuer | IdentityKind::Producer => true,
            IdentityKind::Endpoint | IdentityKind::Service => false,
        };
        own && !registered.roles.contains(&ProducerRole::Participant)
    });
    let denial = || {
        let reason =
            "nobody speaks for this identity from here: it is not registered, or it is a service or participant";
        Denial::new(RefusalCode::Unauthenticated, closer_contracts::refusal::CheckKind::Authentication, reason)
            .of(identity)
    };
    (!allowed).then(|| Answer::refused(&[denial()]))
}
