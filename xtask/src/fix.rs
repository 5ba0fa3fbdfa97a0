//! The commands that write to the tree: `fix` and `bless`.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, must};
use crate::{source, tidy, trace};

/// Formats, applies machine-made lint fixes, lowers the ratchet and regenerates the clause trace.
///
/// # Errors
/// When a step fails; the steps before it have written.
pub(crate) fn fix(root: &Path) -> Result<()> {
    must(cargo(root).args(["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace", "--all-targets"]))?;
    must(cargo(root).args(["fmt", "--all"]))?;
    tidy::lower(root, &source::load(root)?)?;
    trace::regenerate(root)
}

/// Accepts what the tests now produce as snapshots, golden vectors and schemas. The change is an approval: read it and
/// commit it alone.
///
/// # Errors
/// When a test fails for another reason than a changed snapshot.
pub(crate) fn bless(root: &Path) -> Result<()> {
    let mut command = cargo(root);
    command.env("INSTA_UPDATE", "always").env("CLOSER_BLESS", "1");
    must(command.args(["test", "--workspace", "--no-fail-fast"]))
}
