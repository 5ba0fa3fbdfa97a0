//! What people and observers say to a space.

use super::{Broken, Space};
use crate::founding::declaration;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase, RolePosition, Stance};
use closer_contracts::audit::{DecisionType, RestrictionStatement, RestrictiveAction, UserDecision};
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AuthorityKind, AuthorityRef, Change, Delta};
use closer_contracts::envelope::{Body, DisclosureRef, Envelope};
use closer_contracts::event::{Certainty, Event};
use closer_contracts::id::{ArtifactId, DecisionId, EventId, Key, ObligationId, PayloadId};
use closer_contracts::refs::{
    ActorRef, ArtifactRef, AuthenticatedIssuer, EvidenceSnapshot, ProducerRole, SourceRef, SubjectType, Target,
    TypedRef,
};
use closer_contracts::{Digest, Fault, Payload};
use closer_protocol::disclose::Request;
use closer_protocol::incident::IncidentStep;
use closer_protocol::input::{Input, Reply, Submission};
use closer_protocol::services::{self, Lineage};
use closer_protocol::{adjudicate, commit, readback};
use std::sync::Arc;

impl Space {
    /// The user declares exactly these changes; gives the authority that this is for them.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn instruct(&mut self, changes: &[Change]) -> Result<AuthorityRef, Broken> {
        let mut declaration = declaration();
        declaration.declaration_id = self.fresh("instruction").into();
        declaration.success_criteria.push(commit::instruction(changes)?);
        let reference =
            ArtifactRef { id: ArtifactId::new(declaration.declaration_id.as_str()), digest: digest_of(&declaration)? };
        let user = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
        self.submit_artifact(declaration, user, SigningScope::Declaration)?;
        Ok(AuthorityRef { kind: AuthorityKind::Declaration, reference })
    }

    /// The EVENT of an observer about an entity.
    ///
    /// # Errors
    /// The codes of the contract.
    pub fn event_payload(
        &mut self,
        entity: &str,
        change_kind: &str,
        evidence: Vec<ArtifactRef>,
    ) -> Result<Payload, Fault> {
        let id = self.fresh("event");
        let intake = services::intake_disclosure("feed");
        let disclosure = self.view().disclosure(&intake).cloned();
        let disclosure = disclosure.unwrap_or(DisclosureRef { id: intake.as_str().into(), digest: Digest::of(b"") });
        Payload::seal(Envelope {
            protocol_version: Key::from("closer-draft-4"),
            payload_id: PayloadId::new(format!("pl.{id}")),
            r#type: closer_contracts::payload_type::PayloadType::Event,
            created_at: self.now.clone(),
            producer: ActorRef { actor_id: "observer-1".into(), role: ProducerRole::Observer },
            parents: Vec::new(),
            obligation_ids: Vec::new(),
            episode_id: None,
            semantic_basis: None,
            disclosure,
            budget_ref: None,
            causation_event_id: None,
            body: Body::from(Event {
                event_id: EventId::new(id.as_str()),
                source: SourceRef { source_id: "feed".into() },
                observed_at: self.now.clone(),
                received_at: self.now.clone(),
                entity_ref: entity.into(),
                change_kind: change_kind.into(),
                evidence_refs: evidence,
                deduplication_key: Key::new(id),
                certainty: Certainty::Observed,
                extensions: None,
            }),
            content_digest: Digest::of(b""),
            extensions: None,
        })
    }

    /// An observer sends an event about an entity.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn event(&mut self, entity: &str, change_kind: &str) -> Result<Reply, Broken> {
        let payload = self.event_payload(entity, change_kind, Vec::new())?;
        self.submit_payload(payload)
    }

    /// An issuer's statement, to be reconciled within 1 000 seconds.
    pub fn statement(&mut self, issuer: &str, action: RestrictiveAction) -> RestrictionStatement {
        RestrictionStatement {
            statement_id: ArtifactId::new(self.fresh("statement")),
            issuer: issuer.into(),
            action,
            reason: "The user's key may be known to others.".into(),
            evidence_refs: Vec::new(),
            reconciliation_due_at: Some(self.now.plus_ms(1_000_000)),
        }
    }

    /// An issuer restricts.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn restrict(&mut self, issuer: &str, action: RestrictiveAction) -> Result<Reply, Broken> {
        let statement = self.statement(issuer, action);
        self.submit_statement(statement)
    }

    /// An issuer submits its statement.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn submit_statement(&mut self, statement: RestrictionStatement) -> Result<Reply, Broken> {
        let producer = ActorRef { actor_id: statement.issuer.clone(), role: ProducerRole::Issuer };
        self.submit_artifact(statement, producer, SigningScope::RestrictionStatement)
    }

    /// The user's answer to a packet as it is shown now.
    ///
    /// # Errors
    /// No such packet.
    pub fn decision(&mut self, decision_id: &DecisionId, decision_type: DecisionType) -> Result<UserDecision, Broken> {
        let packet =
            self.view().packets.get(decision_id).ok_or_else(|| Broken::Stuck(format!("no packet {decision_id}")))?;
        Ok(UserDecision {
            briefcase_ref: ArtifactRef {
                id: ArtifactId::new(decision_id.as_str()),
                digest: packet.packet.payload.content_digest(),
            },
            evidence_version: packet.evidence_version,
            selected_option_or_instruction: "allow".into(),
            authenticated_issuer: AuthenticatedIssuer {
                identity: "user".into(),
                auth_ref: ArtifactRef { id: "auth".into(), digest: Digest::of(b"auth") },
            },
            issued_at: self.now.clone(),
            decision_type,
            decision_id: DecisionId::new(self.fresh("answer")),
            amendment: None,
        })
    }

    /// The user answers a packet.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn answer(&mut self, decision_id: &DecisionId, decision_type: DecisionType) -> Result<Reply, Broken> {
        let decision = self.decision(decision_id, decision_type)?;
        self.submit_decision(decision)
    }

    /// The user submits an answer.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn submit_decision(&mut self, decision: UserDecision) -> Result<Reply, Broken> {
        let producer = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
        self.submit_artifact(decision, producer, SigningScope::UserDecision)
    }

    /// Somebody asks for a part of the record, for a recipient and a purpose.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn ask(
        &mut self,
        who: ActorRef,
        recipient: &str,
        purpose: Option<&str>,
        items: &[&str],
    ) -> Result<Reply, Broken> {
        let request = Request {
            request_id: ArtifactId::new(self.fresh("request")),
            recipient: recipient.into(),
            purpose: purpose.map(Into::into),
            items: items.iter().map(|&item| item.into()).collect(),
        };
        let auth = self.authenticate(&request.subject(&who)?)?;
        self.submit(Input::Disclose(Submission { content: Arc::new(request), producer: who, auth }))
    }

    /// Somebody takes a step of an incident.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn step(&mut self, who: ActorRef, step: IncidentStep) -> Result<Reply, Broken> {
        self.submit_artifact(step, who, SigningScope::DisclosureIncident)
    }

    /// The observer looks at a target and records what it shows, for an obligation where one is named.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn observe(&mut self, target: &Target, obligation: Option<&str>) -> Result<Reply, Broken> {
        let payload = self.observation(target, obligation)?;
        self.submit_payload(payload)
    }

    /// The EVIDENCE of what a target shows now.
    ///
    /// # Errors
    /// The codes of the contract; no registered method reads the target.
    pub fn observation(&mut self, target: &Target, obligation: Option<&str>) -> Result<Payload, Broken> {
        let now = self.moment().now;
        let observed = self.world.observe(target, &now);
        let method = self.view().state.readback_method(&"plan.read".into());
        let method = method.cloned().ok_or_else(|| Broken::Stuck("no method reads the target".into()))?;
        let obligation = obligation.map(ObligationId::from);
        Ok(readback::draft(self.view(), &method, &observed, target, None, obligation.as_slice(), &now)?)
    }

    /// A payload of one of the space's own services, outside any episode.
    ///
    /// # Errors
    /// The codes of the body's contract.
    pub fn write(&mut self, role: ProducerRole, obligations: &[&str], body: impl Into<Body>) -> Result<Payload, Fault> {
        let lineage = Lineage {
            parents: Vec::new(),
            obligation_ids: obligations.iter().map(|&id| id.into()).collect(),
            episode_id: None,
            causation_event_id: None,
            budget_ref: None,
        };
        self.write_in(role, lineage, body)
    }

    /// A payload of one of the space's own services with this lineage.
    ///
    /// # Errors
    /// The codes of the body's contract.
    pub fn write_in(&mut self, role: ProducerRole, lineage: Lineage, body: impl Into<Body>) -> Result<Payload, Fault> {
        let id = PayloadId::new(self.fresh("pl.own"));
        let disclosure = services::internal_disclosure(self.view())?;
        let now = self.moment().now;
        services::write(self.view(), id, services::actor_ref(role), lineage, disclosure, body, &now)
    }

    /// The assessor's semantic-commit adjudication of a delta.
    ///
    /// # Errors
    /// The codes of the contract.
    pub fn endorsement(&mut self, delta: &Delta, disposition: Disposition) -> Result<Adjudication, Fault> {
        let receipt = ArtifactRef { id: ArtifactId::new(delta.delta_id.as_str()), digest: delta.proposal_digest };
        Ok(Adjudication {
            adjudication_id: self.fresh("adj").as_str().into(),
            phase: Phase::SemanticCommit,
            subject: TypedRef {
                id: (&delta.delta_id).into(),
                digest: delta.proposal_digest,
                r#type: SubjectType::Delta,
            },
            evidence_snapshot: EvidenceSnapshot::of(Vec::new())?,
            readback_refs: Vec::new(),
            governing_basis: self.view().state.reference(),
            role_positions: vec![RolePosition {
                actor: services::actor(ProducerRole::Assessor),
                role: adjudicate::validator_role(),
                position: Stance::For,
                reason: "The changes are as the record shows.".into(),
                receipt,
            }],
            decision_rule_ref: commit::mechanical_rule(),
            dissent: Vec::new(),
            unresolved: Vec::new(),
            disposition,
            extensions: None,
        })
    }

    /// The assessor adjudicates a delta.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn endorse(&mut self, delta: &Delta, disposition: Disposition) -> Result<Reply, Broken> {
        let adjudication = self.endorsement(delta, disposition)?;
        let obligations = self
            .view()
            .deltas
            .get(&delta.delta_id)
            .map(|on_record| on_record.payload.envelope().obligation_ids.clone());
        let obligations = obligations.unwrap_or_default();
        let named: Vec<&str> = obligations.iter().map(ObligationId::as_str).collect();
        let payload = self.write(ProducerRole::Assessor, &named, adjudication)?;
        self.submit_payload(payload)
    }
}
