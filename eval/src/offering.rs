//! What is offered, each with the measures by which it is to be better than a simpler alternative. Spec: §11.
//!
//! A plan that compares two procedures may say which offering its first arm stands for. The report then tells these measures
//! for both arms, whichever is better; what nobody recorded is unknown, and no sum is made of them.

use closer_contracts::word_enum;
use serde::Serialize;

word_enum! {
    /// An offering.
    pub enum Offering {
        /// Adapters and conformance of the runtime, against integrating by hand.
        Runtime = "runtime",
        /// Validated routing within a domain, against searching again.
        Routing = "routing",
        /// Managed obligations and the briefcase, against being asked each time.
        Obligations = "obligations",
        /// Assurance and readback, against taking a call's word.
        Assurance = "assurance",
    }
}

/// What a scorer saw of one arm, over its scored cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Observed {
    /// Cases.
    pub cases: usize,
    /// Obligations that stayed open with neither trigger nor gap.
    pub lost: usize,
    /// Steps on another target than the case's.
    pub misbound: usize,
    /// Right and justified steps.
    pub right: usize,
    /// Right steps that took what was inherited and looked for nothing again.
    pub reused: usize,
    /// Searches for what was inherited.
    pub searched_again: usize,
    /// Operations where asking was right and nobody was asked.
    pub assumed_silently: usize,
    /// Words that a person has to read.
    pub words_to_read: usize,
    /// Minutes of a person; unknown where nobody recorded any.
    pub minutes: Option<u64>,
    /// Claims that the record does not bear out.
    pub unsupported: usize,
    /// Effects whose target did not show them.
    pub unreconciled: usize,
    /// What setting it up took, in millionths; unknown where nobody says.
    pub setup_micros: Option<u64>,
}

/// One measure for both arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// What is measured.
    pub measure: &'static str,
    /// Whether less of it is better.
    pub less_is_better: bool,
    /// For the first arm and the second; unknown is none.
    pub arms: [Option<u64>; 2],
}

impl Offering {
    /// Its measures, for both arms.
    #[must_use]
    pub fn measured(self, arms: [&Observed; 2]) -> Vec<Measured> {
        let of = |measure, less_is_better, take: fn(&Observed) -> Option<u64>| Measured {
            measure,
            less_is_better,
            arms: arms.map(take),
        };
        match self {
            Self::Runtime => vec![
                of("lost transitions", true, |arm| Some(arm.lost as u64)),
                of("misbound transitions", true, |arm| Some(arm.misbound as u64)),
                of("integration cost in millionths", true, |arm| arm.setup_micros),
            ],
            Self::Routing => vec![
                of("scoped reuse", false, |arm| Some(arm.reused as u64)),
                of("right next steps", false, |arm| Some(arm.right as u64)),
                of("searches for what was inherited", true, |arm| Some(arm.searched_again as u64)),
            ],
            Self::Obligations => vec![
                of("minutes of the user", true, |arm| arm.minutes),
                of("words to read", true, |arm| Some(arm.words_to_read as u64)),
                of("silent assumptions", true, |arm| Some(arm.assumed_silently as u64)),
            ],
            Self::Assurance => vec![
                of("unsupported promotions proposed", true, |arm| Some(arm.unsupported as u64)),
                of("unreconciled effects", true, |arm| Some(arm.unreconciled as u64)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    fn told(offering: Offering, change: fn(&mut Observed)) -> Vec<(&'static str, [Option<u64>; 2])> {
        let plain = Observed { minutes: Some(3), setup_micros: Some(10), ..Observed::default() };
        let mut other = plain.clone();
        change(&mut other);
        let measured = offering.measured([&plain, &other]);
        let differ = measured.into_iter().filter(|one| one.arms[0] != one.arms[1]);
        differ.map(|one| (one.measure, one.arms)).collect()
    }

    #[test]
    fn adapters_are_measured_by_lost_and_misbound_transitions_and_by_what_setting_up_took() {
        shows!("CP-11-08");
        assert_eq!(told(Offering::Runtime, |arm| arm.lost = 2), [("lost transitions", [Some(0), Some(2)])]);
        assert_eq!(told(Offering::Runtime, |arm| arm.misbound = 1), [("misbound transitions", [Some(0), Some(1)])]);
        let untold = told(Offering::Runtime, |arm| arm.setup_micros = None);
        assert_eq!(untold, [("integration cost in millionths", [Some(10), None])]);
    }

    #[test]
    fn routing_is_measured_by_scoped_reuse_and_by_the_next_step() {
        shows!("CP-11-09");
        assert_eq!(told(Offering::Routing, |arm| arm.reused = 4), [("scoped reuse", [Some(0), Some(4)])]);
        assert_eq!(told(Offering::Routing, |arm| arm.right = 5), [("right next steps", [Some(0), Some(5)])]);
    }

    #[test]
    fn less_effort_is_told_beside_the_silent_assumptions_that_may_have_bought_it() {
        shows!("CP-11-10");
        assert_eq!(told(Offering::Obligations, |arm| arm.minutes = None), [("minutes of the user", [Some(3), None])]);
        let assumed = told(Offering::Obligations, |arm| arm.assumed_silently = 1);
        assert_eq!(assumed, [("silent assumptions", [Some(0), Some(1)])]);
    }

    #[test]
    fn assurance_is_measured_by_unsupported_promotions_and_unreconciled_effects() {
        shows!("CP-11-11");
        let unsupported = told(Offering::Assurance, |arm| arm.unsupported = 1);
        assert_eq!(unsupported, [("unsupported promotions proposed", [Some(0), Some(1)])]);
        let unreconciled = told(Offering::Assurance, |arm| arm.unreconciled = 3);
        assert_eq!(unreconciled, [("unreconciled effects", [Some(0), Some(3)])]);
    }
}
