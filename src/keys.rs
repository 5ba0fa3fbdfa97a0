//! Public keys as people hand them over: 64 hexadecimal digits.

use closer_contracts::auth;
use closer_contracts::id::KeyId;

/// The id of a public key.
///
/// # Errors
/// What is wrong with the text or the key.
pub fn id_of(public_key: &str) -> Result<KeyId, String> {
    let malformed = || "a public key is 64 lowercase hexadecimal digits, as `closer keys new` prints them".to_owned();
    if public_key.len() != 64 {
        return Err(malformed());
    }
    let mut bytes = [0_u8; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let digits = public_key.get(2 * index..2 * index + 2).ok_or_else(malformed)?;
        if digits.bytes().any(|digit| !digit.is_ascii_digit() && !(b'a'..=b'f').contains(&digit)) {
            return Err(malformed());
        }
        *byte = u8::from_str_radix(digits, 16).map_err(|_| malformed())?;
    }
    let key = auth::register_key(&bytes).map_err(|fault| fault.reason.into_owned())?;
    Ok(auth::key_id(&key))
}
