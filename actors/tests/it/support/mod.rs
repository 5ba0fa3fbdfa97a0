//! A small deployment on the real store, and the world around it.

mod deployment;
mod inquiry;
mod space;
mod world;

pub(crate) use deployment::*;
pub(crate) use inquiry::*;
pub(crate) use space::*;
pub(crate) use world::*;
