//! Tests of the contracts, by what they show.

mod action;
mod adjudication;
mod audit;
mod authentication;
mod bounds;
mod canonical;
mod conference;
mod delta;
mod envelope;
mod every_bound;
mod evidence;
mod fields;
mod item;
mod message_map;
mod properties;
mod reentry;
mod refusals;
mod review;
mod schemas;
mod support;
mod vectors;
mod words;
mod work;
