//! The hard races, every order of them: a model checker tries all interleavings of a few moves, and each is carried out by the
//! core itself. Nothing of the protocol is restated here; a state is the path to it, carried out.

#[cfg(test)]
mod ground;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod races;
