//! Ed25519: which keys may be registered, what exactly is signed, and strict verification only.
//!
//! Private keys are passed by reference and never kept; where they live is the business of an adapter.

use super::SigningScope;
use crate::branch;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{ActorId, Key, KeyId};
use crate::item::SigningKeyEntry;
use crate::refusal::RefusalCode;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::Serialize;

/// The domain that separates these signatures from any other use of the same key.
const DOMAIN: &str = "closer.signature.v1";

/// Tests a public key before it may be registered: canonical bytes, not weak, free of torsion.
///
/// Other keys are curve points too, but signatures by them can be made to verify for more than one message, or to
/// verify in one library and not in another.
///
/// # Errors
/// `schema_invalid`.
pub fn register_key(bytes: &[u8; 32]) -> Result<VerifyingKey, Fault> {
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| Fault::schema("the public key is no point of the curve"))?;
    let point = key.to_edwards();
    if branch!("auth.key_not_canonical", point.compress().as_bytes() != bytes) {
        return Err(Fault::schema("the public key's bytes are not canonical"));
    }
    if branch!("auth.key_weak", key.is_weak() || !point.is_torsion_free()) {
        return Err(Fault::schema("the public key is weak"));
    }
    Ok(key)
}

/// A key's id: the digest of its canonical bytes.
#[must_use]
pub fn key_id(key: &VerifyingKey) -> KeyId {
    KeyId::from(Digest::of(key.as_bytes()).to_string())
}

#[derive(Serialize)]
struct SignedMessage<'a> {
    content_digest: Digest,
    domain: &'static str,
    identity: &'a ActorId,
    scope: SigningScope,
}

/// The bytes that a signature covers: the canonical form of domain, content digest, signing scope and identity.
///
/// # Errors
/// `schema_invalid` when they have no canonical form.
pub fn signed_message(content_digest: Digest, scope: SigningScope, identity: &ActorId) -> Result<Vec<u8>, Fault> {
    crate::canonical::to_bytes(&SignedMessage { content_digest, domain: DOMAIN, identity, scope })
}

/// Signs for an identity. The signature is 64 bytes in lowercase hexadecimal.
///
/// # Errors
/// As [`signed_message`].
pub fn sign(key: &SigningKey, content_digest: Digest, scope: SigningScope, identity: &ActorId) -> Result<Key, Fault> {
    let message = signed_message(content_digest, scope, identity)?;
    Ok(Key::from(hex::encode(key.sign(&message).to_bytes())))
}

/// Verifies strictly. There is no other way to verify here: the lax rules accept one signature for many messages.
///
/// # Errors
/// `unauthenticated` for a signature that does not verify; `schema_invalid` for a malformed key or signature.
pub fn verify(key: &SigningKeyEntry, message: &[u8], signature: &Key) -> Result<(), Fault> {
    let key = VerifyingKey::from_bytes(&from_hex(&key.public_key)?)
        .map_err(|_| Fault::schema("the public key is no point of the curve"))?;
    let signature = Signature::from_bytes(&from_hex(signature)?);
    key.verify_strict(message, &signature)
        .map_err(|_| Fault::new(RefusalCode::Unauthenticated, "the signature does not verify"))
}

fn from_hex<const BYTES: usize>(text: &Key) -> Result<[u8; BYTES], Fault> {
    let mut bytes = [0u8; BYTES];
    let lowercase = !text.as_str().bytes().any(|b| b.is_ascii_uppercase());
    match lowercase && hex::decode_to_slice(text.as_str(), &mut bytes).is_ok() {
        true => Ok(bytes),
        false => Err(Fault::schema(format!("{BYTES} bytes in lowercase hexadecimal are needed"))),
    }
}

impl SigningKeyEntry {
    /// An unrevoked entry for a public key, with the id that the key's bytes give it.
    #[must_use]
    pub fn of(key: &VerifyingKey, scope: Vec<SigningScope>, valid: std::ops::Range<crate::time::Timestamp>) -> Self {
        Self {
            key_id: key_id(key),
            public_key: Key::from(hex::encode(key.as_bytes())),
            not_before: valid.start,
            not_after: valid.end,
            signing_scope: scope,
            revoked_at: None,
            compromised: false,
        }
    }

    pub(crate) fn check_key(&self) -> Result<(), Fault> {
        let key = from_hex(&self.public_key)
            .and_then(|bytes| register_key(&bytes))
            .map_err(|fault| fault.within("public_key"))?;
        match key_id(&key) == self.key_id {
            true => Ok(()),
            false => Err(Fault::new(RefusalCode::DigestMismatch, "the key id is not the digest of the key's bytes")
                .within("key_id")),
        }
    }
}
