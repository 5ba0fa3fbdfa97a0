//! The view: accepted state, and what is under way, as one fold of the log.
//!
//! [`View::fold`] is the only way the view changes, for a record just decided and for one replayed alike, so that replay
//! equals the live view. Nothing here decides. Cloning is cheap: every collection is persistent.

use crate::entry::{
    ActivationEntry, ArtifactBody, AttemptStatus, Cause, Entry, EpisodeEnd, Intent, LedgerEntry, Notice, NoticeKind,
    Outcome, OwnershipEntry, ReadSet, payload_ref,
};
use crate::incident::Case;
use crate::ledger::Ledger;
use crate::streams;
use crate::trace::Chain;
use closer_contracts::Payload;
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Phase};
use closer_contracts::audit::{CommitReceipt, Confession, Declaration, DisclosureReceipt, UserDecision};
use closer_contracts::branch;
use closer_contracts::briefcase::{Briefcase, PacketStatus};
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::envelope::{Body, DisclosureRef};
use closer_contracts::event::{Event, MatchReceipt};
use closer_contracts::evidence::Evidence;
use closer_contracts::handoff::AcceptanceReceipt;
use closer_contracts::id::{
    ActionId, ActorId, AdjudicationId, AttemptId, ConfessionId, DecisionId, DeclarationId, DeltaId, EpisodeId, EventId,
    EvidenceId, GrantId, HandoffId, Id, IncidentId, Key, ObligationId, ObservationStreamId, PayloadId, ReentryId, Text,
    WorkId,
};
use closer_contracts::record::StreamId;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::refusal::{Refusal, RefusalCode};
use closer_contracts::route::Route;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Work, WorkResult};
use closer_monitor::{Ownership, OwnershipStanding};
use closer_state::{Commit, State};
use imbl::{OrdMap, OrdSet};
use std::sync::Arc;

/// A payload on record with its body's contract at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct OnRecord<T> {
    /// The payload.
    pub payload: Arc<Payload>,
    /// Its body.
    pub body: Arc<T>,
    /// When the sequence admitted it.
    pub admitted_at: Timestamp,
}

impl<T> OnRecord<T> {
    /// The reference to the payload.
    #[must_use]
    pub fn reference(&self) -> ArtifactRef {
        payload_ref(&self.payload)
    }
}

/// An attempt under way or settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Its intent.
    pub intent: Arc<Intent>,
    /// The reference to the intent.
    pub intent_ref: ArtifactRef,
    /// The action.
    pub action: Arc<Action>,
    /// Where it stands.
    pub status: AttemptStatus,
    /// The newest outcome.
    pub outcome: Option<Arc<Outcome>>,
    /// What the call said, where it returned; it establishes nothing.
    pub response: Option<closer_contracts::refs::Plain>,
    /// When the newest outcome was recorded: nothing of the attempt can have been sent later than that.
    pub told_at: Option<Timestamp>,
}

impl Attempt {
    /// The latest moment at which the effect can have been sent, from which the target's settle time runs (DEC-50): when it
    /// was sent, else when the process told what became of it, else when it was authorized.
    #[must_use]
    pub fn sent_by(&self) -> &Timestamp {
        let sent_at = self.outcome.as_ref().and_then(|outcome| outcome.sent_at.as_ref());
        sent_at.or(self.told_at.as_ref()).unwrap_or(&self.intent.authorized_at)
    }

    /// The outcome that says why nothing was sent, where that is certain: an adapter turned the attempt down.
    #[must_use]
    pub fn not_sent(&self) -> Option<&Outcome> {
        let certain = self.status == AttemptStatus::NoEffectConfirmed;
        let turned_down = |outcome: &&Outcome| outcome.sent_at.is_none() && outcome.readback_ref.is_none();
        self.outcome.as_deref().filter(|_| certain).filter(turned_down)
    }
}

/// A committed transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The commit.
    pub commit: Arc<Commit>,
    /// Its receipt.
    pub receipt: Option<Arc<CommitReceipt>>,
    /// The reference to the receipt.
    pub receipt_ref: Option<ArtifactRef>,
}

/// A packet and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// The newest version of the packet.
    pub packet: OnRecord<Briefcase>,
    /// Where it stands: moves with answers and deadlines, while the payload never changes.
    pub status: PacketStatus,
    /// The digest of the evidence snapshot shown.
    pub evidence_version: Digest,
    /// The answer, where there is one.
    pub decision: Option<ArtifactRef>,
}

/// Bounded work on one obligation, with the stages its records show.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// The episode.
    pub episode_id: EpisodeId,
    /// Its obligation.
    pub obligation_id: ObligationId,
    /// What made it eligible.
    pub causes: Vec<Cause>,
    /// When it began.
    pub began_at: Timestamp,
    /// When it stops at the latest.
    pub stops_at: Timestamp,
    /// Its route payload.
    pub route: Option<PayloadId>,
    /// Its work, in order.
    pub work: Vec<WorkId>,
    /// Its results, in order.
    pub results: Vec<PayloadId>,
    /// Its actions: the payload of each attempt, in order.
    pub actions: Vec<PayloadId>,
    /// Its adjudications, in order.
    pub adjudications: Vec<AdjudicationId>,
    /// Its readbacks, in order.
    pub readbacks: Vec<EvidenceId>,
    /// Its deltas, in order.
    pub deltas: Vec<DeltaId>,
    /// Its packets, in order.
    pub packets: Vec<DecisionId>,
    /// How many refusals its payloads met.
    pub refusals: u32,
    /// Why it ended, once it has.
    pub end: Option<EpisodeEnd>,
    /// The same for people, as it is on record.
    pub end_reason: Option<Text>,
}

/// Accepted state and everything under way.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Accepted governing state.
    pub state: State,
    /// Events by id.
    pub events: OrdMap<EventId, OnRecord<Event>>,
    /// Match receipts by event.
    pub matches: OrdMap<EventId, (ArtifactRef, Arc<MatchReceipt>)>,
    /// Why obligations are eligible for work, until an episode takes that up.
    pub eligible: OrdMap<ObligationId, Vec<Cause>>,
    /// The eligible obligations in the order in which they became so.
    pub turns: OrdSet<(u64, ObligationId)>,
    /// The turn of each.
    pub turn_of: OrdMap<ObligationId, u64>,
    /// The newest turn that was given.
    pub turn: u64,
    /// Trigger activations that have been taken up: (trigger, activation key).
    pub activated: OrdSet<(ReentryId, Digest)>,
    /// Episodes by id.
    pub episodes: OrdMap<EpisodeId, Arc<Episode>>,
    /// The episode under way per obligation.
    pub under_way: OrdMap<ObligationId, EpisodeId>,
    /// When each episode under way stops at the latest, the earliest first.
    pub bounds: OrdSet<(Timestamp, EpisodeId)>,
    /// Routes by payload id.
    pub routes: OrdMap<PayloadId, Arc<Route>>,
    /// What was called for from outside, and which episode took each call up.
    pub calls: crate::call::Calls,
    /// What was observed without being governed.
    pub ungoverned: crate::observe::ObservedCalls,
    /// Work by id.
    pub works: OrdMap<WorkId, OnRecord<Work>>,
    /// Whom work was issued to.
    pub issued_to: OrdMap<WorkId, ActorId>,
    /// Results by payload id.
    pub results: OrdMap<PayloadId, OnRecord<WorkResult>>,
    /// Action payloads by payload id.
    pub actions: OrdMap<PayloadId, OnRecord<Action>>,
    /// The payload of the first attempt of each logical action.
    pub logical: OrdMap<ActionId, PayloadId>,
    /// Adjudications by id.
    pub adjudications: OrdMap<AdjudicationId, OnRecord<Adjudication>>,
    /// The pre-action adjudications of each logical digest, in order.
    pub assessments: OrdMap<Digest, Vec<AdjudicationId>>,
    /// The attempts at each logical digest, in order.
    pub attempts_of: OrdMap<Digest, Vec<AttemptId>>,
    /// How many calls each grant has been used for: attempts under it but those that certainly had no effect.
    pub calls_under: OrdMap<GrantId, u64>,
    /// When work was taken up from outside.
    pub taken: OrdMap<WorkId, Timestamp>,
    /// The result that answered each work.
    pub answered: OrdMap<WorkId, PayloadId>,
    /// The work whose answer failed: as what, and why.
    pub failed: OrdMap<WorkId, (RefusalCode, Text)>,
    /// How many answers of each participant failed (C6).
    pub failures: OrdMap<ActorId, u64>,
    /// The observation streams that concern each obligation.
    pub streams_of: OrdMap<ObligationId, OrdSet<ObservationStreamId>>,
    /// What each pre-action adjudication read.
    pub read_sets: OrdMap<AdjudicationId, Arc<ReadSet>>,
    /// Attempts by id.
    pub attempts: OrdMap<AttemptId, Attempt>,
    /// The unsettled attempt per operation and target stream.
    pub unsettled: OrdMap<StreamId, AttemptId>,
    /// Evidence by id.
    pub evidence: OrdMap<EvidenceId, OnRecord<Evidence>>,
    /// The newest observation of each stream: its number and the evidence.
    pub observed: OrdMap<ObservationStreamId, (u64, EvidenceId)>,
    /// Every observation by stream and number.
    pub numbered: OrdMap<(ObservationStreamId, u64), EvidenceId>,
    /// What was offered to be handed over, on which contracts, and what each obligation is held under.
    pub handoffs: crate::handoff::Handoffs,
    /// Acceptances by handoff.
    pub acceptances: OrdMap<HandoffId, (ArtifactRef, Arc<AcceptanceReceipt>)>,
    /// Dependencies that were accepted once and have been removed.
    pub removed: OrdSet<Id>,
    /// Deltas by id.
    pub deltas: OrdMap<DeltaId, OnRecord<Delta>>,
    /// The endorsing adjudications of each proposal digest.
    pub endorsements: OrdMap<Digest, Vec<AdjudicationId>>,
    /// Commits by version.
    pub commits: OrdMap<u64, Committed>,
    /// The version that committed each delta.
    pub committed: OrdMap<DeltaId, u64>,
    /// Packets by decision id.
    pub packets: OrdMap<DecisionId, Packet>,
    /// The packets that wait for an answer.
    pub waiting: OrdSet<DecisionId>,
    /// The packet whose answer each grant comes from.
    pub answers: OrdMap<GrantId, DecisionId>,
    /// Answers that amend what was proposed, by their own id.
    pub amended: OrdMap<DecisionId, Arc<UserDecision>>,
    /// Decisions by packet.
    pub decisions: OrdMap<DecisionId, Vec<(ArtifactRef, Arc<UserDecision>)>>,
    /// Declarations by id.
    pub declarations: OrdMap<DeclarationId, (ArtifactRef, Arc<Declaration>)>,
    /// Standing disclosure receipts by id.
    pub disclosures: OrdMap<Key, DisclosureRef>,
    /// The receipts themselves: what was released to whom and for what.
    pub released: OrdMap<Key, Arc<DisclosureReceipt>>,
    /// Over-disclosures and what is done about them.
    pub incidents: OrdMap<IncidentId, Arc<Case>>,
    /// Confessions by id.
    pub confessions: OrdMap<ConfessionId, (ArtifactRef, Arc<Confession>)>,
    /// Ownership by obligation; absent before the first transfer, which is epoch 0 of the responsible owner.
    pub ownership: OrdMap<ObligationId, Ownership>,
    /// The budget ledger.
    pub ledger: Ledger,
    /// Notices by key.
    pub notices: OrdMap<Key, Arc<Notice>>,
    /// The version of the newest commit that restricts; 0 where none has.
    pub restrictions_decided: u64,
    /// Urgent commits that await reconciliation: receipt id by version.
    pub outstanding: OrdMap<u64, ArtifactRef>,
    /// The newest admission time: the guarded clock's floor.
    pub latest: Option<Timestamp>,
    /// The foremost code of the newest refusal of each action and delta, and how often it was refused.
    pub refused: OrdMap<Key, (RefusalCode, u32)>,
    /// When each was refused last.
    pub refused_at: OrdMap<Key, Timestamp>,
    /// The genesis record.
    pub genesis: Option<ArtifactRef>,
    /// How many refusals are on record.
    pub refusals: u64,
    /// How many inputs could not be read or authenticated, as far as that is on record.
    pub unreadable: u64,
    /// Answers on the way to a quorum.
    pub votes: crate::people::Votes,
    /// How many episodes in a row found nothing new.
    pub fruitless: crate::dormancy::Fruitless,
    /// How many episodes have begun.
    pub begun: u64,
    /// How many had begun when each turn was given.
    pub begun_at: OrdMap<u64, u64>,
    /// Human reviews, beside the governing state.
    pub reviews: crate::review::Reviews,
    /// Conferences, and what every context has seen of them.
    pub conferences: crate::conference::Table,
    /// What traces run through.
    pub chain: Chain,
}

/// Why a record could not be folded: the log and this version disagree. Dispatch stops until that is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// What disagrees.
    pub reason: String,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the record does not fold: {}", self.reason)
    }
}

impl std::error::Error for Divergence {}

impl View {
    /// Folds one record's entry.
    ///
    /// # Errors
    /// [`Divergence`] when a commit does not reproduce its state root, or an entry cites what is not there.
    pub fn fold(&mut self, entry: &Entry, admitted_at: &Timestamp) -> Result<(), Divergence> {
        self.latest =
            Some(self.latest.take().map_or_else(|| admitted_at.clone(), |latest| latest.max(admitted_at.clone())));
        self.chain.fold(entry);
        match entry {
            Entry::Genesis(genesis) => {
                self.state = genesis.found().map_err(|divergence| Divergence { reason: divergence.to_string() })?;
                let digest = closer_contracts::canonical::digest_of(&**genesis)
                    .map_err(|fault| Divergence { reason: fault.to_string() })?;
                self.genesis = Some(ArtifactRef { id: "genesis".into(), digest });
                self.ledger.limit_from(&self.state);
            }
            Entry::Payload(payload) => self.fold_payload(payload, admitted_at),
            Entry::Artifact(artifact) => self.fold_artifact(artifact, admitted_at)?,
            Entry::Commit(commit) => self.fold_commit(commit)?,
            Entry::Intent(intent) => self.fold_intent(intent)?,
            Entry::Outcome(outcome) => self.fold_outcome(outcome, admitted_at)?,
            Entry::Refusal(refusal) => self.fold_refusal(refusal),
            Entry::Ledger(movement) => self.fold_ledger(movement),
            Entry::Ownership(ownership) => self.fold_ownership(ownership),
            Entry::Activation(activation) => self.fold_activation(activation, admitted_at),
            Entry::Notice(notice) => self.fold_notice(notice),
            Entry::Auth(_) | Entry::Passed => {}
        }
        Ok(())
    }

    fn on_record<T>(payload: &Arc<Payload>, body: &Arc<T>, admitted_at: &Timestamp) -> OnRecord<T> {
        OnRecord { payload: payload.clone(), body: body.clone(), admitted_at: admitted_at.clone() }
    }

    fn fold_payload(&mut self, payload: &Arc<Payload>, admitted_at: &Timestamp) {
        let id = payload.id().clone();
        match payload.body() {
            Body::Event(body) => {
                self.events.insert(body.event_id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Work(body) => {
                let disclosure = Key::new(payload.envelope().disclosure.id.as_str());
                let recipient = self.released.get(&disclosure).map(|receipt| &receipt.recipient);
                self.conferences.fold_work(body, recipient, admitted_at);
                if let Some(receipt) = self.released.get(&disclosure) {
                    self.issued_to.insert(body.work_id.clone(), receipt.recipient.clone());
                }
                self.works.insert(body.work_id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Result(body) => {
                self.conferences.fold_result(payload, body);
                self.answered.insert(body.work_id.clone(), id.clone());
                self.results.insert(id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Action(body) => {
                self.logical.entry(body.action_id.clone()).or_insert_with(|| id.clone());
                self.actions.insert(id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Evidence(body) => {
                let binding = &body.target_binding;
                let number = (binding.observation_sequence_ref.clone(), binding.observation_version);
                self.numbered.insert(number, body.evidence_id.clone());
                let newest = self
                    .observed
                    .get(&binding.observation_sequence_ref)
                    .is_none_or(|(n, _)| *n < binding.observation_version);
                let shown = self.observed.get(&binding.observation_sequence_ref).map(|(_, id)| id);
                let shown = shown.and_then(|id| self.evidence.get(id)).map(|known| &known.body.observation);
                if branch!("view.shows_something_new", shown != Some(&body.observation)) {
                    payload.envelope().obligation_ids.iter().for_each(|id| self.fruitless.renew(id));
                }
                if newest {
                    let entry = (binding.observation_version, body.evidence_id.clone());
                    self.observed.insert(binding.observation_sequence_ref.clone(), entry);
                }
                for obligation_id in &payload.envelope().obligation_ids {
                    let streams = self.streams_of.entry(obligation_id.clone()).or_default();
                    streams.insert(binding.observation_sequence_ref.clone());
                }
                self.evidence.insert(body.evidence_id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Adjudication(body) => {
                self.adjudications.insert(body.adjudication_id.clone(), Self::on_record(payload, body, admitted_at));
                match body.phase {
                    Phase::PreAction => &mut self.assessments,
                    Phase::PostOutcome => return self.fold_stage(payload),
                    Phase::SemanticCommit => &mut self.endorsements,
                }
                .entry(body.subject.digest)
                .or_default()
                .push(body.adjudication_id.clone());
            }
            Body::Delta(body) => {
                self.deltas.insert(body.delta_id.clone(), Self::on_record(payload, body, admitted_at));
            }
            Body::Briefcase(body) => self.fold_packet(payload, body, admitted_at),
            Body::Handoff(body) => self.handoffs.fold_offer(Self::on_record(payload, body, admitted_at)),
            Body::Route(body) => {
                self.routes.insert(id, body.clone());
            }
            Body::Obligation(_) | Body::Reentry(_) => {}
        }
        self.fold_stage(payload);
    }

    /// Notes in the episode which stage the payload is.
    fn fold_stage(&mut self, payload: &Payload) {
        let envelope = payload.envelope();
        let Some(episode) = envelope.episode_id.as_ref().and_then(|id| self.episodes.get_mut(id)) else {
            return;
        };
        let episode = Arc::make_mut(episode);
        match payload.body() {
            Body::Route(_) => episode.route = Some(payload.id().clone()),
            Body::Work(body) => episode.work.push(body.work_id.clone()),
            Body::Result(_) => episode.results.push(payload.id().clone()),
            Body::Action(_) => episode.actions.push(payload.id().clone()),
            Body::Adjudication(body) => episode.adjudications.push(body.adjudication_id.clone()),
            Body::Evidence(body) => episode.readbacks.push(body.evidence_id.clone()),
            Body::Delta(body) => episode.deltas.push(body.delta_id.clone()),
            Body::Briefcase(body) => episode.packets.push(body.decision_id.clone()),
            Body::Event(_) | Body::Obligation(_) | Body::Reentry(_) | Body::Handoff(_) => {}
        }
    }

    fn fold_packet(&mut self, payload: &Arc<Payload>, body: &Arc<Briefcase>, admitted_at: &Timestamp) {
        let evidence_version =
            closer_contracts::canonical::digest_of(&body.evidence_refs).unwrap_or(payload.content_digest());
        let packet = Packet {
            packet: Self::on_record(payload, body, admitted_at),
            status: body.status,
            evidence_version,
            decision: None,
        };
        self.packets.insert(body.decision_id.clone(), packet);
        self.set_waiting(&body.decision_id);
    }

    /// Keeps the index of waiting packets in step with a packet's status.
    fn set_waiting(&mut self, decision_id: &DecisionId) {
        match self.packets.get(decision_id).is_some_and(crate::bench::waits) {
            true => drop(self.waiting.insert(decision_id.clone())),
            false => drop(self.waiting.remove(decision_id)),
        }
    }

    fn fold_artifact(&mut self, artifact: &Arc<ArtifactBody>, admitted_at: &Timestamp) -> Result<(), Divergence> {
        let digest = artifact.digest().map_err(|fault| Divergence { reason: fault.to_string() })?;
        let reference = ArtifactRef { id: artifact.id(), digest };
        match &**artifact {
            ArtifactBody::MatchReceipt(receipt) => self.fold_match(receipt, reference),
            ArtifactBody::DisclosureReceipt(receipt) => {
                let disclosure = DisclosureRef { id: receipt.disclosure_id.clone(), digest };
                self.disclosures.insert(Key::new(receipt.disclosure_id.as_str()), disclosure);
                self.released.insert(Key::new(receipt.disclosure_id.as_str()), Arc::new((**receipt).clone()));
            }
            ArtifactBody::Conference(contract) => self.conferences.fold_contract(contract, admitted_at),
            ArtifactBody::ReviewReceipt(receipt) => self.reviews.fold(receipt, reference),
            ArtifactBody::Call(call) => self.fold_call(call, reference, admitted_at),
            ArtifactBody::WorkTaken(taken) => drop(self.taken.insert(taken.work_id.clone(), admitted_at.clone())),
            ArtifactBody::ConferenceMove(made) => self.conferences.fold_move(made, reference),
            ArtifactBody::Proceeding(proceeding) => self.conferences.fold_proceeding(proceeding, reference),
            ArtifactBody::Declaration(declared) => {
                self.declarations.insert(declared.declaration_id.clone(), (reference, Arc::new((**declared).clone())));
            }
            ArtifactBody::UserDecision(decision) => self.fold_decision(decision, reference, admitted_at),
            ArtifactBody::CommitReceipt(receipt) => {
                let version = receipt.after_state.version;
                if receipt.admission_path == AdmissionPath::UrgentRestrictive {
                    self.outstanding.insert(version, reference.clone());
                }
                if let Some(committed) = self.commits.get_mut(&version) {
                    committed.receipt = Some(Arc::new((**receipt).clone()));
                    committed.receipt_ref = Some(reference);
                }
            }
            ArtifactBody::ReconciliationReceipt(receipt) => self.fold_reconciliation(receipt),
            ArtifactBody::Observing(observing) => self.ungoverned.fold_period(observing, admitted_at),
            ArtifactBody::UngovernedCall(call) => self.ungoverned.fold_call(call, reference),
            ArtifactBody::ReadSet(read_set) => {
                self.read_sets.insert(read_set.adjudication_id.clone(), Arc::new((**read_set).clone()));
            }
            ArtifactBody::ResponsibilityContract(contract) => self.handoffs.fold_contract(reference, contract),
            ArtifactBody::AcceptanceReceipt(receipt) => {
                self.handoffs.fold_acceptance(receipt);
                let entry = (reference, Arc::new((**receipt).clone()));
                self.acceptances.insert(receipt.handoff_ref.clone(), entry);
            }
            ArtifactBody::Incident(opened) => {
                let case = Case::open(Arc::new((**opened).clone()), reference);
                self.incidents.insert(opened.incident_id.clone(), Arc::new(case));
            }
            ArtifactBody::IncidentStep(taken) => {
                if let Some(case) = self.incidents.get_mut(&taken.incident_id) {
                    Arc::make_mut(case).fold(admitted_at, &taken.content);
                }
            }
            ArtifactBody::Confession(confession) => {
                let entry = (reference, Arc::new((**confession).clone()));
                self.confessions.insert(confession.confession_id.clone(), entry);
            }
            ArtifactBody::RestrictionStatement(_) | ArtifactBody::HandoffConsent(_) | ArtifactBody::Advice(_) => {}
        }
        Ok(())
    }

    /// A review settles the urgent commit that it is about, unless it leaves it open.
    fn fold_reconciliation(&mut self, receipt: &closer_contracts::audit::ReconciliationReceipt) {
        use closer_contracts::audit::ReconciliationDisposition as D;
        if matches!(receipt.disposition, D::Confirmed | D::Narrowed | D::LiftRecommended) {
            let settled: Vec<u64> = self
                .outstanding
                .iter()
                .filter(|(_, urgent)| urgent.digest == receipt.urgent_commit_ref.digest)
                .map(|(version, _)| *version)
                .collect();
            for version in settled {
                self.outstanding.remove(&version);
            }
        }
    }

    /// A call from outside is something new for its obligation.
    fn fold_call(&mut self, call: &crate::call::Call, reference: ArtifactRef, admitted_at: &Timestamp) {
        self.fruitless.renew(&call.obligation_id);
        self.calls.fold(call, reference, &self.state, admitted_at);
    }

    fn fold_match(&mut self, receipt: &MatchReceipt, reference: ArtifactRef) {
        let event = EventId::new(receipt.event_ref.id.as_str());
        let brings_evidence = self.events.get(&event).is_some_and(|event| !event.body.evidence_refs.is_empty());
        let matched = receipt.matched_obligation_ids.iter().filter(|_| brings_evidence);
        matched.for_each(|id| self.fruitless.renew(id));
        for obligation_id in &receipt.matched_obligation_ids {
            let rationale = receipt.rationale.iter().find(|rationale| rationale.obligation_id == *obligation_id);
            let cause = Cause {
                event_id: Some(event.clone()),
                match_receipt: Some(reference.clone()),
                reentry_id: None,
                activation_key: None,
                reason: rationale.map_or_else(|| "the event matched".into(), |rationale| rationale.reason.clone()),
            };
            self.make_eligible(obligation_id.clone(), cause);
        }
        self.matches.insert(event, (reference, Arc::new(receipt.clone())));
    }

    fn fold_decision(&mut self, decision: &UserDecision, reference: ArtifactRef, admitted_at: &Timestamp) {
        use closer_contracts::audit::DecisionType;
        let answers = decision.decision_type != DecisionType::Acknowledgment;
        let asked = crate::bench::packet_of(decision);
        if decision.decision_type == DecisionType::ScopedAuthorization {
            self.answers.insert(crate::bench::grant_id(decision), asked.clone());
            crate::people::fold(self, decision, &reference, admitted_at);
        }
        let authorizes = decision.decision_type == DecisionType::ScopedAuthorization;
        let awaited = authorizes && crate::people::missing(self, decision) > 0;
        if decision.amendment.is_some() {
            self.amended.insert(decision.decision_id.clone(), Arc::new(decision.clone()));
        }
        if let Some(packet) = self.packets.get_mut(&asked) {
            let current = packet.packet.payload.content_digest() == decision.briefcase_ref.digest;
            let obligations = &packet.packet.body.obligation_ids;
            obligations.iter().for_each(|id| self.fruitless.renew(id));
            if answers && current && !awaited {
                packet.status = PacketStatus::Answered;
                packet.decision = Some(reference.clone());
            }
        }
        self.set_waiting(&asked);
        self.decisions.entry(asked).or_default().push((reference, Arc::new(decision.clone())));
    }

    fn fold_commit(&mut self, commit: &Arc<Commit>) -> Result<(), Divergence> {
        self.state = closer_state::apply(&self.state, commit)
            .map_err(|divergence| Divergence { reason: divergence.to_string() })?;
        self.committed.insert(commit.delta.delta_id.clone(), commit.version);
        for change in &commit.delta.changes {
            if let Change::RemoveDependency { dependency_id } = change {
                self.removed.insert(dependency_id.into());
            }
        }
        self.commits.insert(commit.version, Committed { commit: commit.clone(), receipt: None, receipt_ref: None });
        if restricts(commit) {
            self.restrictions_decided = commit.version;
        }
        self.fruitless.committed(commit);
        for (obligation_id, reason) in wakes(commit) {
            self.fruitless.renew(&obligation_id);
            let cause = Cause { event_id: None, match_receipt: None, reentry_id: None, activation_key: None, reason };
            self.make_eligible(obligation_id, cause);
        }
        self.ledger.limit_from(&self.state);
        Ok(())
    }

    fn fold_intent(&mut self, intent: &Arc<Intent>) -> Result<(), Divergence> {
        let payload_id = PayloadId::new(intent.action_ref.id.as_str());
        let action = self.actions.get(&payload_id).map(|action| action.body.clone()).ok_or_else(|| Divergence {
            reason: format!("the intent of `{}` cites no action on record", intent.attempt_id),
        })?;
        let digest = closer_contracts::canonical::digest_of(&**intent)
            .map_err(|fault| Divergence { reason: fault.to_string() })?;
        let id = crate::derived_id("intent", intent.attempt_id.as_str());
        let intent_ref = ArtifactRef { id: id.into(), digest };
        // A read leaves nothing to be read back, so that nothing waits for it.
        if !crate::call::reads(self, &intent.episode_id, &action.operation) {
            self.unsettled.insert(streams::unsettled(&action.target), intent.attempt_id.clone());
        }
        let attempt = Attempt {
            intent: intent.clone(),
            intent_ref,
            action,
            status: AttemptStatus::Intended,
            outcome: None,
            response: None,
            told_at: None,
        };
        *self.calls_under.entry(attempt.action.authority_ref.clone()).or_default() += 1;
        self.attempts_of.entry(intent.logical_digest).or_default().push(intent.attempt_id.clone());
        self.attempts.insert(intent.attempt_id.clone(), attempt);
        Ok(())
    }

    fn fold_outcome(&mut self, outcome: &Arc<Outcome>, admitted_at: &Timestamp) -> Result<(), Divergence> {
        let attempt = self
            .attempts
            .get_mut(&outcome.attempt_id)
            .ok_or_else(|| Divergence { reason: format!("the outcome of `{}` has no intent", outcome.attempt_id) })?;
        let was = std::mem::replace(&mut attempt.status, outcome.status);
        let given_back = !was.is_settled() && outcome.status == AttemptStatus::NoEffectConfirmed;
        if let Some(calls) = self.calls_under.get_mut(&attempt.action.authority_ref).filter(|_| given_back) {
            *calls = calls.saturating_sub(1);
        }
        attempt.response = outcome.response.clone().or(attempt.response.take());
        attempt.outcome = Some(outcome.clone());
        attempt.told_at.get_or_insert_with(|| admitted_at.clone());
        if outcome.status.is_settled() {
            let stream = streams::unsettled(&attempt.action.target);
            if self.unsettled.get(&stream) == Some(&outcome.attempt_id) {
                self.unsettled.remove(&stream);
            }
        }
        Ok(())
    }

    fn fold_refusal(&mut self, refusal: &Refusal) {
        self.refusals = self.refusals.saturating_add(1);
        self.fold_failure(refusal);
        let id = refusal.subject.as_str();
        let tracked = self.actions.contains_key(&PayloadId::new(id)) || self.deltas.contains_key(&DeltaId::new(id));
        if tracked {
            let key = Key::new(id);
            let code = self.refused.get(&key).map_or(refusal.code, |(code, _)| *code);
            let same = self.refused_at.get(&key) == Some(&refusal.refused_at);
            let foremost = match same && code.precedence() < refusal.code.precedence() {
                true => code,
                false => refusal.code,
            };
            let times = self.refused.get(&key).map_or(0, |(_, times)| *times) + u32::from(!same);
            self.refused.insert(key.clone(), (foremost, times));
            self.refused_at.insert(key, refusal.refused_at.clone());
        }
    }

    /// Counts a failed answer for whom the work was issued to.
    fn fold_failure(&mut self, refusal: &Refusal) {
        let work_id = crate::work::failed_work(&refusal.subject);
        let Some((work_id, actor)) = work_id.and_then(|id| Some((id.clone(), self.issued_to.get(&id)?.clone()))) else {
            return;
        };
        if self.failed.contains_key(&work_id) {
            return;
        }
        *self.failures.entry(actor).or_default() += 1;
        self.conferences.fold_failure(&work_id);
        self.failed.insert(work_id, (refusal.code, refusal.reason.clone()));
    }

    fn fold_notice(&mut self, notice: &Notice) {
        let status = match notice.kind {
            NoticeKind::Overdue => Some(PacketStatus::Overdue),
            NoticeKind::PacketWithdrawn => Some(PacketStatus::Withdrawn),
            NoticeKind::PacketRefreshed => Some(PacketStatus::Refreshed),
            NoticeKind::Escalation
            | NoticeKind::KeyCompromise
            | NoticeKind::BudgetIncident
            | NoticeKind::AggregatedRefusals
            | NoticeKind::ResidualInterval
            | NoticeKind::RestrictionRepeated
            | NoticeKind::DisclosureIncident
            | NoticeKind::DisclosureWithdrawn
            | NoticeKind::AcceptanceVerified => None,
        };
        for decision_id in notice.subjects.iter().map(|subject| DecisionId::new(subject.as_str())) {
            if let (Some(status), Some(packet)) = (status, self.packets.get_mut(&decision_id)) {
                packet.status = status;
                self.set_waiting(&decision_id);
            }
        }
        if let Some(count) = crate::intake::unreadable_count(notice) {
            self.unreadable = self.unreadable.max(count);
        }
        self.notices.insert(notice.key.clone(), Arc::new(notice.clone()));
    }

    fn fold_ledger(&mut self, movement: &LedgerEntry) {
        self.ledger.fold(movement);
    }

    fn fold_ownership(&mut self, entry: &OwnershipEntry) {
        let ownership = Ownership {
            epoch: entry.epoch,
            owner: entry.owner.clone(),
            lease_expiry: entry.lease_expiry.clone(),
            standing: self.handoffs.standing(&entry.obligation_id, entry.epoch),
        };
        self.ownership.insert(entry.obligation_id.clone(), ownership);
    }

    /// Makes an obligation eligible for one reason more. Its turn is that of the first: who waits longest comes first.
    fn make_eligible(&mut self, obligation_id: ObligationId, cause: Cause) {
        if !self.eligible.contains_key(&obligation_id) {
            self.turn = self.turn.saturating_add(1);
            self.turns.insert((self.turn, obligation_id.clone()));
            self.begun_at.insert(self.turn, self.begun);
            self.turn_of.insert(obligation_id.clone(), self.turn);
        }
        self.eligible.entry(obligation_id).or_default().push(cause);
    }

    fn fold_activation(&mut self, entry: &ActivationEntry, admitted_at: &Timestamp) {
        match entry {
            ActivationEntry::Fired(fired) => {
                if let (Some(reentry), Some(key)) = (&fired.cause.reentry_id, fired.cause.activation_key) {
                    self.activated.insert((reentry.clone(), key));
                }
                let review = crate::matching::gap_trigger(&fired.obligation_id);
                if fired.cause.reentry_id.as_ref() == Some(&review) {
                    self.fruitless.renew(&fired.obligation_id);
                }
                self.make_eligible(fired.obligation_id.clone(), fired.cause.clone());
            }
            ActivationEntry::Began(began) => {
                self.eligible.remove(&began.obligation_id);
                self.begun = self.begun.saturating_add(1);
                self.calls.fold_began(&began.episode_id, &began.obligation_id);
                if let Some(turn) = self.turn_of.remove(&began.obligation_id) {
                    self.begun_at.remove(&turn);
                    self.turns.remove(&(turn, began.obligation_id.clone()));
                }
                let episode = Episode {
                    episode_id: began.episode_id.clone(),
                    obligation_id: began.obligation_id.clone(),
                    causes: began.causes.clone(),
                    began_at: admitted_at.clone(),
                    stops_at: began.stops_at.clone(),
                    route: None,
                    work: Vec::new(),
                    results: Vec::new(),
                    actions: Vec::new(),
                    adjudications: Vec::new(),
                    readbacks: Vec::new(),
                    deltas: Vec::new(),
                    packets: Vec::new(),
                    refusals: 0,
                    end: None,
                    end_reason: None,
                };
                self.under_way.insert(began.obligation_id.clone(), began.episode_id.clone());
                self.bounds.insert((began.stops_at.clone(), began.episode_id.clone()));
                self.episodes.insert(began.episode_id.clone(), Arc::new(episode));
            }
            ActivationEntry::Ended(ended) => {
                if self.under_way.get(&ended.obligation_id) == Some(&ended.episode_id) {
                    self.under_way.remove(&ended.obligation_id);
                }
                // A call from outside is what its caller found new.
                if self.calls.of_episode(&ended.episode_id).is_none() {
                    self.fruitless.ended(&ended.obligation_id, ended.end);
                }
                if let Some(episode) = self.episodes.get_mut(&ended.episode_id) {
                    self.bounds.remove(&(episode.stops_at.clone(), episode.episode_id.clone()));
                    let episode = Arc::make_mut(episode);
                    episode.end = Some(ended.end);
                    episode.end_reason = Some(ended.reason.clone());
                }
            }
        }
    }

    /// Who owns an obligation now: the last transfer, or its responsible owner under epoch 0 without a lease.
    #[must_use]
    pub fn ownership(&self, obligation_id: &ObligationId) -> Option<Ownership> {
        self.ownership.get(obligation_id).cloned().or_else(|| {
            let obligation = self.state.obligation(obligation_id)?;
            let owner = obligation.responsible_owner.clone();
            Some(Ownership { epoch: 0, owner, lease_expiry: None, standing: OwnershipStanding::Held })
        })
    }

    /// The reference to the standing disclosure receipt under this id.
    #[must_use]
    pub fn disclosure(&self, id: &str) -> Option<&DisclosureRef> {
        self.disclosures.get(&Key::from(id))
    }
}

/// Whether a commit restricts: what was admitted before it is checked again before it is sent (DEC-48).
#[must_use]
pub fn restricts(commit: &Commit) -> bool {
    commit.delta.has(closer_contracts::delta::ChangeClass::Restrictive)
}

/// The obligations that a commit makes eligible, because what they rely on went, and why.
#[must_use]
pub fn wakes(commit: &Commit) -> Vec<(ObligationId, closer_contracts::id::Text)> {
    let woken = |derived: &closer_state::DerivedChange| match derived {
        closer_state::DerivedChange::Reconsider { kind: closer_contracts::item::ItemKind::Obligation, id, premise } => {
            Some((ObligationId::new(id.as_str()), format!("`{premise}`, which it relies on, was invalidated").into()))
        }
        closer_state::DerivedChange::Reconsider { .. }
        | closer_state::DerivedChange::Suspend { .. }
        | closer_state::DerivedChange::RevokeDelegate { .. }
        | closer_state::DerivedChange::Oblige { .. } => None,
    };
    commit.derived.iter().filter_map(woken).collect()
}
