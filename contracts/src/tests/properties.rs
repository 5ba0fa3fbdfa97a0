//! What holds of any input.

use super::support::read_canonical;
use crate::canonical::{Canonical, Members, digest_of, read_value, to_bytes};
use crate::contract::INTEGER_MAX;
use crate::envelope::Payload;
use crate::example::{self, Extent};
use crate::payload_type::PayloadType;
use crate::refs::Plain;
use crate::time::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

fn integer() -> impl Strategy<Value = i64> {
    let max = i64::try_from(INTEGER_MAX).expect("it fits");
    prop_oneof![-max..=max, -9i64..=9, Just(max), Just(-max)]
}

/// Any value that a payload can carry.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        integer().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Text that is nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    prop_oneof![value().prop_map(|value| value.to_string()), "[\\[\\]{},:\"0-9a\\\\u.eE+ -]{0,40}", any::<String>(),]
}

/// A payload's bytes with one of them changed, removed or added.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let payload = (0..PayloadType::ALL.len(), any::<bool>()).prop_map(|(index, full)| {
        let extent = if full { Extent::Full } else { Extent::Minimal };
        example::payload(PayloadType::ALL[index], extent).bytes().to_vec()
    });
    (payload, any::<prop::sample::Index>(), any::<u8>(), 0..3).prop_map(|(mut bytes, index, byte, how)| {
        let at = index.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, byte),
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decode_after_encode_is_identity(value in value()) {
        let plain = Plain(value);
        let canonical = Canonical::of(plain.clone()).expect("any value without fractions");
        let again = Canonical::<Plain>::read(canonical.bytes()).expect("its own bytes are read");
        prop_assert_eq!(again.value(), &plain);
        prop_assert_eq!(again.digest(), canonical.digest());
    }

    #[test]
    fn a_third_opinion_writes_the_same_bytes(value in value()) {
        let bytes = to_bytes(&value).expect("bytes");
        prop_assert_eq!(&bytes, &serde_json_canonicalizer::to_vec(&value).expect("bytes"));
        let again = read_canonical(&bytes).expect("canonical bytes are their own canonical form");
        prop_assert_eq!(to_bytes(&again).expect("bytes"), bytes);
    }

    #[test]
    fn members_written_apart_are_the_whole(map in prop::collection::btree_map(any::<String>(), value(), 0..6)) {
        let object: serde_json::Map<String, Value> = map.into_iter().collect();
        let members = Members::of(&object).expect("members");
        prop_assert_eq!(members.whole(), to_bytes(&object).expect("bytes"));
        for key in object.keys() {
            let mut rest = object.clone();
            rest.remove(key);
            prop_assert_eq!(members.without(key), to_bytes(&rest).expect("bytes"));
            let mut altered = object.clone();
            altered.insert(key.clone(), "another".into());
            prop_assert_eq!(members.with(key, "another").expect("bytes"), to_bytes(&altered).expect("bytes"));
        }
    }

    #[test]
    fn the_strict_reader_reads_what_serde_json_reads(text in nearly_json()) {
        if let Ok(strict) = read_value(text.as_bytes()) {
            let lax: Value = serde_json::from_str(&text).expect("what is strict is JSON");
            prop_assert_eq!(&strict, &lax);
            prop_assert_eq!(to_bytes(&strict).expect("bytes"), serde_jcs::to_vec(&lax).expect("bytes"));
        }
    }

    #[test]
    fn any_single_change_changes_the_digest(one in value(), other in value(), key in any::<String>()) {
        prop_assume!(one != other);
        let with = |value: &Value| serde_json::json!({ "unchanged": [1, 2], &key: value });
        prop_assert_ne!(digest_of(&with(&one)).expect("a digest"), digest_of(&with(&other)).expect("a digest"));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = read_value(&bytes);
        prop_assert!(Payload::read(&bytes).is_err());
    }

    #[test]
    fn a_damaged_payload_is_refused(bytes in damaged()) {
        if let Ok(payload) = Payload::read(&bytes) {
            // The change put the same byte in place.
            prop_assert_eq!(payload.bytes().as_ref(), bytes.as_slice());
            let intact = PayloadType::ALL.iter().any(|payload_type| {
                [Extent::Minimal, Extent::Full].iter().any(|extent| example::payload(*payload_type, *extent) == payload)
            });
            prop_assert!(intact, "a damaged payload was read");
        }
    }

    #[test]
    fn arbitrary_text_is_no_timestamp_by_accident(text in any::<String>()) {
        if let Ok(timestamp) = Timestamp::parse(&text) {
            prop_assert_eq!(timestamp.as_str(), text);
        }
    }

    #[test]
    fn instants_come_back_from_their_text(unix_ms in -62_167_219_200_000i64..253_402_300_800_000) {
        let timestamp = Timestamp::from_unix_ms(unix_ms);
        let read = Timestamp::parse(timestamp.as_str()).expect("its own text");
        prop_assert_eq!(read.unix_ms(), unix_ms);
    }
}
