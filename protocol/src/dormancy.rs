//! Work that finds nothing new again and again comes to rest. Spec: §8.4, DEC-89.
//!
//! Episodes that end without having changed anything are counted per obligation. New evidence, an answer, a changed condition,
//! a premise that went, or the review of a gap begin the count anew; an event that brings no evidence does not. At the
//! profile's bound the obligation is dormant: a gap says so to whoever answers for it, and no participant is asked.

use crate::entry::{EpisodeEnd, Notice, NoticeKind};
use crate::sequence::Deciding;
use crate::view::View;
use crate::{tick, urgent};
use closer_contracts::branch;
use closer_contracts::delta::{Change, ChangeClass};
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, ObligationId, Text};
use closer_state::Commit;
use imbl::OrdMap;

/// How many episodes in a row found nothing new, per obligation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fruitless(OrdMap<ObligationId, u32>);

impl Fruitless {
    /// How many there were for an obligation since something new came.
    #[must_use]
    pub fn of(&self, obligation_id: &ObligationId) -> u32 {
        self.0.get(obligation_id).copied().unwrap_or(0)
    }

    /// Something new came.
    pub(crate) fn renew(&mut self, obligation_id: &ObligationId) {
        self.0.remove(obligation_id);
    }

    /// An episode ended.
    pub(crate) fn ended(&mut self, obligation_id: &ObligationId, end: EpisodeEnd) {
        match end {
            EpisodeEnd::Committed => self.renew(obligation_id),
            EpisodeEnd::NothingToDo | EpisodeEnd::Refused | EpisodeEnd::NoAnswer | EpisodeEnd::BoundReached => {
                *self.0.entry(obligation_id.clone()).or_default() += 1;
            }
            EpisodeEnd::AwaitingUser | EpisodeEnd::EffectUnknown => {}
        }
    }

    /// A commit that changes conditions, or what is wanted or permitted, is something new.
    pub(crate) fn committed(&mut self, commit: &Commit) {
        if commit.delta.has(ChangeClass::Normative) {
            self.0.clear();
        }
        for change in &commit.delta.changes {
            if let Change::SetConditions { obligation_id, .. } = change {
                self.renew(obligation_id);
            }
        }
    }
}

/// Whether an obligation rests until something new comes.
#[must_use]
pub fn is_dormant(view: &View, obligation_id: &ObligationId) -> bool {
    let bound = view.state.limits().fingerprints_max;
    branch!("episode.dormant", view.fruitless.of(obligation_id) >= bound)
}

/// Records that an obligation comes to rest, with the gap that its owner reviews.
pub(crate) fn rest(deciding: &mut Deciding<'_>, obligation_id: &ObligationId) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let times = view.fruitless.of(obligation_id);
    let obligation = view.state.obligation(obligation_id).filter(|obligation| obligation.status.is_open());
    let Some(obligation) = obligation.filter(|_| is_dormant(&view, obligation_id)) else {
        return Ok(());
    };
    let text =
        format!("{times} episodes found nothing new; it rests until there is new evidence, an answer or a review");
    let notice = Notice {
        kind: NoticeKind::Escalation,
        key: Key::new(crate::derived_id(&format!("dormant.{}", deciding.at.now.unix_ms()), obligation_id.as_str())),
        owner: Some(obligation.responsible_owner.clone()),
        subjects: vec![Key::new(obligation_id.as_str())],
        text: Text::new(text.clone()),
    };
    urgent::record_notice(deciding, notice)?;
    tick::leave_gap(deciding, obligation_id, &text)
}
