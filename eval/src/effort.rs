//! What a study costs the user: minutes, touches, repeated explanations, corrections, words read. Spec: §10.3.
//!
//! What nobody recorded is unknown. Judgments that only the owner can make are kept apart from repair that could have been
//! avoided, and less effort is no gain where quality fell or deadlines were missed.

use crate::resource::Total;
use closer_contracts::contract::Check;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Key, ObligationId};
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

word_enum! {
    /// Why the user was needed.
    pub enum Need {
        /// Only the owner can judge it.
        OwnersJudgment = "owners_judgment",
        /// It repairs what could have been avoided.
        AvoidableRepair = "avoidable_repair",
        /// Setting up, learning, declaring.
        Onboarding = "onboarding",
        /// Reviewing the system's own records.
        Review = "review",
    }
}

/// One time at which the user was needed, by one line of an effort file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// The obligation it was about; none for onboarding.
    pub obligation: Option<ObligationId>,
    /// The arm it is charged to.
    pub arm: Key,
    /// Why.
    pub need: Need,
    /// Minutes of review.
    #[serde(default)]
    pub review_minutes: Option<u64>,
    /// Whether a decision was made.
    #[serde(default)]
    pub decision: Option<bool>,
    /// Whether something was explained that had been explained before.
    #[serde(default)]
    pub explained_again: Option<bool>,
    /// Whether something that was done had to be put right.
    #[serde(default)]
    pub corrected: Option<bool>,
    /// Words of decision packets read.
    #[serde(default)]
    pub words_read: Option<u64>,
}

impl Check for Touch {
    fn check(&self) -> Result<(), Fault> {
        self.obligation.as_ref().map_or(Ok(()), Check::check).map_err(|fault| fault.within("obligation"))?;
        self.arm.check().map_err(|fault| fault.within("arm"))
    }
}

/// The effort of some touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// How often the user was needed.
    pub touches: u64,
    /// Minutes of review.
    pub review_minutes: Total,
    /// Decisions.
    pub decisions: Total,
    /// Explanations given again.
    pub explained_again: Total,
    /// Corrections.
    pub corrections: Total,
    /// Words read.
    pub words_read: Total,
}

/// What an arm cost, over what it was enrolled for and what it resolved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmEffort {
    /// What only the owner can judge.
    pub necessary: Effort,
    /// What could have been avoided.
    pub avoidable: Effort,
    /// Onboarding.
    pub onboarding: Effort,
    /// Review of the system's own records.
    pub review: Effort,
    /// Obligations enrolled.
    pub enrolled: u64,
    /// Obligations resolved.
    pub resolved: u64,
    /// Deadlines missed.
    pub missed_deadlines: u64,
    /// The mean score of what was done, in percent.
    pub quality_percent: u8,
}

impl Effort {
    fn add(&mut self, touch: &Touch) {
        self.touches += 1;
        self.review_minutes.add(touch.review_minutes);
        self.decisions.add(touch.decision.map(u64::from));
        self.explained_again.add(touch.explained_again.map(u64::from));
        self.corrections.add(touch.corrected.map(u64::from));
        self.words_read.add(touch.words_read);
    }
}

/// The effort of an arm; touches of other arms are passed over.
#[must_use]
pub fn of_arm(
    arm: &Key,
    touches: &[Touch],
    enrolled: &BTreeSet<ObligationId>,
    resolved: &BTreeSet<ObligationId>,
    missed_deadlines: u64,
    quality_percent: u8,
) -> ArmEffort {
    let of = |need: Need| {
        let mut effort = Effort::default();
        touches.iter().filter(|touch| touch.arm == *arm && touch.need == need).for_each(|touch| effort.add(touch));
        effort
    };
    ArmEffort {
        necessary: of(Need::OwnersJudgment),
        avoidable: of(Need::AvoidableRepair),
        onboarding: of(Need::Onboarding),
        review: of(Need::Review),
        enrolled: enrolled.len() as u64,
        resolved: resolved.intersection(enrolled).count() as u64,
        missed_deadlines,
        quality_percent,
    }
}

impl ArmEffort {
    /// Minutes of all kinds, onboarding and review included; none where any of them is unknown.
    #[must_use]
    pub fn minutes(&self) -> Option<u64> {
        let parts = [&self.necessary, &self.avoidable, &self.onboarding, &self.review];
        let parts = parts.iter().filter(|effort| effort.touches > 0);
        parts.map(|effort| effort.review_minutes.complete()).sum()
    }

    /// Minutes by enrolled and by resolved obligation: two denominators, none of them hidden.
    #[must_use]
    pub fn minutes_per(&self) -> [Option<f64>; 2] {
        let per = |count: u64| self.minutes().filter(|_| count > 0).map(|minutes| minutes as f64 / count as f64);
        [per(self.enrolled), per(self.resolved)]
    }

    /// Whether it took less effort than another arm without doing worse. None where it cannot be told.
    #[must_use]
    pub fn is_less_than(&self, other: &Self) -> Option<bool> {
        let no_worse = self.missed_deadlines <= other.missed_deadlines && self.quality_percent >= other.quality_percent;
        let [ours, theirs] = [self, other].map(|arm| arm.minutes_per()[0]);
        Some(no_worse && ours? < theirs?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    fn touch(need: Need, minutes: Option<u64>) -> Touch {
        Touch {
            obligation: Some("o-1".into()),
            arm: "a".into(),
            need,
            review_minutes: minutes,
            decision: Some(true),
            explained_again: Some(false),
            corrected: Some(need == Need::AvoidableRepair),
            words_read: Some(120),
        }
    }

    fn obligations(ids: &[&str]) -> BTreeSet<ObligationId> {
        ids.iter().map(|&id| id.into()).collect()
    }

    fn arm(touches: &[Touch], missed: u64, quality: u8) -> ArmEffort {
        of_arm(
            &"a".into(),
            touches,
            &obligations(&["o-1", "o-2", "o-3", "o-4"]),
            &obligations(&["o-1", "o-2"]),
            missed,
            quality,
        )
    }

    #[test]
    fn minutes_touches_and_explanations_are_recorded_and_what_is_missing_is_unknown() {
        shows!("CP-10.3-10", "CP-10.3-11", "CP-10.3-12");
        let effort = arm(&[touch(Need::OwnersJudgment, Some(4)), touch(Need::OwnersJudgment, None)], 0, 90).necessary;
        assert_eq!((effort.touches, effort.decisions.complete()), (2, Some(2)));
        assert_eq!(effort.review_minutes.complete(), None);
        assert_eq!(effort.review_minutes.shown(), "at least 4 (incomplete: 1 unknown)");
        let silent = Touch { explained_again: None, decision: None, ..touch(Need::OwnersJudgment, None) };
        let effort = arm(&[silent], 0, 90).necessary;
        assert_eq!(effort.explained_again.shown(), "unknown");
        assert_eq!(effort.decisions.complete(), None);
    }

    #[test]
    fn corrections_reading_and_both_denominators_are_told() {
        shows!("CP-10.3-13", "CP-10.3-14", "CP-10.3-15");
        let effort = arm(&[touch(Need::AvoidableRepair, Some(6)), touch(Need::OwnersJudgment, Some(2))], 0, 90);
        assert_eq!(effort.avoidable.corrections.complete(), Some(1));
        assert_eq!(effort.necessary.words_read.complete(), Some(120));
        assert_eq!(effort.minutes_per(), [Some(2.0), Some(4.0)]);
        let silent = Touch { corrected: None, words_read: None, ..touch(Need::AvoidableRepair, Some(1)) };
        let effort = arm(&[silent], 0, 90).avoidable;
        assert_eq!((effort.corrections.complete(), effort.words_read.complete()), (None, None));
    }

    #[test]
    fn the_owners_judgments_stand_apart_from_avoidable_repair_and_onboarding_counts() {
        shows!("CP-10.3-16", "CP-10.3-18");
        let touches = [
            touch(Need::OwnersJudgment, Some(2)),
            touch(Need::AvoidableRepair, Some(6)),
            touch(Need::Onboarding, Some(30)),
            touch(Need::Review, Some(5)),
        ];
        let effort = arm(&touches, 0, 90);
        assert_eq!((effort.necessary.touches, effort.avoidable.touches), (1, 1));
        assert_eq!(effort.minutes(), Some(43));
    }

    #[test]
    fn silence_that_misses_a_deadline_is_no_gain() {
        shows!("CP-10.3-17");
        let asks = arm(&[touch(Need::OwnersJudgment, Some(8))], 0, 90);
        let silent = arm(&[touch(Need::OwnersJudgment, Some(0))], 1, 90);
        assert_eq!(silent.is_less_than(&asks), Some(false));
        let worse = arm(&[touch(Need::OwnersJudgment, Some(0))], 0, 60);
        assert_eq!(worse.is_less_than(&asks), Some(false));
        let better = arm(&[touch(Need::OwnersJudgment, Some(4))], 0, 95);
        assert_eq!(better.is_less_than(&asks), Some(true));
        let untold = arm(&[touch(Need::OwnersJudgment, None)], 0, 95);
        assert_eq!(untold.is_less_than(&asks), None);
    }
}
