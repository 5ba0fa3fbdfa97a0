//! Canonical bytes: what is written, what is read, what neither carries. Spec: DEC-02, RFC 8785.

use super::support::{read_canonical, refused};
use crate::canonical::{self, Canonical, DEPTH_MAX, read_value, to_bytes};
use crate::contract::{Check, INTEGER_MAX};
use crate::refs::Plain;
use crate::refusal::RefusalCode;
use crate::shows;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn the_published_examples_come_out_as_published() {
    shows!("CP-6.1-06");
    // RFC 8785 §3.2.2 and §3.2.4: escapes; §3.2.3: keys by UTF-16 code units.
    let escapes = r#"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
    let expected = r#"{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
    let read = read_value(escapes.as_bytes()).expect("strict JSON");
    assert_eq!(String::from_utf8(to_bytes(&read).expect("bytes")).expect("UTF-8"), expected);

    let keys = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let written = to_bytes(&read_value(keys.as_bytes()).expect("strict JSON")).expect("bytes");
    let written = String::from_utf8(written).expect("UTF-8");
    let order = ["\\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"];
    let places = order.map(|key| written.find(&format!("\"{key}\":")).expect("the key is there"));
    assert!(places.is_sorted(), "{written}");

    // The RFC's numbers are right in the serializer beneath; a payload carries none of them.
    let numbers: Value =
        serde_json::from_str("[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]").expect("JSON");
    let written = serde_jcs::to_string(&numbers).expect("text");
    assert_eq!(written, "[333333333.3333333,1e+30,4.5,0.002,1e-27]");
    refused(to_bytes(&numbers), RefusalCode::SchemaInvalid);
}

#[test]
fn the_reader_takes_i_json_alone() {
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":{"b":[{"c":1,"c":1}]}}"#,
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551616",
        "1.0",
        "1e3",
        "-0.0",
        "1e400",
        "NaN",
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        "[1,]",
        "{}{}",
        "{} x",
        "",
        "\u{feff}{}",
    ] {
        refused(read_value(text.as_bytes()), RefusalCode::SchemaInvalid);
    }
    refused(read_value(b"\"\xff\""), RefusalCode::SchemaInvalid);
    refused(read_value(b"\"\xed\xa0\x80\""), RefusalCode::SchemaInvalid);
    for text in ["9007199254740991", "-9007199254740991", "0", r#""\ud83d\ude00""#, "[]", "{}", "null"] {
        assert!(read_value(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn minus_zero_is_not_canonical() {
    refused(read_canonical(b"-0"), RefusalCode::SchemaInvalid);
}

#[test]
fn nesting_is_bounded_in_both_directions() {
    let text = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read_canonical(text(DEPTH_MAX).as_bytes()).is_ok());
    refused(read_value(text(DEPTH_MAX + 1).as_bytes()), RefusalCode::SchemaInvalid);
    refused(read_value(text(100_000).as_bytes()), RefusalCode::SchemaInvalid);
    let value = |depth: usize| (0..depth).fold(json!(0), |inner, _| json!([inner]));
    assert!(to_bytes(&value(DEPTH_MAX)).is_ok());
    refused(to_bytes(&value(DEPTH_MAX + 1)), RefusalCode::SchemaInvalid);
    let objects = (0..=DEPTH_MAX).fold(json!(0), |inner, _| json!({ "a": inner }));
    refused(to_bytes(&objects), RefusalCode::SchemaInvalid);
}

#[derive(Serialize)]
struct Flattened {
    a: u32,
    #[serde(flatten)]
    rest: BTreeMap<String, u32>,
}

#[test]
fn the_guard_refuses_what_would_be_written_as_something_else() {
    let none = RefusalCode::SchemaInvalid;
    refused(to_bytes(&f64::NAN), none);
    refused(to_bytes(&[f64::INFINITY]), none);
    refused(to_bytes(&Some(f64::NAN)), none);
    refused(to_bytes(&0.1f32), none);
    refused(to_bytes(&1.0f64), none);
    refused(to_bytes(&(INTEGER_MAX + 1)), none);
    refused(to_bytes(&u64::MAX), none);
    refused(to_bytes(&i64::MIN), none);
    refused(to_bytes(&u128::MAX), none);
    refused(to_bytes(&i128::MIN), none);
    refused(to_bytes(&BTreeMap::from([(1u64, 1)])), none);
    let twice = Flattened { a: 1, rest: BTreeMap::from([("a".to_owned(), 2)]) };
    refused(to_bytes(&twice), none);
    refused(canonical::to_value(&twice), none);
    refused(canonical::to_value(&[f64::NAN]), none);
    assert_eq!(to_bytes(&[INTEGER_MAX]).expect("bytes"), b"[9007199254740991]");
    assert_eq!(to_bytes(&BTreeMap::from([('é', ())])).expect("bytes"), "{\"é\":null}".as_bytes());
}

#[test]
fn no_feature_of_the_json_reader_changes_what_a_text_means() {
    assert!(serde_json::from_str::<Value>("1e400").is_err(), "arbitrary_precision is on");
    // `raw_value` and `arbitrary_precision` give these keys a meaning of their own; here they are refused or mere keys.
    for token in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let text = to_bytes(&BTreeMap::from([(token, "1")])).expect("bytes");
        if let Ok(read) = Canonical::<Plain>::read(&text) {
            assert!(read.value().0.is_object(), "{token}");
        }
    }
}

#[test]
fn only_canonical_bytes_are_read() {
    for (text, other) in [
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
        (r#"[1]"#, r#"[ 1]"#),
        (r#"["/"]"#, r#"["\/"]"#),
        (r#"["é"]"#, r#"["\u00e9"]"#),
        (r#"["\u000f"]"#, r#"["\u000F"]"#),
        ("{}", "{}\n"),
    ] {
        assert!(read_canonical(text.as_bytes()).is_ok(), "{text}");
        refused(read_canonical(other.as_bytes()), RefusalCode::SchemaInvalid);
    }
}

#[test]
fn parts_are_hashed_with_their_lengths() {
    let digest = |parts: &[&[u8]]| canonical::hash_parts("domain", parts);
    assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    assert_ne!(digest(&[b"a"]), digest(&[b"a", b""]));
    assert_ne!(digest(&[b"a"]), canonical::hash_parts("another", &[b"a"]));
}

/// An integer of any length is told as one that is too large, never as a fraction.
#[test]
fn an_integer_outside_the_safe_range_is_told_as_one() {
    for text in ["9007199254740992", "-9007199254740992", "18446744073709551616", "-123456789012345678901234567890"] {
        let fault = read_value(text.as_bytes()).unwrap_err();
        assert!(fault.reason.contains("outside the safe range"), "{text}: {fault}");
        let plain = Plain(serde_json::from_str(text).unwrap());
        assert!(plain.check().unwrap_err().reason.contains("2^53 - 1"), "{text}");
        assert!(to_bytes(&plain.0).unwrap_err().reason.contains("outside the safe range"), "{text}");
    }
    for text in ["1.5", "1e3", "-0.1"] {
        assert!(read_value(text.as_bytes()).unwrap_err().reason.contains("fraction"), "{text}");
    }
}
