//! The store as its users see it.

#[cfg(test)]
mod append;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod custody;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod derived;
#[cfg(test)]
mod full;
#[cfg(test)]
mod power;
#[cfg(test)]
mod versions;
