//! How the provider behaves: well, or badly in one of four ways.

use serde::{Deserialize, Serialize};

/// Set at the start or by `PUT /admin/behaviour`; members left out are as on a good day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Behaviour {
    /// How long each answer takes longer, in milliseconds.
    pub(crate) late_ms: u64,
    /// Whether changes are applied and the connection is then dropped without an answer.
    pub(crate) drop_after_apply: bool,
    /// For how long after a change the old state is still read, in milliseconds.
    pub(crate) stale_ms: u64,
    /// Whether answers are about another account than asked for.
    pub(crate) wrong_account: bool,
}
