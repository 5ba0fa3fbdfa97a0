//! The actor.

use super::Message;
use crate::desks;
use crate::dispatcher::Dispatcher;
use crate::matcher::Matcher;
use crate::notifier::Notifier;
use crate::reconciler::{self, Reconciler};
use crate::router::Router;
use crate::scheduler::{self, Scheduler};
use crate::semantic::Semantic;
use crate::service::{Desk, Service};
use crate::space::Space;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::HashMap;
use std::sync::Arc;

/// How many deaths the root makes good before it gives up.
const RESTARTS_MAX: u32 = 64;

/// The actor.
pub(crate) struct Root;

/// The actors under the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Dispatcher,
    Disclosure,
    Routing,
    Conference,
    Participants,
    Planner,
    Assessor,
    Monitor,
    Observer,
    Briefcase,
    Distiller,
    Commit,
    Matcher,
    Scheduler,
    Router,
    Reconciler,
    Notifier,
    Semantic,
}

/// In the order in which they start: who is told comes before who tells.
const PARTS: [Part; 18] = [
    Part::Dispatcher,
    Part::Disclosure,
    Part::Routing,
    Part::Conference,
    Part::Participants,
    Part::Planner,
    Part::Assessor,
    Part::Monitor,
    Part::Observer,
    Part::Briefcase,
    Part::Distiller,
    Part::Commit,
    Part::Matcher,
    Part::Scheduler,
    Part::Router,
    Part::Reconciler,
    Part::Notifier,
    Part::Semantic,
];

/// What it keeps: who is which part.
pub(crate) struct Tree {
    space: Arc<Space>,
    parts: HashMap<ActorId, Part>,
    restarts: u32,
}

impl Actor for Root {
    type Msg = Message;
    type State = Tree;
    type Arguments = Arc<Space>;

    async fn pre_start(&self, myself: ActorRef<Message>, space: Arc<Space>) -> Result<Tree, ActorProcessingErr> {
        let mut tree = Tree { space, parts: HashMap::new(), restarts: 0 };
        for part in PARTS {
            tree.start(&myself, part).await?;
        }
        Ok(tree)
    }

    async fn handle(&self, _: ActorRef<Message>, message: Message, _: &mut Tree) -> Result<(), ActorProcessingErr> {
        match message {}
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Message>,
        event: SupervisionEvent,
        tree: &mut Tree,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(actor, error) => tree.died(&myself, actor.get_id(), &error).await,
            SupervisionEvent::ActorTerminated(..)
            | SupervisionEvent::ActorStarted(_)
            | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }

    async fn post_stop(&self, _: ActorRef<Message>, tree: &mut Tree) -> Result<(), ActorProcessingErr> {
        tree.space.lanes.close();
        Ok(())
    }
}

impl Tree {
    async fn died(
        &mut self,
        myself: &ActorRef<Message>,
        actor: ActorId,
        error: &ActorProcessingErr,
    ) -> Result<(), ActorProcessingErr> {
        let Some(part) = self.parts.remove(&actor) else {
            return Ok(());
        };
        self.restarts += 1;
        self.space.gone(actor);
        tracing::error!(?part, %error, restarts = self.restarts, "an actor died");
        let started = match self.restarts <= RESTARTS_MAX {
            true => self.start(myself, part).await,
            false => Err("too many actors have died".into()),
        };
        match started {
            Ok(()) => self.resume(part),
            Err(error) => {
                tracing::error!(?part, %error, "the runtime ends");
                self.space.lanes.close();
                myself.stop(None);
            }
        }
        Ok(())
    }

    /// Brings a successor up to what happened while nobody held its place.
    fn resume(&self, part: Part) {
        match part {
            Part::Semantic | Part::Dispatcher => drop(self.space.ask(self.space.recovery())),
            Part::Scheduler | Part::Matcher => {
                self.space.directory.scheduler.cast(scheduler::Message::Look);
            }
            Part::Reconciler => {
                self.space.directory.reconciler.cast(reconciler::Message::Look(self.space.activity.begin()));
            }
            Part::Disclosure
            | Part::Routing
            | Part::Conference
            | Part::Participants
            | Part::Planner
            | Part::Assessor
            | Part::Monitor
            | Part::Observer
            | Part::Briefcase
            | Part::Distiller
            | Part::Commit
            | Part::Notifier
            | Part::Router => {}
        }
    }

    async fn start(&mut self, myself: &ActorRef<Message>, part: Part) -> Result<(), ActorProcessingErr> {
        let (root, space) = (myself.get_cell(), Arc::clone(&self.space));
        let directory = &self.space.directory;
        macro_rules! stand {
            ($actor:expr, $place:ident) => {{
                let (actor, _) = Actor::spawn_linked(None, $actor, space, root).await?;
                directory.$place.take(actor.clone());
                actor.get_cell()
            }};
        }
        macro_rules! desk {
            ($desk:expr, $place:ident) => {{
                let desk: Box<dyn Desk> = Box::new($desk);
                let (actor, _) = Actor::spawn_linked(None, Service, (space, desk), root).await?;
                directory.desks.$place.take(actor.clone());
                actor.get_cell()
            }};
        }
        let shared = || Arc::clone(&self.space);
        let cell: ActorCell = match part {
            Part::Dispatcher => stand!(Dispatcher, dispatcher),
            Part::Matcher => stand!(Matcher, matcher),
            Part::Scheduler => stand!(Scheduler, scheduler),
            Part::Router => stand!(Router, router),
            Part::Reconciler => stand!(Reconciler, reconciler),
            Part::Notifier => stand!(Notifier, notifier),
            Part::Semantic => Actor::spawn_linked(None, Semantic, space, root).await?.0.get_cell(),
            Part::Disclosure => desk!(desks::Disclosure(shared()), disclosure),
            Part::Routing => desk!(desks::Routing(shared()), routing),
            Part::Conference => desk!(desks::Conference(shared()), conference),
            Part::Participants => desk!(desks::Participants(shared()), participants),
            Part::Planner => desk!(desks::Planner(shared()), planner),
            Part::Assessor => desk!(desks::Assessor(shared()), assessor),
            Part::Monitor => desk!(desks::Monitor, monitor),
            Part::Observer => desk!(desks::Observer(shared()), observer),
            Part::Briefcase => desk!(desks::Briefcase(shared()), briefcase),
            Part::Distiller => desk!(desks::Distiller(shared()), distiller),
            Part::Commit => desk!(desks::Commit, semantic),
        };
        self.parts.insert(cell.get_id(), part);
        Ok(())
    }
}
