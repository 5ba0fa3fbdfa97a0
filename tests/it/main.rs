//! Whole-system tests over the compiled binary: what a newcomer types, what a broken neighbour sends, what a crash leaves.

#[cfg(test)]
mod support;

#[cfg(test)]
mod agents;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod deployment;
#[cfg(test)]
mod disclosure;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod edges;
#[cfg(test)]
mod evaluation;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod guides;
#[cfg(test)]
mod http;
#[cfg(test)]
mod looks;
#[cfg(test)]
mod model;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod obstacles;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod responsibility;
#[cfg(test)]
mod store;
#[cfg(test)]
mod urgent;
#[cfg(test)]
mod web;
#[cfg(test)]
mod wrong_calls;
