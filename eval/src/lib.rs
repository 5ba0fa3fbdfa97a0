//! Evaluation that can be published: paired worlds, equal resources, honest denominators. Spec: §10, §11.
//!
//! Deliberately lacks any way to leave a case out: a report is made of the enrolment, not of what was completed.

pub mod accounts;
pub mod artifacts;
pub mod bundle;
pub mod calibration;
pub mod comparison;
pub mod effort;
pub mod file;
pub mod forecast;
pub mod freeze;
pub mod item;
pub mod offering;
pub mod own;
pub mod packet;
pub mod participant;
pub mod plan;
pub mod procedure;
pub mod report;
pub mod resource;
pub mod runner;
pub mod score;
pub mod statistics;
pub mod step;
pub mod store;
pub mod suite;
pub mod truth;
pub mod value;
pub mod world;
