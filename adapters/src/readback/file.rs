//! The state of one file.

use super::Seen;
use crate::confine::{Found, Root};
use crate::operations::{OPEN_SUFFIX, aside_prefix, reason};
use closer_contracts::refs::{PLAIN_BYTES_MAX, Target};
use closer_contracts::time::Timestamp;
use closer_contracts::work::TargetVersion;
use rustix::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Contract `file`: looks at one file beneath a root folder.
///
/// Fields: `exists`, and where it does `digest`, `bytes`, `modified_at`, and `content` where it is UTF-8 text of at most
/// `content_bytes_max` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// The folder that targets lie beneath, as an absolute path. The target's address is relative to it.
    pub root: String,
    /// Whose files these are.
    pub account: String,
    /// How much text is shown, in bytes; at most 65,536. Default 4,096.
    #[serde(default = "content_bytes_max")]
    pub content_bytes_max: u64,
    /// The largest file that is looked at, in bytes. Default 16 MiB.
    #[serde(default = "bytes_max")]
    pub bytes_max: u64,
}

const fn content_bytes_max() -> u64 {
    4_096
}

const fn bytes_max() -> u64 {
    16 << 20
}

pub(super) fn look(contract: &FileState, target: &Target) -> Result<Seen, String> {
    let place = Root::open(&contract.root)?.place(target.address.as_str())?;
    let keep = contract.content_bytes_max.min(PLAIN_BYTES_MAX as u64);
    let mut fields = Map::new();
    match place.read(&place.name, keep, contract.bytes_max)? {
        Found::Absent => {
            fields.insert("exists".to_owned(), Value::Bool(false));
        }
        Found::File(content) => {
            let modified_ms = content
                .stat
                .st_mtime
                .saturating_mul(1_000)
                .saturating_add(i64::try_from(content.stat.st_mtime_nsec / 1_000_000).unwrap_or_default());
            fields.insert("exists".to_owned(), Value::Bool(true));
            fields.insert("digest".to_owned(), json!(content.digest));
            fields.insert("bytes".to_owned(), json!(content.count));
            fields.insert("modified_at".to_owned(), json!(Timestamp::from_unix_ms(modified_ms)));
            if let Some(text) = content.bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                fields.insert("content".to_owned(), Value::String(text));
            }
        }
    }
    // A write that was cut off between exchange and check left the file that was there before under a private name.
    let open = Dir::read_from(&place.folder)
        .map_err(|errno| format!("the folder of the target cannot be listed: {errno}"))?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().map(str::to_owned).ok())
        .filter(|name| name.starts_with(&aside_prefix(&place.name)) && name.ends_with(OPEN_SUFFIX));
    let mut open: Vec<String> = open.collect();
    open.sort();
    Ok(Seen {
        account: contract.account.as_str().into(),
        // A file states no version; its digest and time are not one (§6.3).
        version: TargetVersion::Unknown,
        fields,
        limitations: open
            .into_iter()
            .map(|name| reason(format!("a write is under way or was cut off; see `{name}` beside the target")))
            .collect(),
    })
}
