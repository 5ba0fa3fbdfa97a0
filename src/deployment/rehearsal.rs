//! The founding, decided once before anything is prepared and thrown away: whatever the core would refuse is told by its
//! place in the file.

use super::declared::Declared;
use super::paths;
use super::source::{Misfit, Source};
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::record::{ClaimKey, Head, Reads, StreamId};
use closer_monitor::ClockStanding;
use closer_protocol::Moment;
use closer_protocol::genesis::{self, Founding};

/// A log in which nothing is.
struct Empty;

impl Reads for Empty {
    fn head(&self, _: &StreamId) -> Option<Head> {
        None
    }

    fn claim(&self, _: &ClaimKey) -> Option<Digest> {
        None
    }
}

/// Decides the founding on an empty log.
pub(super) fn rehearse(source: &Source, declared: &Declared, founding: &Founding) -> Result<(), Misfit> {
    let at = Moment { now: declared.now.clone(), clock: ClockStanding::Reliable };
    match genesis::found(founding, &at, &Empty) {
        Ok(_) => Ok(()),
        Err(fault) => {
            let field = place(declared, &fault);
            Err(source.misfit(field, format!("{}: {}", fault.code.as_str(), fault.reason)))
        }
    }
}

/// The core names what it refuses by id; ids hold dots, so that the longest that is known counts, and what follows it is
/// a path within.
fn place(declared: &Declared, fault: &Fault) -> String {
    let path = fault.path.strip_prefix("obligations.").unwrap_or(&fault.path);
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]).collect::<Vec<_>>();
    let known = ends.into_iter().rev().find_map(|end| {
        let (id, rest) = path.split_at(end);
        Some((declared.place_of(id)?, rest.trim_start_matches('.')))
    });
    match known {
        Some((place, within)) if declared.at(&paths::join(&place, within)).is_some() => paths::join(&place, within),
        Some((place, _)) => place,
        None if declared.at(path).is_some() => path.to_owned(),
        None => "profile".to_owned(),
    }
}
