//! The pure stages of the loop, one file each, and the sequence that decides.
//!
//! event → match → work → action → monitor → dispatch → readback → adjudicate → delta → commit → receipt
//!
//! Two kinds of functions live here. *Drafting* functions compose the next payload of a stage from the view; any actor may
//! call them. *Deciding* functions run only inside [`sequence`], one input after another, and say what is recorded, what is
//! refused and which effects may follow once the records are durable. Both take values and give values: no clock, no
//! randomness, no I/O. Time and fresh ids arrive inside inputs.

pub mod entry;
pub mod port;
pub mod streams;

mod batch;
pub mod ledger;
pub mod view;

pub mod input;
pub mod services;

pub mod event;
pub mod matching;
pub mod predicate;
pub mod sufficiency;

pub mod disclose;
pub mod incident;
pub mod work;

pub mod catalogue;
pub mod coalition;
pub mod conference;

pub mod action;
pub mod advice;
pub mod call;
pub mod dispatch;
pub mod observe;
pub mod readback;

pub mod adjudicate;
pub mod commit;
pub mod delta;

mod artifact;
pub mod bench;
pub mod briefcase;
pub mod cancel;
pub mod people;
pub mod priority;
pub mod review;
pub mod route;
pub mod tick;
pub mod timers;
pub mod urgent;

pub mod handoff;

pub mod dormancy;
pub mod episode;
pub mod follow_up;
pub mod genesis;
pub mod intake;
pub mod sequence;
pub mod trace;

pub use batch::Decided;
pub use entry::Entry;
pub use input::{Input, Moment, Reply, Step, Submission};
pub use view::View;

/// An id made from another, so that deciding needs no fresh ones: `prefix-id`, or its digest where that would be too long.
#[must_use]
pub fn derived_id(prefix: &str, id: &str) -> String {
    let plain = format!("{prefix}-{id}");
    match plain.len() <= closer_contracts::id::ID_BYTES_MAX {
        true => plain,
        false => {
            let digest = closer_contracts::Digest::of(id.as_bytes()).to_string();
            format!("{prefix}-{}", digest.trim_start_matches("sha256:"))
        }
    }
}
