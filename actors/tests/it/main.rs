//! The actors over the real store: whole loops, restarts at every boundary, panics, bounds. The world is a map in memory.

#[cfg(test)]
mod support;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod conferences;
#[cfg(test)]
mod deaths;
#[cfg(test)]
mod effects;
#[cfg(test)]
mod judgment;
#[cfg(test)]
mod kernel;
#[cfg(test)]
mod loops;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod restarts;
