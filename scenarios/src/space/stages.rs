//! An episode's stages, one after another: each drafts what its actor would draft and submits it.

use super::{Broken, Refused, Space};
use closer_contracts::Payload;
use closer_contracts::canonical::to_bytes;
use closer_contracts::id::{ActorId, EpisodeId, ObligationId, WorkId};
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::episode::{self, Next};
use closer_protocol::input::{Input, Reply};
use closer_protocol::{
    action, adjudicate, bench, call, coalition, conference, delta, follow_up, readback, route, work,
};

impl Space {
    /// Opens an episode on an eligible obligation.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn open(&mut self, obligation: &str) -> Result<EpisodeId, Broken> {
        let episode_id = EpisodeId::new(self.fresh("episode"));
        let input = Input::Open { obligation_id: ObligationId::from(obligation), episode_id: episode_id.clone() };
        match self.submit(input)? {
            Reply::Recorded(_) => Ok(episode_id),
            Reply::Refused(denials) => Err(Broken::Stuck(format!("{denials:?}"))),
        }
    }

    /// The next stage of an episode.
    ///
    /// # Errors
    /// No such episode.
    pub fn next(&self, episode_id: &EpisodeId) -> Result<Next, Broken> {
        let episode =
            self.view().episodes.get(episode_id).ok_or_else(|| Broken::Stuck(format!("no episode {episode_id}")))?;
        Ok(episode::next(self.view(), episode, &self.moment()))
    }

    /// Takes an episode one stage further.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn advance(&mut self, episode_id: &EpisodeId) -> Result<(Next, Reply), Broken> {
        let shown = self.next(episode_id)?;
        let refused = self.refused.remove(episode_id).filter(|refused| refused.stage == shown);
        let next = match &refused {
            Some(Refused { times, denials, .. }) => episode::after_refusal(shown, *times, denials),
            None => shown,
        };
        let reply = self.carry_out(episode_id, next.clone())?;
        if let Reply::Refused(denials) = &reply {
            let times = refused.map_or(0, |refused| refused.times) + 1;
            self.refused.insert(episode_id.clone(), Refused { stage: next.clone(), times, denials: denials.clone() });
        }
        Ok((next, reply))
    }

    fn carry_out(&mut self, episode_id: &EpisodeId, next: Next) -> Result<Reply, Broken> {
        let stuck = |what: &str| Broken::Stuck(format!("{what} is not on record"));
        let view = self.view().clone();
        let episode = view.episodes.get(episode_id).ok_or_else(|| stuck("the episode"))?;
        let now = self.now.clone();
        let coalition = || coalition::of(&view, &episode.obligation_id).ok_or_else(|| stuck("the coalition"));
        let payload = match next {
            Next::Work { participant, role } => {
                let packet = work::draft(&view, episode, &participant, &role, &now)?;
                let work = self.submission(packet.work)?;
                return self.submit(Input::Issue { work, disclosure: packet.disclosure });
            }
            Next::Ask { work_id, participant } => match call::result(&view, episode_id, &work_id) {
                Some(result) => work::draft_result(&view, episode, &participant, &work_id, result, &now)?,
                None => self.answered(episode_id, &work_id, &participant)?,
            },
            Next::Route { .. } => route::draft(&view, episode, coalition()?, &now)?,
            Next::Convene { .. } => {
                return self.convene(conference::draft(&view, episode, coalition()?, &self.moment())?);
            }
            Next::Confer { conference_id, .. } => return self.confer(&conference_id),
            Next::Act { result, proposal, grant } => {
                action::draft(&view, episode, &result, &proposal, &grant, 1, &now)?
            }
            Next::Again { earlier, attempt } => action::draft_again(&view, episode, &earlier, attempt, &now)?,
            Next::Assess { payload_id } => {
                let action = view.actions.get(&payload_id).ok_or_else(|| stuck("the action"))?;
                adjudicate::pre_action(&view, episode, action, &now)?
            }
            Next::Dispatch { payload_id } => {
                return self.submit(Input::Dispatch { payload_id, adjudication_id: None });
            }
            Next::Readback { attempt_id, not_before } => {
                self.now = self.now.clone().max(not_before);
                let attempt = view.attempts.get(&attempt_id).ok_or_else(|| stuck("the attempt"))?;
                let method = readback::method_for(&view, attempt).ok_or_else(|| stuck("the readback method"))?;
                let observed = self.world.observe(&attempt.action.target, &self.now);
                readback::draft(&view, method, &observed, &attempt.action.target, Some(attempt), &[], &self.now)?
            }
            Next::Judge { attempt_id, evidence_id } => {
                let attempt = view.attempts.get(&attempt_id).ok_or_else(|| stuck("the attempt"))?;
                let readback = view.evidence.get(&evidence_id).ok_or_else(|| stuck("the readback"))?;
                adjudicate::post_outcome(&view, episode, attempt, readback, &now)?
            }
            Next::AskUser { result, proposal } => {
                let result = view.results.get(&result).ok_or_else(|| stuck("the result"))?;
                bench::draft(&view, episode, result, proposal.as_deref(), &now)?
            }
            Next::HandOver { recipient, contract } => {
                follow_up::offer(&view, episode, &recipient, &contract, &self.moment())?
            }
            Next::Distil => match delta::distill(&view, episode, &self.moment())? {
                Some(payload) => payload,
                None => return self.end(episode_id, EpisodeEnd::NothingToDo, "nothing was established"),
            },
            Next::Endorse { delta_id } => {
                let delta = view.deltas.get(&delta_id).ok_or_else(|| stuck("the delta"))?;
                adjudicate::semantic_commit(&view, episode, delta, &now)?
            }
            Next::Commit { delta_id } => return self.submit(Input::Commit { delta_id }),
            Next::End { end, reason } => return self.end(episode_id, end, reason.as_str()),
            Next::Await { .. } => {
                self.send()?;
                return Ok(Reply::Recorded(Vec::new()));
            }
            Next::Ended => return Ok(Reply::Recorded(Vec::new())),
        };
        self.submit_payload(payload)
    }

    /// The RESULT of a participant that answers its work.
    pub(super) fn answered(
        &mut self,
        episode_id: &EpisodeId,
        work_id: &WorkId,
        participant: &ActorId,
    ) -> Result<Payload, Broken> {
        let stuck = |what: &str| Broken::Stuck(format!("{what} is not on record"));
        let view = self.view().clone();
        let episode = view.episodes.get(episode_id).ok_or_else(|| stuck("the episode"))?;
        let work = view.works.get(work_id).ok_or_else(|| stuck("the work"))?;
        let bytes = to_bytes(&(self.answer)(&work.body, &view))?;
        Ok(work::draft_result(&view, episode, participant, work_id, work::read_answer(&bytes)?, &self.now)?)
    }

    fn end(&mut self, episode_id: &EpisodeId, end: EpisodeEnd, reason: &str) -> Result<Reply, Broken> {
        self.submit(Input::End { episode_id: episode_id.clone(), end, reason: reason.into() })
    }

    /// Runs an episode to its end; gives the stages it went through.
    ///
    /// # Errors
    /// See [`Broken`]; an episode that takes more than 200 stages is stuck.
    pub fn finish(&mut self, episode_id: &EpisodeId) -> Result<Vec<Next>, Broken> {
        let mut stages = Vec::new();
        for _ in 0..200 {
            let (next, _) = self.advance(episode_id)?;
            if next == Next::Ended {
                return Ok(stages);
            }
            stages.push(next);
        }
        Err(Broken::Stuck(format!("the episode goes round: {:?}", stages.last())))
    }

    /// Runs everything that is eligible until nothing is.
    ///
    /// # Errors
    /// See [`Broken`].
    pub fn run(&mut self) -> Result<(), Broken> {
        for _ in 0..200 {
            let Some(obligation_id) = episode::openable(self.view()).into_iter().next() else { return Ok(()) };
            let episode_id = self.open(obligation_id.as_str())?;
            self.finish(&episode_id)?;
        }
        Err(Broken::Stuck("obligations are made eligible for ever".into()))
    }
}
