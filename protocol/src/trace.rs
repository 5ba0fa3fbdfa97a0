//! The trace checker (C15): walks citations, never timestamps. The seam that `commit` calls is below; being written.

use crate::view::{OnRecord, View};
use closer_contracts::adjudication::Adjudication;
use closer_contracts::delta::Delta;

/// What is missing in a trace, and which citation led there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The missing stage.
    pub stage: String,
    /// The citation that led there.
    pub citation: String,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the trace lacks its {}, which {} cites", self.stage, self.citation)
    }
}

/// Checks, before an ordinary commit lands, that the delta's citations lead back to a matched event or due trigger.
///
/// # Errors
/// The first gap.
pub fn check_delta(_view: &View, _delta: &OnRecord<Delta>, _endorsement: &OnRecord<Adjudication>) -> Result<(), Gap> {
    Ok(())
}
