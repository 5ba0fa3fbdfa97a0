//! Branch marks: the tie between a protocol branch, the requirement rows it carries and the tests that show them.
//!
//! A guard that carries a requirement is written `branch!("monitor.grant_revoked", condition)`. In every ordinary
//! build that is `condition` and nothing more. With the feature `prove` (debug builds only) the environment variable
//! `CLOSER_INVERT` names one mark whose condition is inverted, so that `cargo xtask trace --prove` can demand that a
//! test of the row turns red. `CLOSER_HOLD` names one mark and the value that it then always has, `mark=true` or
//! `mark=false`, so that `cargo xtask sim --guards` can take a guard out. A test says what it shows with `shows!`.

/// The value of a marked condition: `condition` itself, inverted only under `prove` for the named mark.
#[cfg(not(feature = "prove"))]
#[inline(always)]
#[must_use]
pub fn holds(_mark: &'static str, condition: bool) -> bool {
    condition
}

/// The value of a marked condition: inverted when `CLOSER_INVERT` names this mark, fixed when `CLOSER_HOLD` does.
#[cfg(feature = "prove")]
#[must_use]
pub fn holds(mark: &'static str, condition: bool) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "proof builds read which branch to invert or fix; release builds cannot enable them"
    )]
    static INVERTED: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("CLOSER_INVERT").ok());
    #[expect(
        clippy::disallowed_methods,
        reason = "proof builds read which branch to invert or fix; release builds cannot enable them"
    )]
    static FIXED: std::sync::LazyLock<Option<(String, bool)>> = std::sync::LazyLock::new(|| {
        let text = std::env::var("CLOSER_HOLD").ok()?;
        let (mark, value) = text.split_once('=')?;
        Some((mark.to_owned(), value == "true"))
    });
    match &*FIXED {
        Some((fixed, value)) if fixed == mark => *value,
        Some(_) | None => condition ^ (INVERTED.as_deref() == Some(mark)),
    }
}

#[cfg(all(feature = "prove", not(debug_assertions)))]
compile_error!("the feature `prove` inverts guards and is refused in optimized builds");

/// Marks a condition that carries requirement rows: `branch!("monitor.grant_revoked", grant.is_revoked())`.
///
/// The mark is `module.what_is_true`, unique in the workspace, and is cited by the tests that show its rows.
#[macro_export]
macro_rules! branch {
    ($mark:literal, $condition:expr) => {
        $crate::mark::holds($mark, $condition)
    };
}

/// States, as the first line of a test, which requirement rows it shows and by which branch.
///
/// `shows!("CP-4.2-04", "CP-0-03"; by "monitor.grant_revoked");` At most three rows. Rows that no branch carries
/// (documents, fields, evaluation) leave `by` out. Read by `cargo xtask trace`.
#[macro_export]
macro_rules! shows {
    ($($row:literal),+ $(,)?) => {};
    ($($row:literal),+ ; by $($mark:literal),+) => {};
}
