//! The machine's table of processes, as `/proc` shows it.

use std::collections::{BTreeMap, BTreeSet};

/// The variable that marks the descendants of an attempt's process, wherever they went.
pub(crate) const MARK: &str = "CLOSER_ATTEMPT";

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) start_time_ticks: u64,
    /// Whether it has ended and only waits to be collected.
    pub(super) has_ended: bool,
}

/// Reads the row of one process; `None` where there is none.
pub(super) fn row(pid: i32) -> Option<Row> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &bytes)
}

/// The name in brackets may hold anything, brackets and spaces too, so fields are counted from the last bracket.
fn parse(pid: i32, bytes: &[u8]) -> Option<Row> {
    let text = String::from_utf8_lossy(bytes);
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    Some(Row {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        start_time_ticks: fields.get(19)?.parse().ok()?,
        has_ended: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Every process of the machine, by number.
pub(super) fn rows() -> BTreeMap<i32, Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, row(pid)?)))
        .collect()
}

/// The run of the machine.
pub(super) fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Whether a process carries the mark of an attempt in the environment it was started with.
fn is_marked(pid: i32, attempt_id: &str) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mark = format!("{MARK}={attempt_id}");
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// The processes of an attempt: its leader and the leader's group where the leader is still the one on record, all that
/// carry the mark, and all descendants of these.
pub(super) fn family(leader: Option<i32>, attempt_id: &str) -> Vec<Row> {
    let rows = rows();
    let belongs =
        |row: &&Row| leader.is_some_and(|pid| row.pid == pid || row.group == pid) || is_marked(row.pid, attempt_id);
    let mut family: BTreeSet<i32> = rows.values().filter(belongs).map(|row| row.pid).collect();
    loop {
        let children: Vec<i32> = rows
            .values()
            .filter(|row| family.contains(&row.parent) && !family.contains(&row.pid))
            .map(|row| row.pid)
            .collect();
        if children.is_empty() {
            break;
        }
        family.extend(children);
    }
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    rows.into_values().filter(|row| family.contains(&row.pid) && row.pid != own && !row.has_ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = b"42 (a) R 1 (b) S 7 8 9 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        let row = parse(42, stat).unwrap();
        assert_eq!((row.parent, row.group, row.start_time_ticks, row.has_ended), (7, 8, 98_765, false));
        assert_eq!(parse(42, b"42 (cut off"), None);
    }

    #[test]
    fn our_own_row_is_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(row(own).unwrap(), rows()[&own]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_left(bytes in any::<Vec<u8>>()) {
            let parsed = parse(1, &bytes);
            prop_assert!(parsed.is_none_or(|row| row.pid == 1));
        }
    }
}
