//! The desks: how each stage's payload is drafted. Drafting is the protocol's; calling a port is what is added here.

mod assessor;
mod briefcase;
mod commit;
mod conference;
mod disclosure;
mod distiller;
mod monitor;
mod observer;
mod participants;
mod planner;
mod routing;

pub(crate) use assessor::Assessor;
pub(crate) use briefcase::Briefcase;
pub(crate) use commit::Commit;
pub(crate) use conference::Conference;
pub(crate) use disclosure::Disclosure;
pub(crate) use distiller::Distiller;
pub(crate) use monitor::Monitor;
pub(crate) use observer::Observer;
pub(crate) use participants::Participants;
pub(crate) use planner::Planner;
pub(crate) use routing::Routing;

use crate::service::{Attended, Charge, Draft};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::{Fault, Payload};

/// A payload as a draft.
fn payload(payload: Payload) -> Draft {
    Draft::Payload(Box::new(payload))
}

/// A charge that is not this desk's.
fn misdirected(charge: &Charge) -> Attended {
    tracing::error!(stage = ?charge.stage, "a stage was brought to the wrong desk");
    Attended::Drafted(Err(Fault::new(RefusalCode::WrongPhase, "the stage belongs to another desk")))
}

/// Something that a charge's view does not hold.
fn missing(what: &'static str) -> Fault {
    Fault::new(RefusalCode::UnresolvedRef, what)
}
