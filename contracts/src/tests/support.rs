//! What the tests share: saying what is expected of a reading, and files that another language can check.

use crate::canonical::{self, Canonical};
use crate::contract::Check;
use crate::envelope::Payload;
use crate::example::{Example, Extent};
use crate::fault::Fault;
use crate::refusal::RefusalCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::{Debug, Display};
use std::path::Path;

/// Demands a refusal with this code.
#[track_caller]
pub(super) fn refused<T: Debug>(result: Result<T, Fault>, code: RefusalCode) {
    let fault = result.expect_err("this is refused");
    assert_eq!(fault.code, code, "{fault}");
}

/// Demands that instances of every extent are valid and come back from their bytes as they were.
#[track_caller]
pub(super) fn round_trips<T>()
where
    T: Example + Check + Serialize + DeserializeOwned + PartialEq + Debug + Clone,
{
    for extent in Extent::ALL {
        let value = T::example(extent);
        value.check().expect("an example is valid");
        let canonical = Canonical::of(value.clone()).expect("an example has canonical bytes");
        let again = Canonical::<T>::read(canonical.bytes()).expect("its own bytes are read");
        assert_eq!(again, canonical);
        assert_eq!(*again.value(), value);
    }
}

/// The object with one field set to another value.
#[track_caller]
pub(super) fn altered(mut object: Value, field: &str, value: Value) -> Value {
    object.as_object_mut().expect("an object").insert(field.to_owned(), value);
    object
}

/// The bytes of an envelope with the content digest of what it now holds.
#[track_caller]
pub(super) fn resealed(mut envelope: Value) -> Vec<u8> {
    let object = envelope.as_object_mut().expect("an object");
    object.remove("content_digest");
    let digest = canonical::digest_of(object).expect("a digest");
    object.insert("content_digest".into(), Value::String(digest.to_string()));
    canonical::to_bytes(&envelope).expect("canonical bytes")
}

/// Demands that bytes are refused as a payload, by whichever check of the envelope comes first.
#[track_caller]
pub(super) fn reject_whole(bytes: &[u8]) {
    let fault = Payload::read(bytes).expect_err("this is no payload");
    assert!(matches!(fault.code, RefusalCode::UnknownVersion | RefusalCode::SchemaInvalid), "{fault}");
}

/// Reads any value from its canonical bytes.
pub(super) fn read_canonical(bytes: &[u8]) -> Result<Value, Fault> {
    Canonical::<Value>::read(bytes).map(Canonical::into_value)
}

/// Reads and checks a contract from JSON.
pub(super) fn read<T: Check + Serialize + DeserializeOwned>(value: Value) -> Result<T, Fault> {
    let typed: T = canonical::from_value(value)?;
    typed.check()?;
    Ok(typed)
}

/// An instance as JSON.
#[track_caller]
pub(super) fn json_of<T: Serialize>(value: &T) -> Value {
    canonical::to_value(value).expect("an example has a canonical form")
}

/// Demands that a closed set is exactly these words, reads and writes each, and refuses any other.
#[track_caller]
pub(super) fn words<T: Copy + Display + Debug + PartialEq + Serialize + DeserializeOwned>(
    all: &[T],
    expected: &[&str],
) {
    assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    for word in all {
        let text = serde_json::to_value(word).expect("a word is written");
        assert_eq!(text, Value::String(word.to_string()));
        assert_eq!(crate::canonical::from_value::<T>(text).expect("its own word is read"), *word);
    }
    for wrong in ["", "none_of_these", &expected[0].to_ascii_uppercase().repeat(2)] {
        refused(crate::canonical::from_value::<T>(wrong.into()), RefusalCode::SchemaInvalid);
    }
}

/// Compares text with a committed file below `contracts/`; with `CLOSER_BLESS=1` writes it instead.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "committed files are read, and written on request")]
pub(super) fn committed(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var("CLOSER_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, text).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{file} is not current: accept the change with CLOSER_BLESS=1");
}

/// The names of the files in a folder below `contracts/`, sorted.
#[expect(clippy::disallowed_methods, reason = "committed files are listed")]
pub(super) fn names_in(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(path).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name")).collect();
    names.sort();
    names
}

/// The text of a file below `contracts/`.
#[expect(clippy::disallowed_methods, reason = "committed files are read")]
pub(super) fn text_of(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"))
}
