//! The pure stages that judge without deciding: matching, predicates, sufficiency, timers and traces.

mod fixture;
mod matching;
mod predicates;
mod sufficiency;
mod timers;
mod trace;
