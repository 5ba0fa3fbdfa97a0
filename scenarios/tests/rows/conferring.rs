//! A conference under test: three participants on the proposition of `o-1`, and what they say.

use crate::support::{begun, changed, recorded};
use closer_contracts::conference::{Conference, ConferenceMove, MoveKind, Seat, Subject};
use closer_contracts::id::{ActorId, ConferenceId, EpisodeId};
use closer_contracts::refs::ArtifactRef;
use closer_contracts::work::{Relation, WorkResult};
use closer_protocol::View;
use closer_protocol::conference::{Label, Proceed, Report, Round, Turn};
use closer_protocol::input::{Input, Reply};
use closer_scenarios::founding::{INQUIRY, plan_target, proposition};
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, Space, worker};
use std::sync::Arc;

/// The subject: that the service has the basic plan.
pub(crate) fn subject() -> Subject {
    Subject::Proposition(proposition("o-1", "basic"))
}

/// The three seats, each in a context and with a model of its own.
pub(crate) fn seats() -> Vec<Seat> {
    let seat = |role: &str| Seat {
        actor: role.into(),
        role: role.into(),
        context: format!("context-{role}").into(),
        derives_from: Vec::new(),
        model: format!("model-{role}").into(),
        tools: vec!["reader".into()],
    };
    INQUIRY.iter().map(|role| seat(role)).collect()
}

/// Participants that answer by their role.
pub(crate) fn by_role(
    answer: impl Fn(&str, &closer_contracts::work::Work, &View) -> WorkResult + Send + 'static,
) -> Answer {
    Box::new(move |work, view| answer(work.role.as_str(), work, view))
}

/// Everybody claims the subject on the evidence in the packet.
pub(crate) fn agreeing() -> Answer {
    by_role(|_, work, view| worker::claims(work, view, "basic", Relation::Supports))
}

/// A conference that is opened, and the space it is in.
pub(crate) struct Inquiry {
    pub(crate) space: Space,
    pub(crate) episode_id: EpisodeId,
    pub(crate) id: ConferenceId,
}

impl Inquiry {
    /// Opens a conference of three in a space of this deployment where the service has the plan `shown`.
    pub(crate) fn of(deployment: Deployment, shown: &str, answer: Answer) -> Self {
        Self::under(deployment, shown, answer, |_| {})
    }

    /// As [`Inquiry::of`], under a changed contract.
    pub(crate) fn under(
        deployment: Deployment,
        shown: &str,
        answer: Answer,
        change: impl FnOnce(&mut Conference),
    ) -> Self {
        let mut space = Space::found(&deployment.with_inquiry(), answer).unwrap();
        space.world.set(&plan_target(), "plan", shown);
        recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
        let episode_id = begun(&mut space);
        let mut contract = space.conference(&episode_id, vec![subject()], seats()).unwrap();
        change(&mut contract);
        let id = contract.conference_id.clone();
        recorded(&space.convene(contract).unwrap());
        Self { space, episode_id, id }
    }

    /// The usual one: everybody agrees, and rightly.
    pub(crate) fn agreeing() -> Self {
        Self::of(Deployment::default(), "basic", agreeing())
    }

    pub(crate) fn round(&self) -> Arc<Round> {
        self.space.round(&self.id).unwrap()
    }

    /// Takes it on until this is its turn.
    pub(crate) fn until(&mut self, wanted: &Turn) {
        self.space.confer_until(&self.id, wanted).unwrap();
    }

    /// Asks everybody; nobody has answered yet.
    pub(crate) fn asked(&mut self) {
        for seat in self.round().contract.seats.clone() {
            let round = self.round();
            recorded(&self.space.ask_seat(&round, &seat).unwrap());
        }
    }

    pub(crate) fn released(&mut self) {
        self.space.confer_until_released(&self.id).unwrap();
    }

    pub(crate) fn proceed(&mut self, proceed: Proceed) -> Reply {
        self.space.submit(Input::Confer(proceed)).unwrap()
    }

    pub(crate) fn seal(&mut self) -> Reply {
        let nonce = "ffeeddccbbaa99887766554433221100".into();
        self.proceed(Proceed::Seal { conference_id: self.id.clone(), nonce })
    }

    pub(crate) fn release(&mut self) -> Reply {
        self.proceed(Proceed::Release { conference_id: self.id.clone() })
    }

    pub(crate) fn conclude(&mut self) -> Reply {
        self.proceed(Proceed::Conclude { conference_id: self.id.clone() })
    }

    /// Concludes it and gives what it came to.
    pub(crate) fn concluded(&mut self) -> Report {
        recorded(&self.conclude());
        (*self.round().report.as_ref().expect("its report").body).clone()
    }

    /// Somebody asks to read a position.
    pub(crate) fn read(&mut self, reader: &str, item: ArtifactRef) -> Reply {
        let context = format!("context-{reader}").into();
        self.proceed(Proceed::Read { conference_id: self.id.clone(), reader: reader.into(), context, item })
    }

    /// A position reaches a context although it is sealed.
    pub(crate) fn leak(&mut self, reader: &str, item: ArtifactRef) -> Reply {
        let context = format!("context-{reader}").into();
        self.proceed(Proceed::Leak { conference_id: self.id.clone(), reader: reader.into(), context, item })
    }

    /// The position of a participant.
    pub(crate) fn position(&self, actor: &str) -> ArtifactRef {
        self.round().positions.get(&ActorId::from(actor)).expect("its position").reference()
    }

    /// A second answer of a participant to the work that it has answered, under an id of its own.
    pub(crate) fn answer_anew(&mut self, actor: &str) -> Reply {
        let actor = ActorId::from(actor);
        let work_id = self.round().asked.get(&actor).cloned().expect("its work");
        let view = self.space.view().clone();
        let episode = view.episodes.get(&self.episode_id).expect("the episode");
        let revised = closer_scenarios::worker::nothing(&view.works.get(&work_id).expect("its work").body);
        let now = self.space.moment().now;
        let answer = closer_protocol::work::draft_result(&view, episode, &actor, &work_id, revised, &now).unwrap();
        let another =
            changed(&answer, |envelope| envelope.payload_id = format!("pl.another-{work_id}").as_str().into());
        self.space.submit_payload(another).unwrap()
    }

    pub(crate) fn label(&self, actor: &str) -> Label {
        let round = self.round();
        let seat = round.contract.seat(&actor.into()).expect("its seat");
        closer_protocol::conference::label(self.space.view(), &round, seat)
    }

    /// A move on the subject.
    pub(crate) fn a_move(&mut self, actor: &str, r#move: MoveKind) -> ConferenceMove {
        let mut made = self.space.a_move(&self.id, actor, r#move, &subject()).unwrap();
        if r#move == MoveKind::Narrow {
            let mut narrowed = proposition("o-1", "basic");
            narrowed.proposition_id = "p-o-1-narrow".into();
            narrowed.scope.0.push("west".into());
            made.subject = Subject::Proposition(narrowed.clone()).digest().unwrap();
            made.narrowed = Some(narrowed);
        }
        made
    }

    pub(crate) fn make(&mut self, made: ConferenceMove) -> Reply {
        self.space.make(made).unwrap()
    }
}
