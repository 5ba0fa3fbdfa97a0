//! A TOML file as JSON values that remember where they stood, so that every error names line and column.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest deployment file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Why there is no deployment at all.
const ABSENT: &str = "is not there; name a deployment's folder, the one that holds this file, with `-C DIR`";

/// What is wrong with a deployment file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub line: usize,
    /// The column, from 1; 0 where the file as a whole is meant.
    pub column: usize,
    /// The field, as a dotted path; empty for the file itself.
    pub field: String,
    /// What is wrong, and what to do where that is not plain.
    pub reason: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(f, ": `{}`", self.field)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Misfit {}

impl Misfit {
    /// Whether there is no deployment file at all.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.reason == ABSENT
    }
}

/// A file that was read, with the place of every value in it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    file: PathBuf,
    text: String,
    places: BTreeMap<String, usize>,
}

impl Source {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// [`Misfit`]: unreadable, too large, not TOML; with line and column where it is not TOML.
    pub(super) fn read(file: &Path) -> Result<(Self, Map<String, Value>), Misfit> {
        let whole = |reason: String| Misfit { file: file.to_owned(), line: 0, column: 0, field: String::new(), reason };
        let metadata = std::fs::metadata(file);
        let absent = [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory];
        if metadata.as_ref().is_err_and(|error| absent.contains(&error.kind())) {
            return Err(whole(ABSENT.to_owned()));
        }
        let bytes = metadata.map_err(|error| whole(format!("cannot be read: {error}")))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(whole(format!("has {bytes} bytes, at most {FILE_BYTES_MAX} are read")));
        }
        let bytes = std::fs::read(file).map_err(|error| whole(format!("cannot be read: {error}")))?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Err(Self::no_text(file, &error)),
        };
        let mut source = Self { file: file.to_owned(), text, places: BTreeMap::new() };
        let text = source.text.clone();
        let table = DeTable::parse(&text).map_err(|error| {
            let (line, column) = source.line_column(error.span().map_or(0, |span| span.start));
            Misfit { file: file.to_owned(), line, column, field: String::new(), reason: error.message().to_owned() }
        })?;
        let value = source.table(String::new(), table.get_ref())?;
        Ok((source, value))
    }

    /// Bytes that are no text: told by line and column, and by the field in which they stand where the rest can be read.
    fn no_text(file: &Path, error: &FromUtf8Error) -> Misfit {
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let mut source = Self { file: file.to_owned(), text: text.clone(), places: BTreeMap::new() };
        let (line, column) = source.line_column(at);
        if let Ok(table) = DeTable::parse(&text)
            && let Err(misfit) = source.table(String::new(), table.get_ref())
        {
            tracing::debug!(%misfit, "the rest of the file does not fit either");
        }
        let before = source.places.iter().filter(|(_, place)| **place <= at);
        let field =
            before.max_by_key(|(path, place)| (**place, path.len())).map_or_else(String::new, |(path, _)| path.clone());
        let reason = "this is no UTF-8 text; save the file as UTF-8".to_owned();
        Misfit { file: file.to_owned(), line, column, field, reason }
    }

    fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        (before.matches('\n').count() + 1, column)
    }

    /// The misfit of a field: placed at the field, or at the nearest enclosing one that stands in the file.
    #[must_use]
    pub(super) fn misfit(&self, field: impl Into<String>, reason: impl Into<String>) -> Misfit {
        let field = field.into();
        let mut path = field.as_str();
        let offset = loop {
            match self.places.get(path) {
                Some(offset) => break Some(*offset),
                None => match path.rsplit_once('.') {
                    Some((outer, _)) => path = outer,
                    None => break None,
                },
            }
        };
        let (line, column) = offset.map_or((0, 0), |offset| self.line_column(offset));
        Misfit { file: self.file.clone(), line, column, field, reason: reason.into() }
    }

    /// Reads a value of this file as a type.
    ///
    /// # Errors
    /// [`Misfit`] at the field that does not fit.
    pub(super) fn typed<T: DeserializeOwned>(&self, field: &str, value: Value) -> Result<T, Misfit> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let inner = error.path().to_string();
            let inner = inner.replace('[', ".").replace(']', "");
            let path = match inner.trim_start_matches('.') {
                "" => field.to_owned(),
                inner => format!("{field}.{inner}"),
            };
            let reason = error.into_inner().to_string();
            self.misfit(self.unknown(&path, &reason).unwrap_or(path), reason)
        })
    }

    /// The place of a key that nothing is read from, where only what encloses it was told.
    fn unknown(&self, path: &str, reason: &str) -> Option<String> {
        let name = reason.strip_prefix("unknown field `")?.split('`').next()?;
        let (within, end) = (format!("{path}."), format!(".{name}"));
        let mut found = self.places.keys().filter(|place| place.starts_with(&within) && place.ends_with(&end));
        found.next().filter(|_| !path.ends_with(&end)).cloned()
    }

    fn note(&mut self, path: &str, span: Range<usize>) {
        self.places.insert(path.to_owned(), span.start);
    }

    fn table(&mut self, path: String, table: &DeTable<'_>) -> Result<Map<String, Value>, Misfit> {
        let mut members = Map::new();
        for (key, value) in table {
            let path = join(&path, key.get_ref());
            self.note(&path, key.span());
            let value = self.value(path, value)?;
            members.insert(key.get_ref().to_string(), value);
        }
        Ok(members)
    }

    fn value(&mut self, path: String, value: &Spanned<DeValue<'_>>) -> Result<Value, Misfit> {
        Ok(match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(boolean) => Value::Bool(*boolean),
            DeValue::Datetime(instant) => Value::String(instant.to_string()),
            DeValue::Integer(integer) => {
                let parsed = i64::from_str_radix(integer.as_str(), integer.radix());
                Value::from(parsed.map_err(|_| {
                    self.misfit(&path, "this integer is outside the range of 64 bits; write a smaller one")
                })?)
            }
            DeValue::Float(_) => {
                return Err(self.misfit(&path, "fractions are not used here; write an integer in a smaller unit"));
            }
            DeValue::Array(items) => {
                let mut values = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let path = join(&path, &index.to_string());
                    self.note(&path, item.span());
                    values.push(self.value(path, item)?);
                }
                Value::Array(values)
            }
            DeValue::Table(table) => Value::Object(self.table(path, table)?),
        })
    }
}

fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}
