//! The requirement rows of `docs/requirements/*.md`.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Catalogues by file, their row prefix, and whether their rows are built now.
const CATALOGUES: [(&str, &str, bool); 4] = [
    ("closer.md", "CP", true),
    ("delegation.md", "RW", false),
    ("continuity.md", "WC", false),
    ("peer.md", "PE", false),
];

/// Sections whose rows are due in the current build; every field row of C1 to C14 is due besides.
const DUE_SECTIONS: [&str; 12] =
    ["CP-4.2", "CP-5", "CP-6.1", "CP-6.2", "CP-6.4", "CP-C1", "CP-C7", "CP-C9", "CP-C10", "CP-C15", "CP-B", "CP-INV"];

/// Invariants of section 5 that belong to a later build.
const NOT_DUE: [&str; 3] = ["CP-INV-05", "CP-INV-09", "CP-INV-10"];

/// What carries a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A branch of the core.
    Behaviour,
    /// A field of a payload contract.
    Field,
    /// Documentation or a report.
    Document,
    /// The evaluation harness.
    Evaluation,
}

impl Kind {
    /// The word the generated table uses.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Behaviour => "behaviour",
            Self::Field => "field",
            Self::Document => "document",
            Self::Evaluation => "evaluation",
        }
    }
}

/// One requirement row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) section: String,
    pub(crate) kind: Kind,
    pub(crate) is_withdrawn: bool,
}

impl Row {
    /// Whether the current build has to show the row.
    pub(crate) fn is_due(&self) -> bool {
        if self.is_withdrawn || NOT_DUE.contains(&self.id.as_str()) {
            return false;
        }
        let group = self.id.rsplit_once('-').map_or("", |(group, _)| group);
        self.kind == Kind::Field || DUE_SECTIONS.contains(&group)
    }
}

/// One catalogue file.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) file: &'static str,
    pub(crate) is_built_now: bool,
    pub(crate) rows: Vec<Row>,
}

/// Reads every catalogue.
///
/// # Errors
/// When a file cannot be read, holds no rows, or repeats an id.
pub(crate) fn read(root: &Path) -> Result<Vec<Catalogue>> {
    CATALOGUES
        .iter()
        .map(|&(file, prefix, is_built_now)| {
            let path = root.join("docs/requirements").join(file);
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read docs/requirements/{file}"))?;
            let rows = parse(&text, prefix);
            if rows.is_empty() {
                bail!("docs/requirements/{file} holds no `{prefix}-` rows");
            }
            let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
            ids.sort_unstable();
            if let Some([id, _]) = ids.array_windows().find(|[a, b]| a == b) {
                bail!("docs/requirements/{file} holds row {id} twice");
            }
            Ok(Catalogue { file, is_built_now, rows })
        })
        .collect()
}

/// The rows of one catalogue text: table lines whose first cell is an id with `prefix`.
pub(crate) fn parse(text: &str, prefix: &str) -> Vec<Row> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if line.starts_with('#') {
            section = line.trim_start_matches('#').trim().to_owned();
        }
        let Some((id, rest)) = line.strip_prefix("| ").and_then(|line| line.split_once(" |")) else {
            continue;
        };
        let number = id.strip_prefix(prefix).and_then(|id| id.strip_prefix('-'));
        if !number.is_some_and(|number| number.ends_with(|last: char| last.is_ascii_digit()) && !number.contains(' ')) {
            continue;
        }
        rows.push(Row {
            id: id.to_owned(),
            section: section.clone(),
            kind: kind(id, rest),
            is_withdrawn: rest.trim_start().to_ascii_lowercase().starts_with("withdrawn"),
        });
    }
    rows
}

fn kind(id: &str, rest: &str) -> Kind {
    let last = id.rsplit('-').next().unwrap_or_default();
    if last.starts_with('F') {
        Kind::Field
    } else if rest.contains("`[doc]`") {
        Kind::Document
    } else if rest.contains("`[eval]`") {
        Kind::Evaluation
    } else {
        Kind::Behaviour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
## 4.2 Moments (CP-4.2)
| id | requirement | how |
|---|---|---|
| CP-4.2-01 | Judged before. | x |
| CP-4.2-02 | `[doc]` Stated. | x |
## 12 Limits
| CP-12-20 | `[eval]` First. | x |
| CP-12-21 | Withdrawn: was twice. | x |
### C1. Envelope
| CP-C1-F01 | `protocol_version` | no |
| C1–C14 fields | CP-C1-F01 … CP-C14-F70 |
| DEC-01 | Codes | x |
Text about CP-4.2-09.
";

    #[test]
    fn rows_are_read_from_tables_only_with_section_and_kind() {
        let rows = parse(SAMPLE, "CP");
        let shown: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.kind, row.is_due())).collect();
        assert_eq!(
            shown,
            [
                ("CP-4.2-01", Kind::Behaviour, true),
                ("CP-4.2-02", Kind::Document, true),
                ("CP-12-20", Kind::Evaluation, false),
                ("CP-12-21", Kind::Behaviour, false),
                ("CP-C1-F01", Kind::Field, true),
            ]
        );
        assert!(rows.get(3).expect("fourth").is_withdrawn);
        assert_eq!(rows.get(4).expect("fifth").section, "C1. Envelope");
    }

    #[test]
    fn the_committed_catalogue_has_the_rows_it_says_it_has() {
        let catalogues = read(&crate::workspace_root()).expect("catalogues");
        let closer = catalogues.first().expect("closer.md");
        let fields = closer.rows.iter().filter(|row| row.kind == Kind::Field).count();
        // The catalogue's own preface states these sizes.
        assert_eq!((closer.rows.len() - fields, fields), (714, 262));
    }
}
