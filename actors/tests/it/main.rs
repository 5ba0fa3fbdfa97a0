//! The actors over the real store: whole loops, restarts at every boundary, panics, bounds. The world is a map in memory.

mod support;

mod bounds;
mod concurrency;
mod deaths;
mod effects;
mod judgment;
mod loops;
mod restarts;
