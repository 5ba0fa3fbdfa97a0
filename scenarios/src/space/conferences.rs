//! Conferences: what their coordinator does, turn by turn, and what participants say in them.

use super::{Broken, Space};
use closer_contracts::auth::SigningScope;
use closer_contracts::conference::{Conference, ConferenceMove, EvidenceScope, MoveKind, Seat, Subject};
use closer_contracts::id::{ArtifactId, ConferenceId, EpisodeId, EvidenceId};
use closer_contracts::refs::{ActorRef, ArtifactRef, EvidenceSnapshot, ProducerRole};
use closer_contracts::work::StopCondition;
use closer_protocol::conference::{Proceed, Round, Turn, turn};
use closer_protocol::input::{Input, Reply};
use closer_protocol::{adjudicate, services, work};
use std::sync::Arc;

impl Space {
    /// The contract of a conference of an episode about these subjects, on all the evidence on record.
    ///
    /// # Errors
    /// No such episode; the evidence has no canonical form.
    pub fn conference(
        &mut self,
        episode_id: &EpisodeId,
        subjects: Vec<Subject>,
        seats: Vec<Seat>,
    ) -> Result<Conference, Broken> {
        let conference_id = ConferenceId::new(self.fresh("conference"));
        let view = self.view();
        let episode = view.episodes.get(episode_id).ok_or_else(|| Broken::Stuck(format!("no episode {episode_id}")))?;
        let on_record = view.evidence.iter();
        let refs = on_record.map(|(id, evidence)| adjudicate::evidence_ref(id, evidence.payload.content_digest()));
        Ok(Conference {
            conference_id,
            obligation_id: episode.obligation_id.clone(),
            episode_id: episode_id.clone(),
            basis: view.state.reference(),
            subjects,
            evidence_scope: EvidenceScope {
                snapshot: EvidenceSnapshot::of(refs.collect())?,
                streams: view.observed.keys().cloned().collect(),
            },
            seats,
            stop: StopCondition { rounds_max: 3, calls_max: 20, time_ms_max: 300_000 },
            seal_within_ms: 60_000,
            allowed_moves: MoveKind::ALL.to_vec(),
            decision_rule_ref: adjudicate::decision_rule(view),
            independence_required: false,
            late_counts: false,
            follows: None,
        })
    }

    /// The coordinator opens a conference.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn convene(&mut self, contract: Conference) -> Result<Reply, Broken> {
        self.submit_artifact(contract, services::actor_ref(ProducerRole::Coordinator), SigningScope::Conference)
    }

    /// The conference with this id.
    ///
    /// # Errors
    /// There is none.
    pub fn round(&self, id: &ConferenceId) -> Result<Arc<Round>, Broken> {
        let round = self.view().conferences.round(id).cloned();
        round.ok_or_else(|| Broken::Stuck(format!("no conference {id}")))
    }

    /// Takes a conference one turn further. A silent participant lets the time for sealing pass.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn confer(&mut self, id: &ConferenceId) -> Result<Reply, Broken> {
        let round = self.round(id)?;
        let conference_id = id.clone();
        let proceed = match turn(&round, &self.moment()) {
            Turn::Work(seat) => return self.ask_seat(&round, &seat),
            Turn::Answers { .. } => return self.answer_others(&round),
            Turn::Seal => Proceed::Seal { conference_id, nonce: "00112233445566778899aabbccddeeff".into() },
            Turn::Release => Proceed::Release { conference_id },
            // Moves are made by hand here.
            Turn::Move(_) | Turn::Conclude => Proceed::Conclude { conference_id },
            Turn::Over => return Ok(Reply::Recorded(Vec::new())),
        };
        self.submit(Input::Confer(proceed))
    }

    /// Takes a conference on until this is its turn.
    ///
    /// # Errors
    /// See [`Broken`]; a turn that does not come, or a refusal on the way.
    pub fn confer_until(&mut self, id: &ConferenceId, wanted: &Turn) -> Result<(), Broken> {
        for _ in 0..40 {
            if turn(&*self.round(id)?, &self.moment()) == *wanted {
                return Ok(());
            }
            if let Reply::Refused(denials) = self.confer(id)? {
                return Err(Broken::Stuck(format!("{denials:?}")));
            }
        }
        Err(Broken::Stuck(format!("{wanted:?} is never reached")))
    }

    /// Takes a conference on until its positions are released.
    ///
    /// # Errors
    /// See [`Space::confer_until`].
    pub fn confer_until_released(&mut self, id: &ConferenceId) -> Result<(), Broken> {
        if self.round(id)?.release.is_some() {
            return Ok(());
        }
        self.confer_until(id, &Turn::Release)?;
        match self.confer(id)? {
            Reply::Recorded(_) => Ok(()),
            Reply::Refused(denials) => Err(Broken::Stuck(format!("{denials:?}"))),
        }
    }

    /// Asks a seat with its packet.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn ask_seat(&mut self, round: &Round, seat: &Seat) -> Result<Reply, Broken> {
        let view = self.view().clone();
        let episode = view.episodes.get(&round.contract.episode_id);
        let episode = episode.ok_or_else(|| Broken::Stuck("the episode is not on record".into()))?;
        let packet = work::draft_for_seat(&view, episode, round, seat, &self.now.clone())?;
        let work = self.submission(packet.work)?;
        self.submit(Input::Issue { work, disclosure: packet.disclosure })
    }

    /// The answers of everybody who is not silent; then the time for sealing passes.
    fn answer_others(&mut self, round: &Round) -> Result<Reply, Broken> {
        let seats = round.contract.seats.iter().map(|seat| &seat.actor);
        let mut waiting = seats.filter(|actor| !round.positions.contains_key(*actor) && !self.silent.contains(*actor));
        let waiting = waiting.find_map(|actor| round.asked.get_key_value(actor));
        match waiting.map(|(actor, work_id)| (actor.clone(), work_id.clone())) {
            Some((actor, work_id)) => {
                let payload = self.answered(&round.contract.episode_id, &work_id, &actor)?;
                self.submit_payload(payload)
            }
            None => {
                self.pass(round.contract.seal_within_ms)?;
                Ok(Reply::Recorded(Vec::new()))
            }
        }
    }

    /// A late participant answers after all.
    ///
    /// # Errors
    /// See [`Broken`]; it was not asked.
    pub fn answer_late(&mut self, id: &ConferenceId, actor: &str) -> Result<Reply, Broken> {
        let round = self.round(id)?;
        let work_id = round.asked.get(&closer_contracts::id::ActorId::from(actor)).cloned();
        let work_id = work_id.ok_or_else(|| Broken::Stuck(format!("{actor} was not asked")))?;
        let payload = self.answered(&round.contract.episode_id, &work_id, &actor.into())?;
        self.submit_payload(payload)
    }

    /// A move of a participant on a subject, with everything that it is bound to.
    ///
    /// # Errors
    /// The participant has no seat, or the subject no canonical form.
    pub fn a_move(
        &mut self,
        id: &ConferenceId,
        actor: &str,
        r#move: MoveKind,
        subject: &Subject,
    ) -> Result<ConferenceMove, Broken> {
        let move_id = ArtifactId::new(self.fresh("move"));
        let round = self.round(id)?;
        let seat = round.contract.seat(&closer_contracts::id::ActorId::from(actor));
        let seat = seat.ok_or_else(|| Broken::Stuck(format!("{actor} has no seat")))?;
        let nothing = ArtifactRef { id: "nothing".into(), digest: closer_contracts::Digest::of(b"nothing") };
        let own = round.positions.get(&seat.actor).map(|position| position.reference());
        let reasoned = matches!(r#move, MoveKind::Challenge | MoveKind::RetainWithReason);
        let challenged = (r#move == MoveKind::Challenge).then_some(closer_contracts::work::ReasonClass::Factual);
        Ok(ConferenceMove {
            move_id,
            conference_id: id.clone(),
            r#move,
            actor: seat.actor.clone(),
            role: seat.role.clone(),
            local_receipt: own.unwrap_or_else(|| nothing.clone()),
            shared_snapshot: round.release.as_ref().map_or(nothing, |release| release.reference.clone()),
            subject: subject.digest()?,
            governing_basis: round.contract.basis,
            reply_to: None,
            evidence: Vec::new(),
            reason: reasoned.then(|| "The export was looked at again.".into()),
            reason_class: challenged,
            narrowed: None,
        })
    }

    /// A participant makes a move.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn make(&mut self, made: ConferenceMove) -> Result<Reply, Broken> {
        let producer = ActorRef { actor_id: made.actor.clone(), role: ProducerRole::Participant };
        self.submit_artifact(made, producer, SigningScope::ConferenceMove)
    }

    /// The newest evidence on record.
    #[must_use]
    pub fn newest_evidence(&self) -> Option<EvidenceId> {
        let evidence = self.view().evidence.values();
        evidence.max_by_key(|evidence| evidence.admitted_at.clone()).map(|evidence| evidence.body.evidence_id.clone())
    }
}
