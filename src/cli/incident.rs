//! What can be typed about an over-disclosure.

use crate::request::{IncidentRequest, Request};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum Incident {
    /// Reports items that went to recipients who should not have them. Their release stops at once.
    #[command(after_help = "Example:\n  closer incident report --item claim.bill --recipient agent.analyst")]
    Report {
        /// An item that was released; may be repeated.
        #[arg(long = "item", value_name = "ID", required = true)]
        items: Vec<String>,
        /// A recipient that it went to; may be repeated.
        #[arg(long = "recipient", value_name = "IDENTITY", required = true)]
        recipients: Vec<String>,
        /// Who answers for the incident: the user, or the profile's restrictive authority.
        #[arg(long, value_name = "IDENTITY")]
        owner: Option<String>,
    },
    /// What was done about an incident and what stays open.
    Show {
        /// The incident.
        id: String,
    },
    /// Withdraws the items and tells every recipient what it was given.
    Notify {
        /// The incident.
        id: String,
    },
    /// Records that a recipient could not do as it was asked, or was not reached.
    Failed {
        /// The incident.
        id: String,
        /// The recipient.
        #[arg(long, value_name = "IDENTITY")]
        recipient: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
    /// Reconciles an incident: whoever gave no answer is named as an unknown copy.
    Reconcile {
        /// The incident.
        id: String,
        /// Why it may be closed with what is left open.
        #[arg(long)]
        reason: String,
    },
}

impl Incident {
    /// The request that a verb is.
    pub(super) fn request(self) -> Request {
        Request::Incident(match self {
            Self::Report { items, recipients, owner } => IncidentRequest::Report {
                items: items.into_iter().map(Into::into).collect(),
                recipients: recipients.into_iter().map(Into::into).collect(),
                owner: owner.map(Into::into),
            },
            Self::Show { id } => IncidentRequest::Show { incident_id: id.into() },
            Self::Notify { id } => IncidentRequest::Notify { incident_id: id.into() },
            Self::Failed { id, recipient, reason } => {
                IncidentRequest::Failed { incident_id: id.into(), recipient: recipient.into(), reason: reason.into() }
            }
            Self::Reconcile { id, reason } => {
                IncidentRequest::Reconcile { incident_id: id.into(), justification: reason.into() }
            }
        })
    }
}
