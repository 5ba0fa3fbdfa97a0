//! The tables as Parquet: the same rows as the CSV beside them, with the type that `columns.csv` states. What is empty or
//! unknown there is null here, and never 0.

use super::NotReported;
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::sync::Arc;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
    /// True or false.
    Truth,
}

const TRUTHS: [&str; 10] = [
    "had_item",
    "guessed",
    "wrong_target",
    "unnecessary_probe",
    "usage_told",
    "admitted",
    "valid",
    "gained",
    "coordinates",
    "user_had_it",
];
const REALS: [&str; 3] = ["score_a", "score_b", "difference"];
const WHOLES: [&str; 33] = [
    "repeat",
    "attempt",
    "stage",
    "score_percent",
    "effects",
    "duplicates",
    "unadmitted_effects",
    "unsupported_claims",
    "questions",
    "words_to_read",
    "retained",
    "orphaned",
    "necessity",
    "specificity",
    "evidence",
    "alternatives",
    "consequence",
    "preserved_choice",
    "calls",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cost_micros",
    "wall_ms",
    "process",
    "planned",
    "used",
    "unknown_parts",
    "role_calls",
    "coordination_calls",
    "coordination_input_tokens",
    "coordination_output_tokens",
];

impl Kind {
    /// The kind of a column, by its name; a name means the same in every table.
    pub(super) fn of(column: &str) -> Self {
        match (TRUTHS.contains(&column), REALS.contains(&column), WHOLES.contains(&column)) {
            (true, _, _) => Self::Truth,
            (_, true, _) => Self::Real,
            (_, _, true) => Self::Whole,
            (false, false, false) => Self::Text,
        }
    }

    /// Its name in the dictionary.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "whole number",
            Self::Real => "number",
            Self::Truth => "true or false",
        }
    }

    fn field(self, name: &str) -> Result<Type, ParquetError> {
        let (physical, converted) = match self {
            Self::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Self::Whole => (Physical::INT64, ConvertedType::NONE),
            Self::Real => (Physical::DOUBLE, ConvertedType::NONE),
            Self::Truth => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        field.with_converted_type(converted).build()
    }
}

/// One table; every row has a field for every column.
pub(super) fn table(name: &str, columns: &[&str], rows: &[Vec<String>]) -> Result<Vec<u8>, NotReported> {
    written(name, columns, rows).map_err(|error| NotReported::Unwritable(error.to_string()))
}

fn written(name: &str, columns: &[&str], rows: &[Vec<String>]) -> Result<Vec<u8>, ParquetError> {
    let fields: Result<Vec<Arc<Type>>, ParquetError> =
        columns.iter().map(|column| Ok(Arc::new(Kind::of(column).field(column)?))).collect();
    let schema = Arc::new(Type::group_type_builder(name).with_fields(fields?).build()?);
    // The same rows are the same bytes, whichever version of the library writes them.
    let properties = Arc::new(WriterProperties::builder().set_created_by("closer".to_owned()).build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties)?;
    let mut group = writer.next_row_group()?;
    for (index, column) in columns.iter().enumerate() {
        let values: Vec<&str> = rows.iter().map(|row| row.get(index).map_or("", String::as_str)).collect();
        let Some(mut open) = group.next_column()? else { break };
        macro_rules! write {
            ($type:ty, $read:expr) => {{
                let read: Vec<Option<_>> = values.iter().map($read).collect();
                let levels: Vec<i16> = read.iter().map(|value| i16::from(value.is_some())).collect();
                let known: Vec<_> = read.into_iter().flatten().collect();
                open.typed::<$type>().write_batch(&known, Some(&levels), None)?;
            }};
        }
        match Kind::of(column) {
            Kind::Text => write!(ByteArrayType, |text: &&str| (!text.is_empty()).then(|| ByteArray::from(*text))),
            Kind::Whole => write!(Int64Type, |text: &&str| text.parse::<i64>().ok()),
            Kind::Real => write!(DoubleType, |text: &&str| text.parse::<f64>().ok()),
            Kind::Truth => write!(BoolType, |text: &&str| text.parse::<bool>().ok()),
        }
        open.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn what_is_unknown_is_null_and_rows_come_back_as_they_were() {
        let columns = ["pair", "difference", "input_tokens", "valid"];
        let rows: Vec<Vec<String>> = [["a", "0.5", "12", "true"], ["b", "", "unknown", "false"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec();
        let bytes = table("pairs", &columns, &rows).unwrap();
        assert_eq!(bytes, table("pairs", &columns, &rows).unwrap(), "the same rows are the same bytes");
        let reader = SerializedFileReader::new(parquet_bytes(bytes)).unwrap();
        let read: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].get_string(0).unwrap().as_str(), read[0].get_long(2).unwrap()), ("a", 12));
        assert!((read[0].get_double(1).unwrap() - 0.5).abs() < f64::EPSILON && read[0].get_bool(3).unwrap());
        assert!(read[1].get_double(1).is_err() && read[1].get_long(2).is_err(), "null, and not 0");
    }

    fn parquet_bytes(bytes: Vec<u8>) -> std::fs::File {
        use std::io::{Seek, Write};
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        file
    }
}
