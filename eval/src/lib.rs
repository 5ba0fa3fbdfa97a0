//! Evaluation that can be published: paired worlds, equal resources, honest denominators. Spec: §10, §11.
//!
//! Deliberately lacks any way to leave a case out: a report is made of the enrolment, not of what was completed.

pub mod accounts;
pub mod calibration;
pub mod statistics;

pub use accounts::{Accounts, Fate, Refused};
