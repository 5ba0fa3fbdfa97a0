//! Studies from the freeze to the report, on real stores and with real processes.

#[cfg(test)]
mod freezing;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod procedures;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod studies;
#[cfg(test)]
mod support;
