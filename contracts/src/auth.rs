//! How a payload or artifact is authenticated: a detached record beside it, never an actor's name or a bare digest.
//!
//! Owns the judgment that an identity is established: registered and current, by a mechanism that both the profile and
//! the identity declare, with a key or session of its own. Deliberately lacks any judgment of authority: what an
//! established identity may do is decided elsewhere and reported apart. Spec: §6.1, DEC-12, DEC-13.

use crate::branch;
use crate::digest::Digest;
use crate::envelope::Payload;
use crate::fault::Fault;
use crate::id::{ActorId, Id, Key, KeyId, SessionId};
use crate::item::{Identity, Mechanism, SigningKeyEntry, Standing};
use crate::payload_type::PayloadType;
use crate::refs::ProducerRole;
use crate::refusal::RefusalCode;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

mod session;
mod signing;

pub use session::{Session, Sessions};
pub use signing::{key_id, register_key, sign, signed_message, verify};

crate::words! {
    /// What a key may sign: one of the twelve payload types, or a kind of artifact beside them (DEC-13, DEC-17).
    pub enum SigningScope {
        /// See [`PayloadType::Event`].
        Event = "EVENT",
        /// See [`PayloadType::Obligation`].
        Obligation = "OBLIGATION",
        /// See [`PayloadType::Route`].
        Route = "ROUTE",
        /// See [`PayloadType::Work`].
        Work = "WORK",
        /// See [`PayloadType::Result`].
        Result = "RESULT",
        /// See [`PayloadType::Action`].
        Action = "ACTION",
        /// See [`PayloadType::Evidence`].
        Evidence = "EVIDENCE",
        /// See [`PayloadType::Adjudication`].
        Adjudication = "ADJUDICATION",
        /// See [`PayloadType::Delta`].
        Delta = "DELTA",
        /// See [`PayloadType::Reentry`].
        Reentry = "REENTRY",
        /// See [`PayloadType::Handoff`].
        Handoff = "HANDOFF",
        /// See [`PayloadType::Briefcase`].
        Briefcase = "BRIEFCASE",
        /// A deployment profile.
        Profile = "PROFILE",
        /// A declaration of the user.
        Declaration = "DECLARATION",
        /// The user's answer to a packet.
        UserDecision = "USER_DECISION",
        /// A grant.
        Grant = "GRANT",
        /// An issuer's restriction.
        RestrictionStatement = "RESTRICTION_STATEMENT",
        /// A recipient's consent to a handoff.
        HandoffConsent = "HANDOFF_CONSENT",
        /// What a responsibility takes of whoever holds it.
        ResponsibilityContract = "RESPONSIBILITY_CONTRACT",
        /// The ownership service's acceptance.
        AcceptanceReceipt = "ACCEPTANCE_RECEIPT",
        /// The matcher's receipt.
        MatchReceipt = "MATCH_RECEIPT",
        /// The semantic service's receipt.
        CommitReceipt = "COMMIT_RECEIPT",
        /// The later review of an urgent commit.
        ReconciliationReceipt = "RECONCILIATION_RECEIPT",
        /// What was released to whom.
        DisclosureReceipt = "DISCLOSURE_RECEIPT",
        /// An attributable discrepancy.
        Confession = "CONFESSION",
        /// An over-disclosure.
        DisclosureIncident = "DISCLOSURE_INCIDENT",
        /// The contract of a conference.
        Conference = "CONFERENCE",
        /// A participant's move in a conference.
        ConferenceMove = "CONFERENCE_MOVE",
        /// A person's review of one exact artifact.
        ReviewReceipt = "REVIEW_RECEIPT",
    }
}

impl From<PayloadType> for SigningScope {
    fn from(payload_type: PayloadType) -> Self {
        match payload_type {
            PayloadType::Event => Self::Event,
            PayloadType::Obligation => Self::Obligation,
            PayloadType::Route => Self::Route,
            PayloadType::Work => Self::Work,
            PayloadType::Result => Self::Result,
            PayloadType::Action => Self::Action,
            PayloadType::Evidence => Self::Evidence,
            PayloadType::Adjudication => Self::Adjudication,
            PayloadType::Delta => Self::Delta,
            PayloadType::Reentry => Self::Reentry,
            PayloadType::Handoff => Self::Handoff,
            PayloadType::Briefcase => Self::Briefcase,
        }
    }
}

/// What proves the identity, by mechanism.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "mechanism", rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// An in-process session that the runtime bound to the identity.
    Session {
        /// The session.
        session_id: SessionId,
    },
    /// An Ed25519 signature over `content_digest` and the signing scope.
    Ed25519 {
        /// The signing key.
        key_id: KeyId,
        /// 64 bytes in lowercase hexadecimal.
        signature: Key,
    },
}

impl Proof {
    /// The mechanism.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        match self {
            Self::Session { .. } => Mechanism::Session,
            Self::Ed25519 { .. } => Mechanism::Ed25519,
        }
    }
}

/// The detached authentication of one payload or artifact (DEC-12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthRecord {
    /// What is authenticated.
    pub subject_id: Id,
    /// Its content digest.
    pub content_digest: Digest,
    /// What it is, which the proof covers too.
    pub scope: SigningScope,
    /// The identity that is established.
    pub identity: ActorId,
    /// How.
    pub proof: Proof,
    /// When the runtime received it; key status is judged at this time (DEC-13).
    pub received_at: Timestamp,
}

/// What is to be authenticated: a payload or artifact and who is said to have produced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its id.
    pub id: Id,
    /// Its content digest.
    pub content_digest: Digest,
    /// What it is.
    pub scope: SigningScope,
    /// The identity that the caller claims. A claim and nothing more.
    pub producer: ActorId,
    /// The producer role it claims, where it is a payload.
    pub role: Option<ProducerRole>,
}

impl Subject {
    /// A payload, with the producer its envelope names.
    #[must_use]
    pub fn payload(payload: &Payload) -> Self {
        let envelope = payload.envelope();
        Self {
            id: (&envelope.payload_id).into(),
            content_digest: envelope.content_digest,
            scope: envelope.r#type.into(),
            producer: envelope.producer.actor_id.clone(),
            role: Some(envelope.producer.role),
        }
    }
}

/// What the caller shows for its identity.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'a> {
    /// Nothing: an actor's name, a bare digest.
    None,
    /// The session handle it was issued.
    Session(&'a Session),
    /// A signature by one of the identity's keys.
    Ed25519 {
        /// The key.
        key_id: &'a KeyId,
        /// 64 bytes in lowercase hexadecimal.
        signature: &'a Key,
    },
}

/// What the deployment accepts as authentication.
#[derive(Debug, Clone, Copy)]
pub struct Accepted<'a> {
    /// The mechanisms that the profile declares.
    pub mechanisms: &'a [Mechanism],
    /// The sessions that this runtime issued.
    pub sessions: &'a Sessions,
}

/// The proof that [`authenticate`] established an identity. It says nothing about authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    record: AuthRecord,
}

impl Authenticated {
    /// The detached record to keep beside the subject.
    #[must_use]
    pub const fn record(&self) -> &AuthRecord {
        &self.record
    }

    /// The established identity.
    #[must_use]
    pub const fn identity(&self) -> &ActorId {
        &self.record.identity
    }
}

/// Judges whether the claimed identity is established. `identity` is what the registry holds under the claimed name.
///
/// # Errors
/// `unauthenticated`, with the reason.
pub fn authenticate(
    accepted: Accepted<'_>,
    identity: Option<&Identity>,
    subject: &Subject,
    credential: Credential<'_>,
    received_at: &Timestamp,
) -> Result<Authenticated, Fault> {
    let identity = identity
        .filter(|identity| branch!("auth.identity_is_the_claimed", identity.actor_id == subject.producer))
        .ok_or_else(|| unauthenticated("the claimed identity is not in the registry"))?;
    check_current(identity, received_at)?;
    let proof = match credential {
        Credential::None => return Err(unauthenticated("a name and a digest alone prove no identity")),
        Credential::Session(session) => Proof::Session { session_id: session.id().clone() },
        Credential::Ed25519 { key_id, signature } => {
            Proof::Ed25519 { key_id: key_id.clone(), signature: signature.clone() }
        }
    };
    let mechanism = proof.mechanism();
    let declared = accepted.mechanisms.contains(&mechanism) && identity.mechanisms.contains(&mechanism);
    if branch!("auth.mechanism_undeclared", !declared) {
        return Err(unauthenticated(format!("the mechanism `{mechanism}` is not declared for it")));
    }
    match credential {
        Credential::None => {}
        Credential::Session(session) => check_session(accepted.sessions, session, subject)?,
        Credential::Ed25519 { key_id, signature } => {
            check_signature(identity, key_id, signature, subject, received_at)?
        }
    }
    if branch!("auth.role_unassigned", subject.role.is_some_and(|role| !identity.roles.contains(&role))) {
        return Err(unauthenticated("the claimed producer role is not assigned to it"));
    }
    Ok(Authenticated {
        record: AuthRecord {
            subject_id: subject.id.clone(),
            content_digest: subject.content_digest,
            scope: subject.scope,
            identity: identity.actor_id.clone(),
            proof,
            received_at: received_at.clone(),
        },
    })
}

fn unauthenticated(reason: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(RefusalCode::Unauthenticated, reason)
}

fn check_current(identity: &Identity, at: &Timestamp) -> Result<(), Fault> {
    let revoked = identity.revoked_at.as_ref().is_some_and(|revoked_at| revoked_at <= at);
    match branch!("auth.identity_not_current", revoked || identity.standing != Standing::Current) {
        true => Err(unauthenticated("the identity is no longer current")),
        false => Ok(()),
    }
}

fn check_session(sessions: &Sessions, session: &Session, subject: &Subject) -> Result<(), Fault> {
    if branch!("auth.session_not_issued_here", !sessions.hold(session)) {
        return Err(unauthenticated("the session is not open in this runtime"));
    }
    match branch!("auth.session_of_another", *session.identity() != subject.producer) {
        true => Err(unauthenticated("the session belongs to another identity")),
        false => Ok(()),
    }
}

fn check_signature(
    identity: &Identity,
    key_id: &KeyId,
    signature: &Key,
    subject: &Subject,
    received_at: &Timestamp,
) -> Result<(), Fault> {
    let key = identity
        .keys
        .iter()
        .find(|key| key.key_id == *key_id)
        .ok_or_else(|| unauthenticated("the key is not one of the identity's"))?;
    let in_time = key.not_before <= *received_at && *received_at < key.not_after;
    if branch!("auth.key_out_of_time", !in_time) {
        return Err(unauthenticated("the key was not valid when this was received"));
    }
    check_unrevoked(key, received_at)?;
    if branch!("auth.key_out_of_scope", !key.signing_scope.contains(&subject.scope)) {
        return Err(unauthenticated(format!("the key may not sign `{}`", subject.scope)));
    }
    let message = signed_message(subject.content_digest, subject.scope, &identity.actor_id)?;
    match branch!("auth.signature_invalid", verify(key, &message, signature).is_err()) {
        true => Err(unauthenticated("the signature is not one of this key over this content")),
        false => Ok(()),
    }
}

fn check_unrevoked(key: &SigningKeyEntry, at: &Timestamp) -> Result<(), Fault> {
    let revoked = key.revoked_at.as_ref().is_some_and(|revoked_at| revoked_at <= at);
    match branch!("auth.key_revoked", revoked) {
        true => Err(unauthenticated("the key has been revoked")),
        false => Ok(()),
    }
}

impl AuthRecord {
    /// Judges an authentication again when its subject is about to admit an effect: identity and key unrevoked at `at`.
    /// A key that was merely rotated since then does not matter (DEC-13).
    ///
    /// # Errors
    /// `unauthenticated`, with the reason.
    pub fn check_again(&self, identity: Option<&Identity>, at: &Timestamp) -> Result<(), Fault> {
        let identity = identity
            .filter(|identity| identity.actor_id == self.identity)
            .ok_or_else(|| unauthenticated("the identity is no longer in the registry"))?;
        check_current(identity, at)?;
        match &self.proof {
            Proof::Session { .. } => Ok(()),
            Proof::Ed25519 { key_id, .. } => {
                let key = identity.keys.iter().find(|key| key.key_id == *key_id);
                let key = key.ok_or_else(|| unauthenticated("the key is no longer one of the identity's"))?;
                check_unrevoked(key, at)
            }
        }
    }

    /// Whether the record rests on a key that was revoked as compromised, whenever it was used: its subject is flagged
    /// for reassessment, and history stays as it is (DEC-13).
    #[must_use]
    pub fn flagged_by_compromise(&self, key: &SigningKeyEntry) -> bool {
        let rests_on_key = match &self.proof {
            Proof::Session { .. } => false,
            Proof::Ed25519 { key_id, .. } => *key_id == key.key_id,
        };
        branch!("auth.compromise_flags", key.compromised && key.revoked_at.is_some() && rests_on_key)
    }
}
