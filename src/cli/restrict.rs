//! What can be typed about grants and restrictions, and a restriction that its issuer signs here.

use super::arguments::identity;
use super::exit::Exit;
use super::talk::{self, Talk};
use crate::deployment::Deployment;
use crate::error::Error;
use crate::request::{Answer, Outcome, Request, RestrictDraft};
use clap::{Args, Subcommand};
use closer_adapters::keys::SigningKeyFile;
use closer_contracts::audit::RestrictionStatement;
use closer_contracts::auth::SigningScope;
use closer_contracts::canonical;
use closer_contracts::id::{ActorId, Text};
use closer_contracts::refs::TargetPattern;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Grant {
    /// Lists the grants in force.
    List {
        /// Revoked and expired ones too.
        #[arg(long)]
        all: bool,
    },
    /// Shows one grant.
    Show {
        /// Which.
        id: String,
    },
    /// Revokes a grant at once: the user under authority of their own, an issuer under its appointment.
    #[command(after_help = "Example:\n  closer grant revoke grant.renew-web --reason 'no longer wanted'")]
    Revoke {
        /// Which.
        id: String,
        /// Why.
        #[arg(long)]
        reason: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Restrict {
    /// Who restricts: the user, or an issuer that the profile appoints. `--as` says the same.
    #[arg(long, value_parser = identity)]
    pub(super) issuer: Option<ActorId>,
    /// The issuer's key file, where it is established by its signature.
    #[arg(long, value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// Revoke this grant.
    #[arg(long, conflicts_with_all = ["operation", "target", "obligation"])]
    grant: Option<String>,
    /// Suspend this operation.
    #[arg(long)]
    operation: Option<String>,
    /// Only on this target: its type, account and address; a `*` at the end of the last two covers what begins so.
    #[arg(long, num_args = 3, value_names = ["TYPE", "ACCOUNT", "ADDRESS"])]
    target: Vec<String>,
    /// Suspend everything for this obligation.
    #[arg(long, conflicts_with_all = ["operation", "target"])]
    obligation: Option<String>,
    /// Why.
    #[arg(long)]
    reason: String,
    /// Within how many minutes it is reviewed; without it, the longest that the appointment allows.
    #[arg(long, value_name = "MINUTES")]
    reconcile_within: Option<u64>,
}

impl Restrict {
    /// What it asks for.
    pub(super) fn draft(self) -> RestrictDraft {
        let mut words = self.target.into_iter();
        let targets = match (words.next(), words.next(), words.next()) {
            (Some(r#type), Some(account), Some(address)) => {
                Some(TargetPattern { r#type: r#type.into(), account: account.into(), address: address.into() })
            }
            _ => None,
        };
        RestrictDraft {
            grant_id: self.grant.map(Into::into),
            operation: self.operation.map(Into::into),
            targets,
            obligation_id: self.obligation.map(Into::into),
            reason: Text::from(self.reason),
            reconcile_within_ms: self.reconcile_within.map(|minutes| minutes.saturating_mul(60_000)),
        }
    }
}

/// Restricts in somebody's name. Where a key is named, the statement is written by the space, signed here and handed in:
/// the secret stays in this process.
pub(super) async fn restrict(
    directory: &Path,
    identity: Option<ActorId>,
    restrict: Restrict,
    talk: Talk,
) -> Result<Exit, Error> {
    let issuer = match (&identity, &restrict.issuer) {
        (Some(identity), Some(issuer)) if identity != issuer => {
            return Ok(talk.misused(&format!("--issuer says {issuer} and --as says {identity}")));
        }
        (identity, issuer) => issuer.clone().or_else(|| identity.clone()),
    };
    let Some(file) = restrict.key.clone() else {
        return talk::ask(directory, issuer, Request::Restrict(restrict.draft()), talk).await;
    };
    let Some(issuer) = issuer else {
        return Ok(talk.misused("a key is somebody's: name the issuer with --issuer"));
    };
    let key = SigningKeyFile::load(&file).map_err(|error| Error::World(error.to_string()))?;
    let store = Deployment::store_of(directory)?;
    if let Some(answer) = talk::unfounded(&store, directory)? {
        return Ok(talk.tell(&answer));
    }
    let draft = Request::RestrictDraft { issuer: issuer.clone(), draft: restrict.draft() };
    let drafted = talk::answered(&store, None, draft).await?;
    if drafted.outcome != Outcome::Done {
        return Ok(talk.tell(&drafted));
    }
    let statement = drafted.data.get("statement").cloned().unwrap_or_default();
    let statement: RestrictionStatement = canonical::from_value(statement)?;
    let digest = canonical::digest_of(&statement)?;
    let signature = key.sign(digest, SigningScope::RestrictionStatement, &issuer)?;
    let signed = Request::StatementSend { statement, key_id: key.key_id(), signature };
    let answer: Answer = talk::answered(&store, None, signed).await?;
    Ok(talk.tell(&answer))
}
