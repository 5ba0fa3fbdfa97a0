//! One test per field row: absent, null and of a wrong type, starting from valid instances.

use super::support::refused;
use crate::canonical;
use crate::contract::{Check, Contract};
use crate::envelope::{Envelope, Payload};
use crate::example::{self, Example, Extent};
use crate::fault::Fault;
use crate::payload_type::PayloadType;
use crate::refusal::RefusalCode;
use crate::shows;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

mod c10_to_c12;
mod c13_to_c14;
mod c1_to_c5;
mod c6_to_c9;

/// What a field takes besides values of its own type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Nothing.
    Required,
    /// `null`, where the rest of the object allows it.
    Nullable,
    /// Any plain value.
    Plain,
}

/// One test per line: its name, the row it shows, the contract and the field's name on the wire; then `nullable` or
/// `plain` where the field takes more than its own type.
macro_rules! field_rows {
    ($($test:ident $row:literal $contract:ident $field:literal $($takes:ident)?),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                super::field_row::<$contract>($row, $field, super::field_rows!(@takes $($takes)?));
            }
        )+

        pub(super) const ROWS: &[&str] = &[$($row),+];
    };
    (@takes) => { super::Takes::Required };
    (@takes nullable) => { super::Takes::Nullable };
    (@takes plain) => { super::Takes::Plain };
}
use field_rows;

/// A contract that can be read from JSON as it arrives.
trait Readable: Contract + Sized {
    /// The object of an instance.
    fn object(extent: Extent) -> Map<String, Value>;

    /// Reads and checks an object.
    fn read(object: Map<String, Value>) -> Result<(), Fault>;
}

impl<T: Contract + Check + Example + Serialize + DeserializeOwned> Readable for T {
    fn object(extent: Extent) -> Map<String, Value> {
        object_of(&T::example(extent))
    }

    fn read(object: Map<String, Value>) -> Result<(), Fault> {
        canonical::from_value::<T>(Value::Object(object))?.check()
    }
}

/// An envelope is read with the digest of what it then holds, unless that is the very field in question.
impl Readable for Envelope {
    fn object(extent: Extent) -> Map<String, Value> {
        object_of(example::payload(PayloadType::Event, extent).envelope())
    }

    fn read(mut object: Map<String, Value>) -> Result<(), Fault> {
        if object.get("content_digest").is_some_and(Value::is_string) {
            object.remove("content_digest");
            let digest = canonical::digest_of(&object)?;
            object.insert("content_digest".into(), json!(digest));
        }
        Payload::read(&canonical::to_bytes(&object)?).map(drop)
    }
}

fn object_of<T: Serialize>(value: &T) -> Map<String, Value> {
    let Value::Object(object) = canonical::to_value(value).expect("an example has a canonical form") else {
        panic!("a contract is an object")
    };
    object
}

fn field_row<T: Readable>(row: &str, field: &str, takes: Takes) {
    assert!(
        T::FIELDS.iter().any(|known| known.row == row && known.name == field),
        "{} has no field `{field}` of row {row}",
        T::NAME
    );
    for extent in [Extent::Minimal, Extent::Full] {
        T::read(T::object(extent)).expect("an example is valid");
    }

    let mut absent = T::object(Extent::Full);
    absent.remove(field).expect("the field is there");
    // The version is judged before anything else, so its absence has the code of an unknown version (CP-6.1-01).
    let code = match row {
        "CP-C1-F01" => RefusalCode::UnknownVersion,
        _ => RefusalCode::SchemaInvalid,
    };
    refused(T::read(absent), code);

    let null_is_taken = [Extent::Minimal, Extent::Full].map(|extent| {
        let mut object = T::object(extent);
        object.insert(field.into(), Value::Null);
        T::read(object)
    });
    match takes {
        Takes::Required => null_is_taken.into_iter().for_each(|read| refused(read, code)),
        Takes::Nullable => assert!(null_is_taken.iter().any(Result::is_ok), "null is refused: {null_is_taken:?}"),
        Takes::Plain => return,
    }

    let full = T::object(Extent::Full);
    let own = full.get(field).expect("the field is there").clone();
    for wrong in [json!(true), json!(-7), json!("of a wrong type"), json!([[]]), json!({ "of": "a wrong type" })] {
        if std::mem::discriminant(&wrong) == std::mem::discriminant(&own) {
            continue;
        }
        let mut object = full.clone();
        object.insert(field.into(), wrong);
        refused(T::read(object), code);
    }
}

#[test]
fn evaluation_has_three_values() {
    shows!("CP-C11-F19");
    super::support::words(crate::reentry::Evaluation::ALL, &["satisfied", "not_satisfied", "unknown"]);
}

#[test]
fn every_field_row_of_the_catalogue_has_its_test() {
    let tested: std::collections::BTreeSet<&str> = [c1_to_c5::ROWS, c6_to_c9::ROWS, c10_to_c12::ROWS, c13_to_c14::ROWS]
        .concat()
        .into_iter()
        .chain(["CP-C11-F19"])
        .collect();
    let catalogue = include_str!("../../../docs/requirements/closer.md");
    let rows: std::collections::BTreeSet<&str> = catalogue
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .map(|(id, _)| id)
        .filter(|id| id.starts_with("CP-C") && id.contains("-F") && !id.contains(' '))
        .collect();
    assert_eq!(rows.len(), 262);
    assert_eq!(tested, rows);
}
