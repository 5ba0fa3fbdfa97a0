//! Decided steps whose records are not known to be durable, in order.

use crate::dispatcher::Admitted;
use crate::lanes::Caller;
use crate::space::Space;
use crate::{dispatcher, matcher, router};
use closer_contracts::record::{Appended, Cursor, FencedAppend, RecordKind};
use closer_protocol::Reply;
use closer_protocol::input::Effect;

/// A decided step on its way to the disk. `appended` is absent where it records nothing: it waits for those before it.
pub(super) struct InFlight {
    pub(super) caller: Caller,
    pub(super) reply: Reply,
    pub(super) effects: Vec<Effect>,
    pub(super) appended: Option<Appended>,
    /// Which of the append's records is the intent, where one is.
    pub(super) intent: Option<u64>,
}

/// Where the intent stands in an append.
pub(super) fn intent_of(append: &FencedAppend) -> Option<u64> {
    append.records.iter().position(|record| record.kind == RecordKind::Intent).map(|index| index as u64)
}

impl InFlight {
    /// Its records are durable: effects and reply leave.
    pub(super) fn leave(self, space: &Space) {
        let directory = &space.directory;
        for effect in self.effects {
            match effect {
                Effect::Perform { admission, order, restriction_cursor } => {
                    let appended = self.appended.zip(self.intent).map(|(appended, intent)| closer_monitor::Appended {
                        record: Cursor(appended.first.0 + intent),
                        epoch: appended.epoch,
                        restriction_cursor,
                    });
                    if let (Some(appended), Some(dispatcher)) = (appended, directory.dispatcher.holder()) {
                        space.leaves(order.action.attempt_id.clone(), dispatcher);
                        directory.dispatcher.cast(dispatcher::Message::Perform(Box::new(Admitted {
                            admission,
                            order,
                            appended,
                        })));
                    }
                }
                Effect::Cancel { attempt_id, order } => {
                    directory.dispatcher.cast(dispatcher::Message::Cancel(attempt_id, Box::new(order)));
                }
                Effect::Eligible(obligation_id) => directory.matcher.cast(matcher::Message::Eligible(obligation_id)),
                Effect::Advance(episode_id) => directory.router.cast(router::Message::Advance(episode_id)),
                Effect::OnTheBench(decision_id) => tracing::info!(%decision_id, "a packet is on The Bench"),
            }
        }
        self.caller.tell(Ok(self.reply));
    }
}
