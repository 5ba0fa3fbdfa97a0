//! Requirement rows of the pure core, shown on a deterministic space: each test drives the same sequence as the actors do.

#[cfg(test)]
mod actions;
#[cfg(test)]
mod adjudication;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod boundaries;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod cancels;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod conference;
#[cfg(test)]
mod conferring;
#[cfg(test)]
mod confessions;
#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod domains;
#[cfg(test)]
mod events;
#[cfg(test)]
mod follow_ups;
#[cfg(test)]
mod handoffs;
#[cfg(test)]
mod incidents;
#[cfg(test)]
mod inquiry;
#[cfg(test)]
mod intake;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod many;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod observing;
#[cfg(test)]
mod organization;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod people;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod races;
#[cfg(test)]
mod readbacks;
#[cfg(test)]
mod records;
#[cfg(test)]
mod relations;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod resting;
#[cfg(test)]
mod reviews;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod scheduling;
#[cfg(test)]
mod separations;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terms;
#[cfg(test)]
mod the_loop;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod urgent;
#[cfg(test)]
mod work;
#[cfg(test)]
mod worked_example;
