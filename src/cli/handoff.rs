//! The verbs about who answers for what.

use crate::request::{HandoffDraft, HandoffRequest, Request};
use clap::Subcommand;
use closer_contracts::handoff::Owed;
use closer_contracts::id::Text;

#[derive(Debug, Subcommand)]
pub(super) enum Handoff {
    /// Lists who answers for every open obligation, and what was offered.
    List,
    /// Writes down what a responsibility takes of whoever holds it; prints the contract's id.
    Contract {
        /// Something the recipient is registered to be able to do; may be repeated.
        #[arg(long = "capability", value_name = "CAPABILITY")]
        capabilities: Vec<String>,
        /// A record that the handoff has to cite; may be repeated.
        #[arg(long, value_name = "ID")]
        context: Vec<String>,
        /// What is owed when it is given back; may be repeated.
        #[arg(long, value_name = "results|evidence|unsettled_attempts", value_parser = owed)]
        owes: Vec<Owed>,
    },
    /// Offers an obligation that you answer for to somebody else.
    #[command(after_help = "\
Example:
  closer handoff offer obligation.mail --to user.deputy --contract contract-... --hours 48")]
    Offer {
        /// The obligation.
        obligation: String,
        /// To whom.
        #[arg(long, value_name = "IDENTITY")]
        to: String,
        /// The contract, as `handoff contract` prints it.
        #[arg(long, value_name = "ID")]
        contract: String,
        /// What is owed when it is given back; the same contract without it.
        #[arg(long, value_name = "ID")]
        return_contract: Option<String>,
        /// A record that is handed over as context; may be repeated.
        #[arg(long, value_name = "ID")]
        context: Vec<String>,
        /// For how many hours; for no limited time without it.
        #[arg(long)]
        hours: Option<u64>,
        /// What is handed over, in words.
        #[arg(long, default_value = "Keeps the obligation.")]
        responsibility: String,
    },
    /// Accepts a handoff as its recipient; you answer for the obligation from then on.
    #[command(after_help = "Example:\n  closer --as user.deputy handoff accept handoff-...")]
    Accept {
        /// Which.
        id: String,
    },
}

fn owed(word: &str) -> Result<Owed, String> {
    let known = Owed::ALL.iter().copied().find(|owed| owed.as_str() == word);
    known.ok_or_else(|| {
        format!("`{word}` is none of {}", Owed::ALL.iter().map(|owed| owed.as_str()).collect::<Vec<_>>().join(", "))
    })
}

impl Handoff {
    pub(super) fn request(self) -> Request {
        let ids = |ids: Vec<String>| ids.into_iter().map(Into::into).collect();
        Request::Handoff(match self {
            Self::List => HandoffRequest::List,
            Self::Contract { capabilities, context, owes } => HandoffRequest::Contract {
                capabilities: capabilities.into_iter().map(Into::into).collect(),
                context: ids(context),
                owes,
            },
            Self::Offer { obligation, to, contract, return_contract, context, hours, responsibility } => {
                HandoffRequest::Offer(HandoffDraft {
                    obligation_id: obligation.into(),
                    recipient: to.into(),
                    responsibility: Text::from(responsibility),
                    contract: contract.into(),
                    return_contract: return_contract.map(Into::into),
                    context: ids(context),
                    lease_ms: hours.map(|hours| hours.saturating_mul(3_600_000)),
                })
            }
            Self::Accept { id } => HandoffRequest::Accept { handoff_id: id.into() },
        })
    }
}
