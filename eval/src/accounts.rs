//! Accounts of a study: every enrolled case appears once, with its fate, whatever became of it (invariant 10).

use closer_contracts::id::Key;
use std::collections::BTreeMap;

closer_contracts::word_enum! {
    /// What became of an enrolled case.
    pub enum Fate {
        /// It was completed, and its outcome counts.
        Completed = "completed",
        /// The task failed.
        TaskFailed = "task_failed",
        /// What was found could not be committed.
        CommitFailed = "commit_failed",
        /// An output did not meet its contract.
        ContractFailed = "contract_failed",
        /// It ran out of time.
        TimedOut = "timed_out",
        /// Its outcome is not known. It is not a failure and not a success.
        Unknown = "unknown",
        /// Nothing has become of it yet.
        Pending = "pending",
    }
}

/// The accounts of one study: who was enrolled, and what became of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    fates: BTreeMap<Key, Fate>,
}

/// Why an entry in the accounts was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The case was enrolled before; enrolling it again would count it twice.
    EnrolledBefore(Key),
    /// The case was never enrolled.
    NotEnrolled(Key),
    /// The case has its fate; a later correction is a revision of the study, not of the account.
    Settled(Key, Fate),
}

impl Accounts {
    /// Enrols a case. It is pending from then on, and in every report.
    ///
    /// # Errors
    /// [`Refused::EnrolledBefore`].
    pub fn enrol(&mut self, case: Key) -> Result<(), Refused> {
        if self.fates.contains_key(&case) {
            return Err(Refused::EnrolledBefore(case));
        }
        self.fates.insert(case, Fate::Pending);
        Ok(())
    }

    /// Records what became of a case, once.
    ///
    /// # Errors
    /// [`Refused::NotEnrolled`], [`Refused::Settled`].
    pub fn settle(&mut self, case: &Key, fate: Fate) -> Result<(), Refused> {
        match self.fates.get_mut(case) {
            None => Err(Refused::NotEnrolled(case.clone())),
            Some(pending @ Fate::Pending) => {
                *pending = fate;
                Ok(())
            }
            Some(settled) => Err(Refused::Settled(case.clone(), *settled)),
        }
    }

    /// Every enrolled case with its fate, in order.
    pub fn cases(&self) -> impl Iterator<Item = (&Key, Fate)> {
        self.fates.iter().map(|(case, fate)| (case, *fate))
    }

    /// How many cases met each fate; every fate is listed, zero included, and the sum is the enrolment.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Fate, usize> {
        let mut counts: BTreeMap<Fate, usize> = Fate::ALL.iter().map(|&fate| (fate, 0)).collect();
        for fate in self.fates.values() {
            *counts.entry(*fate).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    #[test]
    fn failures_timeouts_and_unknowns_stay_in_the_accounts() {
        shows!("CP-INV-10");
        let mut accounts = Accounts::default();
        let fates = [Fate::Completed, Fate::TaskFailed, Fate::TimedOut, Fate::Unknown];
        for (number, fate) in fates.into_iter().enumerate() {
            let case = Key::new(format!("case-{number}"));
            accounts.enrol(case.clone()).unwrap();
            accounts.settle(&case, fate).unwrap();
        }
        accounts.enrol("case-never-run".into()).unwrap();
        let counts = accounts.counts();
        assert_eq!(counts.values().sum::<usize>(), 5);
        assert_eq!((counts[&Fate::Unknown], counts[&Fate::TimedOut], counts[&Fate::Pending]), (1, 1, 1));
        assert_eq!(accounts.cases().count(), 5);
    }

    #[test]
    fn nothing_is_enrolled_settled_or_left_out_twice() {
        let mut accounts = Accounts::default();
        let case = Key::from("case-1");
        assert_eq!(accounts.settle(&case, Fate::Completed), Err(Refused::NotEnrolled(case.clone())));
        accounts.enrol(case.clone()).unwrap();
        assert_eq!(accounts.enrol(case.clone()), Err(Refused::EnrolledBefore(case.clone())));
        accounts.settle(&case, Fate::CommitFailed).unwrap();
        assert_eq!(accounts.settle(&case, Fate::Completed), Err(Refused::Settled(case, Fate::CommitFailed)));
    }
}
