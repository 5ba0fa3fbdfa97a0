//! The pure stages that judge without deciding: matching, predicates, sufficiency, timers and traces.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod matching;
#[cfg(test)]
mod predicates;
#[cfg(test)]
mod relations;
#[cfg(test)]
mod sufficiency;
#[cfg(test)]
mod timers;
#[cfg(test)]
mod trace;
