//! The reference monitor: judges one exact action against what governs now (SR13, §4.2, C7).
//!
//! [`judge`] takes values and gives a value. It denies by default: an action is admitted only when nothing speaks against
//! it. It runs only inside the sequence, so that what it judged and what is appended are one. [`release`] turns an
//! admission whose record is durable into the only [`Permit`] there is; adapters take a permit and nothing else.
//!
//! Deliberately lacks any knowledge of participants: how many agreed, how sure they were and what they called the action
//! is not among its inputs, so agreement can never stand in for a missing grant (§4.1).

mod bounds;
mod judge;
mod release;
mod situation;

pub use bounds::{covers, violates};
pub use judge::{Admission, Verdict, foresee, judge};
pub use release::{Appended, LastCheck, NotSent, Permit, release};
pub use situation::{
    AttemptStanding, ClockStanding, DisclosureStanding, KeyStanding, MovedFact, Offered, Ownership, OwnershipStanding,
    Reservation, Situation,
};
