//! Who sent it: mechanisms, sessions, keys. Spec: §6.1, DEC-12, DEC-13.

use super::support::refused;
use crate::auth::{
    Accepted, Authenticated, Credential, Session, Sessions, SigningScope, Subject, authenticate, key_id, register_key,
    sign,
};
use crate::contract::Check;
use crate::envelope::Payload;
use crate::example::{self, Example, Extent};
use crate::fault::Fault;
use crate::id::{ActorId, Key};
use crate::item::{Identity, Mechanism, SigningKeyEntry, Standing};
use crate::payload_type::PayloadType;
use crate::profile::{Profile, SigningPolicy};
use crate::refs::ProducerRole;
use crate::refusal::RefusalCode;
use crate::shows;
use crate::time::Timestamp;
use ed25519_dalek::SigningKey;

const BOTH: &[Mechanism] = &[Mechanism::Session, Mechanism::Ed25519];

/// A registered actor in every role, with one key and one session.
struct World {
    identity: Identity,
    key: SigningKey,
    sessions: Sessions,
    session: Session,
}

fn at(hour: u32) -> Timestamp {
    Timestamp::parse(&format!("2026-06-01T{hour:02}:00:00Z")).expect("a timestamp")
}

impl World {
    /// The key is valid from 08:00 to 18:00.
    fn new() -> Self {
        let key = SigningKey::from_bytes(&[3; 32]);
        let identity = Identity {
            actor_id: ActorId::example(Extent::Full),
            roles: ProducerRole::ALL.to_vec(),
            mechanisms: BOTH.to_vec(),
            keys: vec![SigningKeyEntry::of(&key.verifying_key(), SigningScope::ALL.to_vec(), at(8)..at(18))],
            revoked_at: None,
            standing: Standing::Current,
            ..Identity::example(Extent::Full)
        };
        let mut sessions = Sessions::default();
        let session = sessions.issue("session-1".into(), &identity, &at(9)).expect("a session");
        Self { identity, key, sessions, session }
    }

    fn judge(
        &self,
        mechanisms: &[Mechanism],
        subject: &Subject,
        shown: Credential<'_>,
        hour: u32,
    ) -> Result<Authenticated, Fault> {
        let accepted = Accepted { mechanisms, sessions: &self.sessions };
        let authenticated = authenticate(accepted, Some(&self.identity), subject, shown, &at(hour))?;
        assert_eq!(authenticated.identity(), &subject.producer);
        assert_eq!(authenticated.record().content_digest, subject.content_digest);
        assert_eq!(authenticated.record().received_at.as_str(), at(hour).as_str());
        Ok(authenticated)
    }

    /// As signed by the world's key.
    fn signed(&self, subject: &Subject, hour: u32) -> Result<Authenticated, Fault> {
        let signature = self.signature(subject);
        let key_id = key_id(&self.key.verifying_key());
        let shown = Credential::Ed25519 { key_id: &key_id, signature: &signature };
        self.judge(BOTH, subject, shown, hour)
    }

    fn in_session(&self, subject: &Subject) -> Result<Authenticated, Fault> {
        self.judge(BOTH, subject, Credential::Session(&self.session), 12)
    }

    fn signature(&self, subject: &Subject) -> Key {
        sign(&self.key, subject.content_digest, subject.scope, &subject.producer).expect("a signature")
    }
}

fn payload(payload_type: PayloadType) -> Payload {
    example::payload(payload_type, Extent::Full)
}

fn event() -> Subject {
    Subject::payload(&payload(PayloadType::Event))
}

#[test]
fn a_producer_has_an_actor_and_a_role_that_is_its_own() {
    shows!("CP-6.1-03"; by "auth.role_unassigned");
    for field in ["actor_id", "role"] {
        let mut object = super::support::json_of(payload(PayloadType::Event).envelope());
        object["producer"].as_object_mut().expect("an object").remove(field);
        refused(Payload::read(&super::support::resealed(object)), RefusalCode::SchemaInvalid);
    }
    let mut world = World::new();
    assert!(world.in_session(&event()).is_ok());
    world.identity.roles = vec![ProducerRole::Participant];
    refused(world.in_session(&event()), RefusalCode::Unauthenticated);
}

#[test]
fn a_mechanism_works_where_profile_and_identity_declare_it() {
    shows!("CP-6.1-07", "CP-6.1-10"; by "auth.mechanism_undeclared");
    let mut world = World::new();
    let signature = world.signature(&event());
    let key_id = key_id(&world.key.verifying_key());
    let session = Credential::Session(&world.session);
    let signed = Credential::Ed25519 { key_id: &key_id, signature: &signature };
    assert!(world.judge(&[Mechanism::Session], &event(), session, 12).is_ok());
    assert!(world.judge(&[Mechanism::Ed25519], &event(), signed, 12).is_ok());
    refused(world.judge(&[Mechanism::Ed25519], &event(), session, 12), RefusalCode::Unauthenticated);
    refused(world.judge(&[Mechanism::Session], &event(), signed, 12), RefusalCode::Unauthenticated);
    refused(world.judge(&[], &event(), session, 12), RefusalCode::Unauthenticated);
    world.identity.mechanisms = vec![Mechanism::Ed25519];
    refused(world.in_session(&event()), RefusalCode::Unauthenticated);
}

#[test]
fn a_session_speaks_for_its_own_identity_alone() {
    shows!("CP-6.1-08"; by "auth.session_of_another");
    let mut world = World::new();
    let other = Identity { actor_id: "another".into(), ..world.identity.clone() };
    let other_session = world.sessions.issue("session-2".into(), &other, &at(9)).expect("a session");
    assert!(world.in_session(&event()).is_ok());
    let borrowed = world.judge(BOTH, &event(), Credential::Session(&other_session), 12);
    refused(borrowed, RefusalCode::Unauthenticated);
    refused(world.judge(BOTH, &event(), Credential::None, 12), RefusalCode::Unauthenticated);
}

#[test]
fn a_session_cannot_be_made_up_or_outlive_its_end() {
    shows!("CP-6.1-08"; by "auth.session_not_issued_here");
    let mut world = World::new();
    assert!(world.in_session(&event()).is_ok());
    let forged = Sessions::default().issue("session-1".into(), &world.identity, &at(9)).expect("a session");
    let shown = world.judge(BOTH, &event(), Credential::Session(&forged), 12);
    refused(shown, RefusalCode::Unauthenticated);
    world.sessions.end(forged);
    assert!(world.in_session(&event()).is_ok(), "a forged handle ends nothing");
    refused(world.sessions.issue("session-1".into(), &world.identity, &at(9)), RefusalCode::KeyConflict);
    let World { identity, mut sessions, session, .. } = world;
    let id = session.id().clone();
    sessions.end(session);
    let again = sessions.issue(id, &identity, &at(10)).expect("the id is free again");
    assert!(sessions.hold(&again));
}

#[test]
fn a_digest_without_a_signature_proves_nothing() {
    shows!("CP-6.1-09"; by "auth.signature_invalid");
    let world = World::new();
    assert!(world.signed(&event(), 12).is_ok());
    refused(world.judge(BOTH, &event(), Credential::None, 12), RefusalCode::Unauthenticated);
    let digest = hex::encode(event().content_digest.raw());
    let key_id = key_id(&world.key.verifying_key());
    for signature in [digest.repeat(2), "00".repeat(64), digest, "no hexadecimal".into(), String::new()] {
        let shown = Credential::Ed25519 { key_id: &key_id, signature: &Key::from(signature) };
        refused(world.judge(BOTH, &event(), shown, 12), RefusalCode::Unauthenticated);
    }
}

#[test]
fn every_payload_type_is_authenticated() {
    shows!("CP-C1-05"; by "auth.signature_invalid");
    let world = World::new();
    for payload_type in PayloadType::ALL {
        let subject = Subject::payload(&payload(*payload_type));
        assert!(world.signed(&subject, 12).is_ok());
        refused(world.judge(BOTH, &subject, Credential::None, 12), RefusalCode::Unauthenticated);
        // The signature covers content, type and identity: it fits nothing else.
        let signature = world.signature(&subject);
        let key_id = key_id(&world.key.verifying_key());
        let shown = Credential::Ed25519 { key_id: &key_id, signature: &signature };
        let of_another_type = Subject { scope: SigningScope::Profile, ..subject.clone() };
        let of_other_content = Subject { content_digest: crate::Digest::of(b"other"), ..subject };
        refused(world.judge(BOTH, &of_another_type, shown, 12), RefusalCode::Unauthenticated);
        refused(world.judge(BOTH, &of_other_content, shown, 12), RefusalCode::Unauthenticated);
    }
}

#[test]
fn a_name_without_a_binding_is_nobody() {
    shows!("CP-B-07"; by "auth.identity_is_the_claimed");
    let world = World::new();
    assert!(world.signed(&event(), 12).is_ok());
    let claimed = Subject { producer: "another".into(), ..event() };
    refused(world.signed(&claimed, 12), RefusalCode::Unauthenticated);
    let accepted = Accepted { mechanisms: BOTH, sessions: &world.sessions };
    let unknown = authenticate(accepted, None, &event(), Credential::Session(&world.session), &at(12));
    refused(unknown, RefusalCode::Unauthenticated);
}

#[test]
fn an_identity_that_is_not_current_is_nobody() {
    shows!("CP-B-07"; by "auth.identity_not_current");
    let mut world = World::new();
    assert!(world.in_session(&event()).is_ok());
    world.identity.revoked_at = Some(at(13));
    let record = world.in_session(&event()).expect("not yet revoked").record().clone();
    assert!(record.check_again(Some(&world.identity), &at(12)).is_ok());
    refused(record.check_again(Some(&world.identity), &at(13)), RefusalCode::Unauthenticated);
    refused(record.check_again(None, &at(12)), RefusalCode::Unauthenticated);
    world.identity.revoked_at = Some(at(12));
    refused(world.in_session(&event()), RefusalCode::Unauthenticated);
    world.identity.revoked_at = None;
    world.identity.standing = Standing::Suspended;
    refused(world.in_session(&event()), RefusalCode::Unauthenticated);
}

#[test]
fn a_deployment_that_signs_states_its_policy() {
    shows!("CP-6.1-12"; by "profile.signs_without_policy");
    let complete = Profile { mechanisms: BOTH.to_vec(), ..Profile::example(Extent::Full) };
    assert!(complete.check_complete().is_ok());
    let policy = complete.signing_policy.clone();
    for incomplete in [
        SigningPolicy { rotation: None, ..policy.clone() },
        SigningPolicy { revocation: None, ..policy.clone() },
        SigningPolicy { scope: None, ..policy },
        SigningPolicy::default(),
    ] {
        let mut profile = complete.clone();
        profile.signing_policy = incomplete;
        refused(profile.check_complete(), RefusalCode::ProfileIncomplete);
        profile.mechanisms = vec![Mechanism::Session];
        assert!(profile.check_complete().is_ok());
    }
}

#[test]
fn a_rotated_key_signs_no_more() {
    shows!("CP-6.1-13"; by "auth.key_out_of_time");
    let world = World::new();
    for (hour, valid) in [(7, false), (8, true), (17, true), (18, false), (19, false)] {
        match valid {
            true => assert!(world.signed(&event(), hour).is_ok()),
            false => refused(world.signed(&event(), hour), RefusalCode::Unauthenticated),
        }
    }
    // What it signed in its time stays good.
    let record = world.signed(&event(), 17).expect("in time").record().clone();
    assert!(record.check_again(Some(&world.identity), &at(19)).is_ok());
}

#[test]
fn a_revoked_key_signs_no_more() {
    shows!("CP-6.1-13"; by "auth.key_revoked");
    let mut world = World::new();
    world.identity.keys[0].revoked_at = Some(at(12));
    let record = world.signed(&event(), 11).expect("not yet revoked").record().clone();
    refused(world.signed(&event(), 12), RefusalCode::Unauthenticated);
    assert!(record.check_again(Some(&world.identity), &at(11)).is_ok());
    refused(record.check_again(Some(&world.identity), &at(12)), RefusalCode::Unauthenticated);
    world.identity.keys.clear();
    refused(world.signed(&event(), 11), RefusalCode::Unauthenticated);
    refused(record.check_again(Some(&world.identity), &at(11)), RefusalCode::Unauthenticated);
}

#[test]
fn a_key_signs_within_its_scope_alone() {
    shows!("CP-6.1-13"; by "auth.key_out_of_scope");
    let mut world = World::new();
    world.identity.keys[0].signing_scope = vec![SigningScope::Event];
    assert!(world.signed(&event(), 12).is_ok());
    let delta = Subject::payload(&payload(PayloadType::Delta));
    refused(world.signed(&delta, 12), RefusalCode::Unauthenticated);
}

#[test]
fn a_compromised_key_flags_all_that_rests_on_it() {
    shows!("CP-6.1-13"; by "auth.compromise_flags");
    let mut world = World::new();
    let signed = world.signed(&event(), 9).expect("signed").record().clone();
    let in_session = world.in_session(&event()).expect("in session").record().clone();
    let revoked = SigningKeyEntry { revoked_at: Some(at(12)), ..world.identity.keys[0].clone() };
    assert!(!signed.flagged_by_compromise(&revoked), "retired, not compromised");
    world.identity.keys[0] = SigningKeyEntry { compromised: true, ..revoked };
    assert!(signed.flagged_by_compromise(&world.identity.keys[0]), "even from before the revocation");
    assert!(!in_session.flagged_by_compromise(&world.identity.keys[0]));
    let other = SigningKeyEntry { key_id: "another".into(), ..world.identity.keys[0].clone() };
    assert!(!signed.flagged_by_compromise(&other));
}

#[test]
fn weak_and_non_canonical_keys_are_not_registered() {
    shows!("CP-6.1-12"; by "auth.key_weak", "auth.key_not_canonical");
    let good = example::signing_key().verifying_key().to_bytes();
    assert!(register_key(&good).is_ok());
    let hex = |text: &str| <[u8; 32]>::try_from(hex::decode(text).expect("hexadecimal")).expect("32 bytes");
    // The neutral element, a point of order eight, and a point of the full group that is not free of torsion.
    let identity = hex("0100000000000000000000000000000000000000000000000000000000000000");
    let order_eight = hex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
    // y = p + 1 stands for the same point as y = 1; y = p + 3 is outside the range too and is a point of large order.
    let beyond = hex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    let beyond_large = hex("f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    for key in [identity, order_eight, mixed_order(&good), beyond, beyond_large] {
        refused(register_key(&key), RefusalCode::SchemaInvalid);
    }
}

/// The first point near a good one that is neither of prime order nor of small order.
fn mixed_order(good: &[u8; 32]) -> [u8; 32] {
    let near = (0..=u8::MAX).map(|byte| {
        let mut bytes = *good;
        bytes[0] = byte;
        bytes
    });
    near.filter_map(|bytes| ed25519_dalek::VerifyingKey::from_bytes(&bytes).ok())
        .find(|key| !key.is_weak() && !key.to_edwards().is_torsion_free())
        .expect("seven of eight points are of mixed order")
        .to_bytes()
}

#[test]
fn a_key_entry_is_named_by_its_bytes() {
    shows!("CP-6.1-12");
    let entry = SigningKeyEntry::example(Extent::Full);
    assert!(entry.check().is_ok());
    let renamed = SigningKeyEntry { key_id: "another".into(), ..entry.clone() };
    refused(renamed.check(), RefusalCode::DigestMismatch);
    let upper = SigningKeyEntry { public_key: entry.public_key.as_str().to_ascii_uppercase().into(), ..entry };
    refused(upper.check(), RefusalCode::SchemaInvalid);
}
