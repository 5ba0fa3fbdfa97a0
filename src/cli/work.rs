//! The verbs of an agent outside about its own work.

use super::arguments::text_of;
use crate::request::{Request, WorkRequest};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  closer --as agent.review work list
  closer --as agent.review --json work take > packet.json
  closer --as agent.review work return work-episode-....1 result.json")]
pub(super) enum Work {
    /// Lists the work that waits for its answer.
    List {
        /// Settled work too.
        #[arg(long)]
        all: bool,
    },
    /// Takes work up, once, and shows its packet.
    Take {
        /// Which; that which has waited longest without it.
        id: Option<String>,
    },
    /// Shows the packet of work again.
    Read {
        /// Which.
        id: String,
    },
    /// Hands an answer in: one RESULT in JSON, or one move where a move is asked for. It is answered once.
    Return {
        /// To which work.
        id: String,
        /// The answer's file; `-` for stdin.
        file: PathBuf,
    },
    /// Says what became of work, and why.
    Why {
        /// Which.
        id: String,
    },
    /// Says where a packet on The Bench stands that an answer led to.
    Packet {
        /// Which.
        id: String,
    },
}

impl Work {
    pub(super) fn request(self) -> Result<Request, String> {
        Ok(Request::Work(match self {
            Self::List { all } => WorkRequest::List { all },
            Self::Take { id } => WorkRequest::Take { work_id: id.map(Into::into) },
            Self::Read { id } => WorkRequest::Read { work_id: id.into() },
            Self::Return { id, file } => WorkRequest::Return { work_id: id.into(), answer: text_of(&file)? },
            Self::Why { id } => WorkRequest::Why { work_id: id.into() },
            Self::Packet { id } => WorkRequest::Packet { decision_id: id.into() },
        }))
    }
}
