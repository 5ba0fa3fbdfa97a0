//! The actor: takes inputs, submits appends, lets durable steps leave.

use super::Message;
use super::in_flight::{InFlight, intent_of};
use crate::error::{Error, storage_full};
use crate::lanes::{Caller, Offer};
use crate::replay::replay;
use crate::scheduler;
use crate::space::Space;
use closer_contracts::record::{Conflict, Epoch, FencedAppend};
use closer_protocol::input::Effect;
use closer_protocol::sequence::Sequence;
use closer_protocol::{Input, Moment, Reply};
use closer_store::{Declined, RecordLog, StoreError};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long the service lets a busy log be before it offers the same append again.
const BUSY_WAIT: Duration = Duration::from_millis(5);

/// The actor.
pub(crate) struct Semantic;

/// What it keeps: the sequence and what of it has not landed.
pub(crate) struct Service {
    space: Arc<Space>,
    sequence: Sequence,
    epoch: Epoch,
    in_flight: VecDeque<InFlight>,
    withdrawn: Option<(Caller, Declined)>,
    /// Taken back from a log that declined them, the next to be decided again in front.
    again: VecDeque<(Input, Moment, Caller)>,
    landed: u64,
}

impl Actor for Semantic {
    type Msg = Message;
    type State = Service;
    type Arguments = Arc<Space>;

    /// Reads the log and takes the lease. What a predecessor had submitted becomes durable before that.
    async fn pre_start(&self, myself: ActorRef<Message>, space: Arc<Space>) -> Result<Service, ActorProcessingErr> {
        let log = Arc::clone(&space.log);
        let read = tokio::task::spawn_blocking(move || {
            log.flush()?;
            let epoch = log.acquire()?;
            Ok::<_, Error>((replay(&log)?, epoch))
        });
        let (view, epoch) = read.await??;
        space.note_restriction(view.restrictions_decided);
        let sequence = Sequence::new(view);
        space.publish(sequence.durable());
        space.lanes.hang(myself);
        Ok(Service {
            space,
            sequence,
            epoch,
            in_flight: VecDeque::new(),
            withdrawn: None,
            again: VecDeque::new(),
            landed: 0,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        _: Message,
        service: &mut Service,
    ) -> Result<(), ActorProcessingErr> {
        service.space.lanes.answered();
        service.land()?;
        service.decide()?;
        while service.withdrawn.is_some() && service.in_flight.is_empty() && service.withdraw(&myself)? {
            service.decide()?;
        }
        Ok(())
    }
}

impl Service {
    fn is_halted(&self) -> bool {
        self.space.options.halt_after.is_some_and(|halt_after| self.landed >= halt_after)
    }

    /// Lets everything leave that has become durable, after the view that shows it.
    fn land(&mut self) -> Result<(), Error> {
        let mut leaving = Vec::new();
        let mut landed = false;
        for outcome in self.space.lanes.take_settled() {
            if self.is_halted() {
                return Ok(());
            }
            outcome.map_err(|error| self.fail(error))?;
            self.sequence.acknowledged();
            self.landed += 1;
            landed = true;
            leaving.extend(self.unrecorded());
            leaving.extend(self.in_flight.pop_front());
        }
        leaving.extend(self.unrecorded());
        if self.is_halted() {
            return Ok(());
        }
        if landed {
            self.space.publish(self.sequence.durable());
        }
        for step in leaving {
            step.leave(&self.space);
        }
        if landed {
            scheduler::ring(&self.space);
        }
        Ok(())
    }

    /// The steps at the front that record nothing: everything before them is durable.
    fn unrecorded(&mut self) -> Vec<InFlight> {
        let count = self.in_flight.iter().take_while(|step| step.appended.is_none()).count();
        self.in_flight.drain(..count).collect()
    }

    /// Decides while there is room and something to decide.
    fn decide(&mut self) -> Result<(), ActorProcessingErr> {
        while self.withdrawn.is_none() && !self.is_halted() && self.sequence.has_room() {
            let Some((input, at, caller)) = self.next() else { break };
            self.take(input, at, caller)?;
        }
        for step in self.unrecorded() {
            step.leave(&self.space);
        }
        Ok(())
    }

    /// The next input: the reserved lane first, also before what a busy log declined.
    fn next(&mut self) -> Option<(Input, Moment, Caller)> {
        let lanes = &self.space.lanes;
        let offered = |Offer { input, caller }: Offer| (input, self.space.moment(), caller);
        if let Some(urgent) = lanes.next_reserved() {
            return Some(offered(urgent));
        }
        self.again.pop_front().or_else(|| lanes.next().map(offered))
    }

    /// Decides one input and submits its append. A sequence whose own records do not fold is broken: the actor ends, and
    /// its successor reads the log.
    fn take(&mut self, input: Input, at: Moment, caller: Caller) -> Result<(), ActorProcessingErr> {
        self.space.probe("sequence");
        let step = self.sequence.take(input, at, &*self.space.log)?;
        self.space.note_restriction(self.sequence.view().restrictions_decided);
        match step.append {
            None => self.enter(caller, step.reply, step.effects, None),
            Some(append) => self.submit(caller, step.reply, step.effects, append),
        }
        Ok(())
    }

    fn submit(&mut self, caller: Caller, reply: Reply, effects: Vec<Effect>, append: FencedAppend) {
        let intent = intent_of(&append);
        match self.space.log.submit(self.epoch, append) {
            Ok(ticket) => {
                self.enter(caller, reply, effects, Some((ticket.assigned(), intent)));
                let lanes = Arc::clone(&self.space.lanes);
                ticket.on_durable(move |outcome| lanes.settled(outcome));
            }
            Err(declined) => self.withdrawn = Some((caller, declined)),
        }
    }

    fn enter(
        &mut self,
        caller: Caller,
        reply: Reply,
        effects: Vec<Effect>,
        appended: Option<(closer_contracts::record::Appended, Option<u64>)>,
    ) {
        let intent = appended.as_ref().and_then(|(_, intent)| *intent);
        let appended = appended.map(|(appended, _)| appended);
        self.in_flight.push_back(InFlight { caller, reply, effects, appended, intent });
    }

    /// Takes back the step that the log declined; nothing undurable is left but it. Gives whether to go on at once.
    fn withdraw(&mut self, myself: &ActorRef<Message>) -> Result<bool, Error> {
        let Some((caller, declined)) = self.withdrawn.take() else {
            return Ok(true);
        };
        let Some((input, at)) = self.sequence.discard().pop() else {
            return Ok(true);
        };
        self.space.reset_restriction(self.sequence.view().restrictions_decided);
        match declined {
            Declined::Conflict(Conflict::Epoch { .. }) => {
                caller.tell(Err(Error::Fenced));
                self.space.lanes.close();
            }
            Declined::Conflict(conflict) => {
                tracing::warn!(?conflict, "the log has moved: it is read again");
                self.sequence = Sequence::new(replay(&self.space.log)?);
                self.space.publish(self.sequence.durable());
                self.again.push_front((input, at, caller));
            }
            Declined::Store(StoreError::Busy(_)) => {
                self.again.push_front((input, at, caller));
                myself.send_after(BUSY_WAIT, || Message::Work);
                return Ok(false);
            }
            Declined::Store(StoreError::StoreFull) => {
                caller.tell(Ok(Reply::Refused(vec![storage_full()])));
            }
            Declined::Store(error) => caller.tell(Err(error.into())),
        }
        Ok(true)
    }

    /// The log will take nothing more: everybody who waits is told, and nothing undurable leaves.
    fn fail(&mut self, error: StoreError) -> Error {
        self.sequence.discard();
        for step in self.in_flight.drain(..) {
            step.caller.tell(Err(error.clone().into()));
        }
        self.space.lanes.close();
        error.into()
    }
}
