//! What can be asked of a space, by whom, and how it is answered: one function behind every face.
//!
//! The socket carries these requests as they stand; a verb on a resting space answers them in its own process. Whatever is
//! told comes from the record; whatever is changed goes through the sequence like any other input.

mod act;
mod advise;
mod answer;
mod bench;
mod briefcase;
mod call;
mod change;
mod confirm;
mod decision;
mod disclosure;
mod give;
mod grant;
mod handoff;
mod keys;
mod obligation;
mod observe;
mod overview;
mod profile;
mod record;
mod restrict;
mod trigger;
mod why;
mod words;
mod work;

use crate::error::Error;
use crate::space::Space;
use closer_contracts::audit::{Declaration, RestrictionStatement, UserDecision};
use closer_contracts::delta::Change;
use closer_contracts::envelope::Extensions;
use closer_contracts::handoff::Owed;
use closer_contracts::id::WorkId;
use closer_contracts::id::{
    ActorId, DecisionId, DeltaId, EntityId, EvidenceId, GrantId, Key, KeyId, ObligationId, OperationId,
};
use closer_contracts::id::{
    ArtifactId, CapabilityId, ChangeKindId, HandoffId, IncidentId, PurposeId, RestrictionId, SourceId, Text,
};
use closer_contracts::item::{IdentityKind, Standing};
use closer_contracts::refs::{Parameters, ProducerRole, Target, TargetPattern};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::time::Timestamp;
use closer_protocol::{View, urgent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    BenchDecide(AnswerDraft),
    /// Writes the answer that would be recorded, for a person who signs it elsewhere. Records nothing.
    BenchDraft {
        /// The person.
        person: ActorId,
        /// The answer.
        draft: AnswerDraft,
    },
    /// Hands in an answer that its person has signed.
    DecisionSend {
        /// The answer.
        decision: Box<UserDecision>,
        /// The key it is signed with.
        key_id: KeyId,
        /// The signature.
        signature: Key,
    },
    /// Changes that a declaration carries: signed elsewhere, or declared by several people.
    Change(ChangeRequest),
    /// The ten answers of the profile in force.
    ProfileCheck,
    /// The four views of what is on record.
    BriefcaseShow,
    /// Responsibilities and who takes them over.
    Handoff(HandoffRequest),
    /// What a grant for more than one action would have answered; nothing is recorded.
    GrantTry(GrantDraft),
    /// Gives a grant for more than one action.
    GrantGive(GrantDraft),
    /// The answers that were given, and what became of each.
    DecisionList {
        /// Of one packet only.
        packet_id: Option<DecisionId>,
    },
    /// What is restricted now.
    RestrictionList,
    /// What an issuer may restrict.
    RestrictionChoices {
        /// The issuer.
        issuer: ActorId,
    },
    /// One piece of evidence.
    EvidenceShow {
        /// Which.
        evidence_id: EvidenceId,
    },
    /// What is used and held of the budget.
    BudgetShow,
    /// Receipts of commits.
    ReceiptList,
    /// The identity that is spoken for, where somebody may.
    WhoAmI {},
    /// Everything in which these words occur.
    Search {
        /// The words.
        words: String,
    },
    /// Announces a change.
    EventSend(EventDraft),
    /// What an event would touch; nothing is recorded.
    EventTest(EventDraft),
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
    /// Lifts a restriction after it was reassessed, under the user's authority.
    RestrictionLift {
        /// Which.
        restriction_id: RestrictionId,
        /// What the reassessment came to.
        reason: Text,
    },
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
    /// Something went to recipients who should not have it.
    Incident(IncidentRequest),
    /// Walks everything on disk and checks it.
    Verify,
    /// Throws the derived state away and builds it again.
    Rebuild,
    /// Copies everything durable into a new folder.
    Backup {
        /// The folder, absolute.
        destination: String,
    },
    /// The registered signing keys.
    Keys(KeysRequest),
    /// A person says whether targets show effects that no machine can look at.
    BenchConfirm(ConfirmDraft),
    /// Exact actions that are called for from outside, and what became of them.
    Call(CallRequest),
    /// Calls that are forwarded without being governed, for a time.
    Observe(ObserveRequest),
    /// Work that lies with an agent outside, asked for by whom it was issued to.
    Work(WorkRequest),
    /// What the monitor says to something that an agent would do by its own hands.
    Advise(AdviceDraft),
}

/// Something that an agent would do by its own hands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceDraft {
    /// What the agent calls its tool.
    pub tool: Key,
    /// The operation that the deployment takes it for.
    pub operation: OperationId,
    /// On what.
    pub target: Target,
    /// With which parameters.
    pub parameters: Parameters,
    /// The obligation it would serve, where one is named.
    pub obligation_id: Option<ObligationId>,
}

/// What an agent outside asks about its own work (C5, C6).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkRequest {
    /// The work that waits for its answer.
    List {
        /// Settled work too.
        all: bool,
    },
    /// Takes work up, once.
    Take {
        /// Which; without one, that which has waited longest.
        work_id: Option<WorkId>,
    },
    /// The packet of work, as it was released.
    Read {
        /// Which.
        work_id: WorkId,
    },
    /// Hands an answer in.
    Return {
        /// To which work.
        work_id: WorkId,
        /// The answer's text, as it was written.
        answer: String,
    },
    /// What became of work, and why.
    Why {
        /// Which.
        work_id: WorkId,
    },
    /// Where a packet stands that an answer led to.
    Packet {
        /// Which.
        decision_id: DecisionId,
    },
}

/// What is asked about changes that a declaration carries (§5).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChangeRequest {
    /// Hands in a declaration that the user has signed, and has the changes committed that it names.
    Send {
        /// The declaration.
        declaration: Box<Declaration>,
        /// The changes.
        changes: Vec<Change>,
        /// The key it is signed with.
        key_id: KeyId,
        /// The signature.
        signature: Key,
    },
    /// The changes that were declared and wait for others to declare the same.
    List,
    /// Declares exactly what somebody else has declared.
    Join {
        /// The proposal that waits.
        delta_id: DeltaId,
    },
    /// Writes the declaration by which somebody would join, for a person who signs it elsewhere. Records nothing.
    JoinDraft {
        /// The person.
        person: ActorId,
        /// The proposal that waits.
        delta_id: DeltaId,
    },
}

/// What is asked about responsibilities (§6.4).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum HandoffRequest {
    /// Who answers for what, and what was offered.
    List,
    /// Writes down what a responsibility takes.
    Contract {
        /// What the recipient is registered to be able to do.
        capabilities: Vec<CapabilityId>,
        /// The records that a handoff has to cite.
        context: Vec<ArtifactId>,
        /// What is owed when it is given back.
        owes: Vec<Owed>,
    },
    /// Offers a responsibility.
    Offer(HandoffDraft),
    /// Consents to a handoff as its recipient.
    Accept {
        /// Which.
        handoff_id: HandoffId,
    },
}

/// What is asked about an incident of over-disclosure (§4.3).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum IncidentRequest {
    /// Opens an incident: items that went to recipients who should not have them.
    Report {
        /// Which items.
        items: Vec<ArtifactId>,
        /// To whom they went.
        recipients: Vec<ActorId>,
        /// Who answers for it; the user without one.
        owner: Option<ActorId>,
    },
    /// One incident, with what was done about it and what stays open.
    Show {
        /// Which.
        incident_id: IncidentId,
    },
    /// Withdraws an incident's items and tells its recipients.
    Notify {
        /// Which.
        incident_id: IncidentId,
    },
    /// Records that a recipient failed to do as it was asked.
    Failed {
        /// Which incident.
        incident_id: IncidentId,
        /// Whose failure.
        recipient: ActorId,
        /// For people.
        reason: Text,
    },
    /// Reconciles an incident; whoever gave no answer is named as an unknown copy.
    Reconcile {
        /// Which.
        incident_id: IncidentId,
        /// Why it may be closed with what is left open.
        justification: Text,
    },
}

/// What is asked about keys (C1).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeysRequest {
    /// The registered keys.
    List,
    /// Registers another key of an identity, under the user's authority.
    Rotate {
        /// Whose.
        identity: ActorId,
        /// 64 hexadecimal digits.
        public_key: String,
        /// What it may sign.
        signing_scope: Vec<String>,
    },
    /// Writes the declaration that would register another key, for a user who signs it elsewhere. Records nothing.
    RotateDraft {
        /// Who declares it.
        person: ActorId,
        /// Whose key.
        identity: ActorId,
        /// 64 hexadecimal digits.
        public_key: String,
        /// What it may sign.
        signing_scope: Vec<String>,
    },
    /// Revokes a key, under the user's authority.
    Revoke {
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
            | Self::BenchDecide(_)
            | Self::BenchDraft { .. }
            | Self::DecisionSend { .. }
            | Self::Change(_)
            | Self::GrantTry(_)
            | Self::GrantGive(_)
            | Self::DecisionList { .. }
            | Self::RestrictionList
            | Self::RestrictionChoices { .. }
            | Self::EvidenceShow { .. }
            | Self::BudgetShow
            | Self::EventTest(_)
            | Self::ReceiptList
            | Self::WhoAmI {}
            | Self::Search { .. }
            | Self::EventDraft(_)
            | Self::GrantList { .. }
            | Self::GrantShow { .. }
            | Self::RestrictDraft { .. }
            | Self::RestrictionLift { .. }
            | Self::ProfileCheck
            | Self::BriefcaseShow
            | Self::Handoff(_)
            | Self::ReceiptShow { .. }
            | Self::Export { .. }
            | Self::Incident(_)
            | Self::Verify
            | Self::Rebuild
            | Self::Backup { .. }
            | Self::Keys(_)
            | Self::BenchConfirm(_)
            | Self::Call(_)
            | Self::Observe(_)
            | Self::Work(_)
            | Self::Advise(_) => false,
        }
    }
}

impl Request {
    /// Whether it shows the record as it stands, which is the user's own. Export and an incident's report are projections.
    const fn shows_the_record(&self) -> bool {
        match self {
            Self::ObligationList { .. }
            | Self::ObligationShow { .. }
            | Self::ObligationTrace { .. }
            | Self::ObligationWhy { .. }
            | Self::ReentryList { .. }
            | Self::ReentryTest { .. }
            | Self::BenchList { .. }
            | Self::BenchShow { .. }
            | Self::BenchConfirm(_)
            | Self::DecisionList { .. }
            | Self::Change(ChangeRequest::List)
            | Self::EvidenceShow { .. }
            | Self::BudgetShow
            | Self::BriefcaseShow
            | Self::Search { .. }
            | Self::GrantList { .. }
            | Self::GrantShow { .. }
            | Self::GrantTry(_)
            | Self::EventTest(_)
            | Self::ProfileCheck
            | Self::ReceiptList
            | Self::ReceiptShow { .. }
            | Self::Observe(ObserveRequest::Report {})
            | Self::Keys(KeysRequest::List) => true,
            Self::ReentryRegister { .. }
            | Self::BenchDecide(_)
            | Self::BenchDraft { .. }
            | Self::DecisionSend { .. }
            | Self::Change(ChangeRequest::Send { .. } | ChangeRequest::Join { .. } | ChangeRequest::JoinDraft { .. })
            | Self::EventSend(_)
            | Self::EventDraft(_)
            | Self::PayloadSend { .. }
            | Self::GrantGive(_)
            | Self::Restrict(_)
            | Self::RestrictDraft { .. }
            | Self::RestrictionLift { .. }
            | Self::StatementSend { .. }
            | Self::RestrictionList
            | Self::RestrictionChoices { .. }
            | Self::WhoAmI {}
            | Self::Handoff(_)
            | Self::Export { .. }
            | Self::Incident(_)
            | Self::Verify
            | Self::Rebuild
            | Self::Backup { .. }
            | Self::Keys(KeysRequest::Rotate { .. } | KeysRequest::RotateDraft { .. } | KeysRequest::Revoke { .. })
            | Self::Call(_)
            | Self::Observe(ObserveRequest::Begin { .. })
            | Self::Work(_)
            | Self::Advise(_) => false,
        }
    }
}

/// The record as it stands is the user's to read. Another identity gets what policy releases to it, under a receipt (§4.3).
fn not_to_be_shown(view: &View, identity: &ActorId, request: &Request) -> Option<Answer> {
    let asked = matches!(
        request,
        Request::BenchList { .. }
            | Request::BenchShow { .. }
            | Request::DecisionList { .. }
            | Request::Change(ChangeRequest::List)
            | Request::EvidenceShow { .. }
    );
    let whole = request.shows_the_record() && !view.state.is_user(identity) && !(asked && decides(view, identity));
    let reason =
        format!("the record is the user's to read; `{identity}` has it by `closer export`, as policy releases it");
    whole.then(|| {
        Answer::refused(&[Denial::new(RefusalCode::DisclosureDenied, CheckKind::Authority, reason).of(identity)])
    })
}

/// Whether the profile has somebody decide besides the user, who then sees what there is to be decided.
fn decides(view: &View, identity: &ActorId) -> bool {
    let people = view.state.profile().map(|profile| &profile.people);
    people.is_some_and(|people| {
        people.quorum.iter().any(|quorum| quorum.of.contains(identity))
            || people.mandate.iter().any(|mandate| mandate.person == *identity)
    })
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
    /// When it was observed; now without one.
    pub observed_at: Option<Timestamp>,
    /// What came with it: kept, and read by no decision.
    pub extensions: Option<Extensions>,
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

/// Answers one request for an identity.
///
/// # Errors
/// What kept it from being answered; a refusal is an [`Answer`].
pub async fn answer(space: &dyn Space, identity: &ActorId, request: Request) -> Result<Answer, Error> {
    // Calls are the one thing that participants come in for here.
    let calls = matches!(request, Request::Call(_));
    let kept_out = not_to_be_spoken_for(&space.view(), identity).filter(|_| !calls);
    if let Some(answer) = kept_out.or_else(|| not_to_be_shown(&space.view(), identity, &request)) {
        return Ok(answer);
    }
    let shows = request.shows_the_record();
    let answer = answered(space, identity, request).await?;
    Ok(if shows { observe::marked(answer, &space.view(), &space.moment()) } else { answer })
}

async fn answered(space: &dyn Space, identity: &ActorId, request: Request) -> Result<Answer, Error> {
    let now = &space.moment().now;
    match request {
        Request::ObligationList { all } => Ok(obligation::list(&space.view(), all)),
        Request::ObligationShow { obligation_id } => Ok(obligation::show(&space.view(), &obligation_id)),
        Request::ObligationTrace { obligation_id } => Ok(obligation::trace(&space.view(), &obligation_id)),
        Request::ObligationWhy { obligation_id } => why::why(space, &obligation_id),
        Request::ReentryList { obligation_id } => Ok(trigger::list(space, obligation_id.as_ref())),
        Request::ReentryRegister { reentry } => trigger::register(space, identity, reentry).await,
        Request::ReentryTest { predicate } => trigger::test(space, predicate),
        Request::BenchList { all } => Ok(bench::list(&space.view(), all, now)),
        Request::BenchShow { decision_id } => Ok(bench::show(&space.view(), &decision_id, now)),
        Request::BenchDecide(draft) => bench::decide(space, identity, &draft).await,
        Request::BenchDraft { person, draft } => Ok(bench::draft(space, &person, &draft)),
        Request::DecisionSend { decision, key_id, signature } => {
            bench::hand_in(space, *decision, (key_id, signature)).await
        }
        Request::Change(asked) => change::answer(space, identity, asked).await,
        Request::ProfileCheck => Ok(profile::check(&space.view())),
        Request::BriefcaseShow => Ok(briefcase::show(&space.view())),
        Request::Handoff(asked) => handoff::answer(space, identity, asked).await,
        Request::GrantTry(draft) => Ok(give::try_out(space, &draft)),
        Request::GrantGive(draft) => give::give(space, identity, draft).await,
        Request::DecisionList { packet_id } => Ok(decision::list(&space.view(), packet_id.as_ref(), now)),
        Request::RestrictionList => Ok(overview::restrictions(&space.view())),
        Request::RestrictionChoices { issuer } => Ok(overview::restrictable(&space.view(), &issuer)),
        Request::EvidenceShow { evidence_id } => Ok(overview::evidence(&space.view(), &evidence_id)),
        Request::BudgetShow => Ok(overview::budgets(&space.view())),
        Request::ReceiptList => Ok(overview::receipts(&space.view())),
        Request::WhoAmI {} => Ok(overview::who(&space.view(), identity)),
        Request::Search { words } => Ok(overview::search(&space.view(), &words)),
        Request::EventSend(draft) => act::send(space, identity, draft).await,
        Request::EventTest(draft) => Ok(act::test(space, draft)),
        Request::PayloadSend { payload, key_id, signature } => {
            act::hand_in(space, &payload, key_id.zip(signature)).await
        }
        Request::EventDraft(draft) => act::draft(space, identity, draft),
        Request::GrantList { all } => Ok(grant::list(space, all)),
        Request::GrantShow { grant_id } => Ok(grant::show(space, &grant_id)),
        Request::Restrict(draft) => restrict::restrict(space, identity, draft).await,
        Request::RestrictionLift { restriction_id, reason } => {
            restrict::lift(space, identity, restriction_id, reason).await
        }
        Request::RestrictDraft { issuer, draft } => Ok(restrict::draft(space, &issuer, draft)),
        Request::StatementSend { statement, key_id, signature } => {
            restrict::hand_in(space, statement, (key_id, signature)).await
        }
        Request::ReceiptShow { receipt } => Ok(record::receipt(&space.view(), &receipt)),
        Request::Export { recipient, purpose, items } => {
            disclosure::export(space, identity, recipient, purpose, items).await
        }
        Request::Incident(asked) => disclosure::incident(space, identity, asked).await,
        Request::Verify => verify_held(space),
        Request::Rebuild => tokio::task::block_in_place(|| rebuild(space.log(), &mut |_| {})),
        Request::Backup { destination } => copied(space, identity, &destination),
        Request::Keys(asked) => keys::answer(space, identity, asked).await,
        Request::BenchConfirm(draft) => confirm::confirm(space, identity, draft).await,
        Request::Call(asked) => call::answer(space, identity, asked).await,
        Request::Observe(asked) => observe::answer(space, identity, asked).await,
        Request::Work(asked) => work::answer(space, identity, asked).await,
        Request::Advise(draft) => advise::advise(space, identity, draft).await,
    }
}

pub(crate) use act::producer_of;
pub use answer::{Answer, Hint, Outcome};
pub use bench::{AnswerDraft, futile};
pub(crate) use bench::{decision_type, is_waiting};
pub use call::{CallOf, CallRequest, WAIT_MS_MAX};
pub use confirm::ConfirmDraft;
pub use give::GrantDraft;
pub(crate) use give::like;
pub use obligation::trace;
pub use observe::ObserveRequest;
pub(crate) use observe::banner;
pub(crate) use overview::waiting;
pub use record::{backup, rebuild, verify, verify_at_rest};

/// Walks everything on disk and compares it with what is held in memory.
fn verify_held(space: &dyn Space) -> Result<Answer, Error> {
    let held = space.view().state.reference();
    tokio::task::block_in_place(|| verify(space.log(), Some(held), &mut |_| {}))
}

fn copied(space: &dyn Space, identity: &ActorId, destination: &str) -> Result<Answer, Error> {
    tokio::task::block_in_place(|| backup(space, identity, destination, &mut |_| {}))
}

/// The identity that whoever runs this process speaks for unless told otherwise: the user.
#[must_use]
pub fn default_identity(view: &View) -> ActorId {
    view.state.profile().map_or_else(|| ActorId::from("nobody"), |profile| profile.user.clone())
}

/// Why nobody comes in as this identity: it is not registered, was revoked, or is a service or participant.
pub(crate) fn shut_out(view: &View, identity: &ActorId) -> Option<Answer> {
    let current = view
        .state
        .identity(identity)
        .is_some_and(|registered| registered.revoked_at.is_none() && registered.standing == Standing::Current);
    let reason = "this identity was revoked, or is not registered";
    let denial = || Denial::new(RefusalCode::Unauthenticated, CheckKind::Authentication, reason).of(identity);
    not_to_be_spoken_for(view, identity).or_else(|| (!current).then(|| Answer::refused(&[denial()])))
}

/// A face speaks for people, for what observes on their behalf and for agents outside, never for the runtime's services or a
/// participant that runs in it.
fn not_to_be_spoken_for(view: &View, identity: &ActorId) -> Option<Answer> {
    let registered = view.state.identity(identity);
    let allowed = registered.is_some_and(|registered| match registered.kind {
        IdentityKind::Agent => true,
        IdentityKind::User | IdentityKind::Issuer | IdentityKind::Producer => {
            !registered.roles.contains(&ProducerRole::Participant)
        }
        IdentityKind::Endpoint | IdentityKind::Service => false,
    });
    let denial = || {
        let reason =
            "nobody speaks for this identity from here: it is not registered, or it is a service or participant";
        Denial::new(RefusalCode::Unauthenticated, closer_contracts::refusal::CheckKind::Authentication, reason)
            .of(identity)
    };
    (!allowed).then(|| Answer::refused(&[denial()]))
}
