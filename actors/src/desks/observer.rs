//! The observer: reads a target back by its registered method, apart from any call's own response (SR14, §6.3, C8).

use super::{misdirected, missing, payload};
use crate::service::{Attended, Charge, Desk, Draft};
use crate::space::Space;
use closer_contracts::Fault;
use closer_contracts::id::{AttemptId, Text};
use closer_contracts::time::Timestamp;
use closer_protocol::episode::{self, Next};
use closer_protocol::port::{Observed, ReadbackOrder};
use closer_protocol::readback;
use std::sync::Arc;
use std::time::Duration;

/// The desk.
pub(crate) struct Observer(pub(crate) Arc<Space>);

impl Desk for Observer {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn attend(&self, charge: &Charge) -> Attended {
        let Next::Readback { attempt_id, not_before } = &charge.stage else {
            return misdirected(charge);
        };
        let (space, charge) = (Arc::clone(&self.0), charge.clone());
        let (attempt_id, not_before) = (attempt_id.clone(), not_before.clone());
        Attended::Calling(Box::pin(async move { look(&space, &charge, &attempt_id, &not_before).await }))
    }
}

async fn look(space: &Space, charge: &Charge, attempt_id: &AttemptId, not_before: &Timestamp) -> Result<Draft, Fault> {
    space.reach(not_before).await;
    let attempt = charge.view.attempts.get(attempt_id).ok_or_else(|| missing("the attempt is not on record"))?;
    let Some(method) = episode::readback_method(&charge.view, attempt_id) else {
        return readback::blind(&charge.view, attempt).map(|input| Draft::Input(Box::new(input)));
    };
    let method = Arc::new(method);
    let order = ReadbackOrder {
        method: Arc::clone(&method),
        target: attempt.action.target.clone(),
        action_id: Some(attempt.intent.action_id.clone()),
        attempt_id: Some(attempt_id.clone()),
    };
    let longest = Duration::from_millis(space.options.observe_ms_max);
    let observed = tokio::time::timeout(longest, space.ports.observer.observe(&order)).await;
    let observed = observed.unwrap_or_else(|_| Observed::Unavailable {
        observed_at: space.moment().now,
        reason: Text::from("the observation took longer than it may"),
    });
    // Observations are numbered per target: the newest view says which number is next.
    let view = space.view();
    let attempt = view.attempts.get(attempt_id).ok_or_else(|| missing("the attempt is not on record"))?;
    readback::draft(&view, &method, &observed, &order.target, Some(attempt), &[], &space.moment().now).map(payload)
}
