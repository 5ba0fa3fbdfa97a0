//! What can be typed.

use super::eval::Eval;
use super::event::Event;
use super::gate::GateArguments;
use super::handoff::Handoff;
use super::hook::Asking;
use super::incident::Incident;
use super::restrict::{Grant, Restrict};
use super::source::Source;
use super::token::Token;
use super::work::Work;
use crate::request::{AnswerDraft, ChangeRequest, ConfirmDraft, KeysRequest, Request, RestrictDraft};
use clap::{Args, Parser, Subcommand};
use closer_contracts::id::ActorId;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The most bytes of a file that is handed over with a verb.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

/// Keeps obligations until they are closed by an adjudicated commit, and tells why.
#[derive(Debug, Parser)]
#[command(
    name = "closer",
    version,
    max_term_width = 110,
    after_help = "\
Examples:
  closer run examples/certificate-renewal            run to rest; stops where a person has to decide
  closer -C examples/certificate-renewal bench list  what waits for an answer
  closer -C examples/certificate-renewal obligation why obligation.mail

Exit codes: 0 done, 1 failed, 2 wrong call, 3 refused, 4 not found, 5 corruption, 6 a person has to answer,
7 the running process does not answer, 8 at rest with open obligations. docs/cli.md has the details."
)]
pub(super) struct Arguments {
    /// The deployment's folder, with its closer.toml; the current folder without it.
    #[arg(short = 'C', long = "deployment", global = true, value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// Answer in JSON, one value on stdout.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// The registered identity to speak as; the deployment's user without it.
    #[arg(long = "as", global = true, value_name = "IDENTITY", value_parser = identity)]
    pub(super) identity: Option<ActorId>,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// An identity as it is typed.
pub(super) fn identity(text: &str) -> Result<ActorId, String> {
    let identity = ActorId::from(text);
    closer_contracts::Check::check(&identity).map_err(|fault| fault.reason.into_owned())?;
    Ok(identity)
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Prepares and founds the space of a deployment.
    #[command(after_help = "Example:\n  closer init examples/certificate-renewal")]
    Init {
        /// The deployment's folder; that of `-C` without it.
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Runs a deployment; founds it first where it is new, goes on from the record where it is not.
    #[command(after_help = "\
Examples:
  closer run examples/certificate-renewal            stops at The Bench (exit code 6)
  closer run examples/certificate-renewal --answer   answers `allow` to whatever is asked
  closer run DIR --until-stopped                     serves until it is interrupted")]
    Run(Run),
    /// Runs a deployment unattended, with its HTTP door open, until it is stopped; founds it first where it is new.
    #[command(after_help = "\
Examples:
  closer serve examples/certificate-renewal          says where it listens and how to sign in
  CLOSER_LOG_FORMAT=json closer serve DIR            what it notices as JSON, one object a line, on stderr")]
    Serve {
        /// The deployment's folder; that of `-C` without it.
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Serves an MCP client over standard input and output: re-offers the registered tools of the deployment's MCP servers, each
    /// call of which is judged before it runs. Starts the space where nobody runs it.
    #[command(after_help = "\
Examples:
  closer gate DIR                                    what a client is configured to start, in place of its servers
  closer gate DIR --as agent.coder --wait-s 60       as another identity; holds a call a minute while a person is asked
  closer gate DIR --observe --days 3                 forwards what has no grant, ungoverned, and keeps what would have been said
  closer -C DIR gate report                          what was observed, and the grants it leads to")]
    Gate(GateArguments),
    /// Bearer tokens of the HTTP door, each bound to a registered identity.
    #[command(subcommand)]
    Token(Token),
    /// Makes a link that signs one browser in, once, as the user or the identity given by --as.
    Signin,
    /// Sources: what their payloads would become.
    #[command(subcommand)]
    Source(Source),
    /// Announces changes.
    #[command(subcommand)]
    Event(Event),
    /// Obligations: what is kept, how it stands and why.
    #[command(subcommand)]
    Obligation(Obligation),
    /// Triggers: what wakes an obligation.
    #[command(subcommand)]
    Reentry(Reentry),
    /// The Bench: what waits for a person's judgment.
    #[command(subcommand)]
    Bench(Bench),
    /// Grants: what may be done, and taking it back.
    #[command(subcommand)]
    Grant(Grant),
    /// Changes that it takes several people to declare: what waits, and joining it.
    #[command(subcommand)]
    Change(ChangeVerb),
    /// The deployment profile in force.
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// The four views: leads, investigations, briefs, and what waits on The Bench.
    Briefcase,
    /// Responsibility: who answers for what, and handing it over.
    #[command(subcommand)]
    Handoff(Handoff),
    /// Restricts at once: a grant, an operation, its targets, or everything.
    #[command(after_help = "\
Examples:
  closer restrict --operation certificate.renew --target x509 local web.pem --reason 'key lost'
  closer restrict --issuer issuer.security --grant grant.renew-web --reason 'no longer wanted'
  closer restrict --issuer issuer.remote --key remote.key --operation certificate.renew --reason 'signed'")]
    Restrict(Restrict),
    /// Lifts a restriction after a reassessment, under the user's authority; no time lifts one, and no issuer its own.
    #[command(after_help = "Example:\n  closer lift restriction-... --reason 'the key was replaced'")]
    Lift {
        /// Which, as `closer restrictions` lists it.
        id: String,
        /// What the reassessment came to.
        #[arg(long)]
        reason: String,
    },
    /// Shows what is used and held of the deployment's budget.
    Budgets,
    /// Lists what is restricted now, and until when each case is to be reconciled.
    Restrictions,
    /// Finds obligations, packets, evidence and receipts in which some words occur.
    Search {
        /// The words.
        words: String,
    },
    /// Studies: does a committed item change the next step, and what does it cost?
    #[command(subcommand)]
    Eval(Eval),
    /// Receipts of commits.
    #[command(subcommand)]
    Receipt(Receipt),
    /// Releases a part of the record to a recipient for a purpose, as far as the profile's rules allow.
    #[command(after_help = "\
Examples:
  closer export --for auditor --purpose audit                 tells what would leave, under a receipt on record
  closer --json export --for auditor --purpose audit > a.json  the packet itself")]
    Export {
        /// The recipient.
        #[arg(long = "for", value_name = "RECIPIENT")]
        recipient: String,
        /// The purpose; without one nothing is released.
        #[arg(long, value_name = "PURPOSE")]
        purpose: Option<String>,
        /// Exactly this item; may be repeated. Everything that the purpose releases without it.
        #[arg(long = "item", value_name = "ID")]
        items: Vec<String>,
    },
    /// Incidents: something was released that should not have been.
    #[command(subcommand)]
    Incident(Incident),
    /// Work that lies with an agent outside: what it is asked, and its answers.
    #[command(subcommand)]
    Work(Work),
    /// An MCP server on standard input and output, with which an agent does its work.
    #[command(after_help = "\
Examples:
  closer mcp DIR --as agent.review     what an MCP client starts; docs/guides/agents.md has the client's side
  closer serve DIR                     serves the same at /mcp, behind tokens with the scope `work`")]
    Mcp {
        /// The deployment's folder; that of `-C` without it.
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Answers a coding agent's hook before it uses a tool of its own: JSON in, a decision out.
    #[command(after_help = "\
Example, as the command of a PreToolUse hook:
  closer hook DIR --as agent.review --agent claude-code

Whatever keeps a verdict from being had is `deny`: a tool that no [[hook]] names, input that cannot be read, a deployment that
nobody runs, a deadline that has passed. What is allowed is on record as advised; whether it happened is not known here.")]
    Hook(Asking),
    /// Walks everything on disk and checks it against its digests.
    Verify,
    /// Throws the derived state away and builds it again from the log.
    Rebuild,
    /// Copies everything durable into a new folder.
    Backup {
        /// A new or empty folder.
        destination: PathBuf,
    },
    /// Restores a backup, byte for byte, as a new store.
    Restore {
        /// The backup's folder.
        backup: PathBuf,
        /// The store's folder, new or empty.
        destination: PathBuf,
    },
    /// Signing keys.
    #[command(subcommand)]
    Keys(Keys),
}

#[derive(Debug, Args)]
pub(super) struct Run {
    /// The deployment's folder; that of `-C` without it.
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
    /// Answer whatever is asked with this option; `allow` without a value.
    #[arg(long, value_name = "OPTION", num_args = 0..=1, default_missing_value = "allow")]
    pub(super) answer: Option<String>,
    /// Print the trace of every obligation at the end, not only with --answer.
    #[arg(long)]
    pub(super) trace: bool,
    /// End when nothing more can happen without an answer or a later date.
    #[arg(long, conflicts_with = "until_stopped")]
    pub(super) until_idle: bool,
    /// Serve until interrupted.
    #[arg(long)]
    pub(super) until_stopped: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Obligation {
    /// Lists what is kept.
    List {
        /// Settled ones too.
        #[arg(long)]
        all: bool,
    },
    /// Shows one obligation and its episodes.
    Show {
        /// Which.
        id: String,
    },
    /// Prints what led to where it stands: one line per stage, each cited by digest.
    Trace {
        /// Which.
        id: String,
    },
    /// Says why it waits, what was refused, and what would wake it.
    Why {
        /// Which.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Reentry {
    /// Lists the installed triggers and what each comes to now.
    List {
        /// Of one obligation only.
        #[arg(long)]
        obligation: Option<String>,
    },
    /// Installs a trigger from a TOML or JSON file, beside those its obligation has.
    Register {
        /// The file; `-` for JSON on stdin.
        file: PathBuf,
    },
    /// Replays the record against a predicate and says when it would have fired.
    #[command(after_help = "\
Examples:
  closer reentry test --json-text '{\"operator\":\"TimeReached\",\"at\":\"2030-01-01T00:00:00Z\"}'
  closer reentry test predicate.toml")]
    Test {
        /// A TOML or JSON file with the predicate; `-` for JSON on stdin.
        #[arg(required_unless_present = "json_text")]
        file: Option<PathBuf>,
        /// The predicate itself, as JSON.
        #[arg(long, conflicts_with = "file")]
        json_text: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Bench {
    /// Lists what waits for an answer.
    List {
        /// Answered ones too.
        #[arg(long)]
        all: bool,
    },
    /// Shows one packet: the question, what it rests on, and the options.
    Show {
        /// Which.
        id: String,
    },
    /// Lists the answers that were given, and what became of each.
    Decisions {
        /// Of this packet only.
        id: Option<String>,
    },
    /// Says what targets show that only a person can look at; without an attempt, lists the effects that wait for that.
    #[command(after_help = "\
Examples:
  closer bench confirm                               what waits to be looked at
  closer bench confirm attempt-1.3.1 attempt-2.4.1   both targets show what was called for
  closer bench confirm attempt-1.3.1 --absent        the target does not show it")]
    Confirm {
        /// The attempts.
        #[arg(value_name = "ATTEMPT")]
        attempts: Vec<String>,
        /// The targets do not show it.
        #[arg(long)]
        absent: bool,
    },
    /// Answers a packet with one of its options.
    #[command(after_help = "\
Examples:
  closer bench decide decision-episode-....1 allow
  closer bench decide decision-episode-....1 allow --amend days=60   this action instead, assessed anew")]
    Decide {
        /// Which.
        id: String,
        /// One of the options it offers.
        option: String,
        /// Allow another action than the one proposed: this parameter with this value (JSON, or plain text).
        #[arg(long, value_name = "PARAMETER=VALUE", value_parser = assigned)]
        amend: Vec<(String, Value)>,
        /// What the target has to show then, where that does not follow from the parameter.
        #[arg(long, value_name = "FIELD=VALUE", value_parser = assigned, requires = "amend")]
        expect: Vec<(String, Value)>,
        /// The key file of whoever answers, where it is established by its signature. The secret stays in this process.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ChangeVerb {
    /// Lists what was declared and waits for others to declare exactly the same, with every change in full.
    List,
    /// Declares exactly what somebody else has declared; the last one it takes has it committed.
    #[command(after_help = "\
Examples:
  closer --as person.ben change list
  closer --as person.ben change join delta-...

Whoever repeats the command of the first person joins too, where it asks for exactly the same.")]
    Join {
        /// Which, as `closer change list` has it.
        id: String,
        /// The key file of whoever joins, where they are established by their signature. The secret stays in this process.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ProfileVerb {
    /// Says of each of the ten questions whether it is answered, and what an open one keeps from being done.
    Check,
}

#[derive(Debug, Subcommand)]
pub(super) enum Receipt {
    /// Lists the receipts, the newest first.
    List,
    /// Shows a receipt.
    Show {
        /// Its id, or the version it led to.
        receipt: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Makes a new key in a new file that only its owner can read, and prints its public half.
    New {
        /// The file.
        file: PathBuf,
    },
    /// Signs a payload for `event send --file`.
    Sign {
        /// The key's file.
        file: PathBuf,
        /// The payload's file.
        payload: PathBuf,
    },
    /// Lists the registered keys.
    List,
    /// Registers another key of an identity, under the user's authority.
    #[command(after_help = "Example:\n  closer keys rotate issuer.security PUBLIC-KEY --scope EVENT")]
    Rotate {
        /// Whose.
        #[arg(value_name = "IDENTITY", value_parser = identity)]
        whose: ActorId,
        /// The public key, as `keys new` prints it.
        public_key: String,
        /// What it may sign, such as EVENT or USER_DECISION; may be repeated.
        #[arg(long = "scope", required = true)]
        scopes: Vec<String>,
        /// The user's key file, where the user is established by a signature. The secret stays in this process.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Revokes a key, under the user's authority.
    Revoke {
        /// Its id.
        key_id: String,
        /// It was compromised: whatever it signed is flagged.
        #[arg(long)]
        compromised: bool,
    },
}

/// `NAME=VALUE`; a value that is no JSON is text.
fn assigned(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}

impl Arguments {
    /// The deployment's folder: that of the verb, that of `-C`, or the current one.
    pub(super) fn place(&self) -> Result<PathBuf, String> {
        let own = match &self.verb {
            Verb::Init { folder }
            | Verb::Serve { folder }
            | Verb::Run(Run { folder, .. })
            | Verb::Gate(GateArguments { folder, .. })
            | Verb::Mcp { folder }
            | Verb::Hook(Asking { folder, .. }) => folder.as_ref(),
            Verb::Token(_)
            | Verb::Signin
            | Verb::Source(_)
            | Verb::Restrictions
            | Verb::Search { .. }
            | Verb::Budgets => None,
            Verb::Event(_)
            | Verb::Obligation(_)
            | Verb::Reentry(_)
            | Verb::Bench(_)
            | Verb::Grant(_)
            | Verb::Change(_)
            | Verb::Profile(_)
            | Verb::Briefcase
            | Verb::Handoff(_)
            | Verb::Restrict(_)
            | Verb::Lift { .. }
            | Verb::Receipt(_)
            | Verb::Export { .. }
            | Verb::Incident(_)
            | Verb::Work(_)
            | Verb::Verify
            | Verb::Rebuild
            | Verb::Backup { .. }
            | Verb::Restore { .. }
            | Verb::Eval(_)
            | Verb::Keys(_) => None,
        };
        match (own, &self.directory) {
            (Some(own), Some(named)) if !is_same(own, named) => {
                Err(format!("`-C {}` and `{}` are two deployments; name one", named.display(), own.display()))
            }
            (Some(own), _) => Ok(own.clone()),
            (None, named) => Ok(named.clone().unwrap_or_else(|| PathBuf::from("."))),
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    real(one) == real(other)
}

/// Reads a file that is handed over, or stdin.
pub(super) fn text_of(file: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    let shown = file.display();
    let read = match file == Path::new("-") {
        true => std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| format!("{shown}: {error}"))?;
    match text.len() as u64 <= FILE_BYTES_MAX {
        true => Ok(text),
        false => Err(format!("{shown} has more than {FILE_BYTES_MAX} bytes")),
    }
}

/// A TOML or JSON file, by its name.
fn value_of(file: &Path) -> Result<Value, String> {
    let text = text_of(file)?;
    match file.extension().is_some_and(|extension| extension == "toml") {
        true => toml::from_str(&text).map_err(|error| format!("{}: {}", file.display(), error.message())),
        false => serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display())),
    }
}

impl Verb {
    /// Whether it is made in somebody's name, which `--as` says.
    pub(super) const fn speaks(&self) -> bool {
        match self {
            Self::Init { .. } | Self::Run(_) | Self::Serve { .. } | Self::Restore { .. } | Self::Eval(_) => false,
            Self::Keys(Keys::New { .. } | Keys::Sign { .. }) => false,
            Self::Token(_)
            | Self::Gate(_)
            | Self::Signin
            | Self::Source(_)
            | Self::Restrictions
            | Self::Search { .. }
            | Self::Budgets
            | Self::Event(_)
            | Self::Obligation(_)
            | Self::Reentry(_)
            | Self::Bench(_)
            | Self::Change(_)
            | Self::Profile(_)
            | Self::Briefcase
            | Self::Handoff(_)
            | Self::Grant(_)
            | Self::Restrict(_)
            | Self::Lift { .. }
            | Self::Receipt(_)
            | Self::Export { .. }
            | Self::Incident(_)
            | Self::Work(_)
            | Self::Mcp { .. }
            | Self::Hook(_)
            | Self::Verify
            | Self::Rebuild
            | Self::Backup { .. }
            | Self::Keys(Keys::List | Keys::Rotate { .. } | Keys::Revoke { .. }) => true,
        }
    }

    /// The key file that the verb is to be signed with here, where one is named.
    pub(super) fn key(&self) -> Option<PathBuf> {
        if let Self::Bench(Bench::Decide { key, .. })
        | Self::Keys(Keys::Rotate { key, .. })
        | Self::Change(ChangeVerb::Join { key, .. }) = self
        {
            return key.clone();
        }
        None
    }

    /// The request that a verb is for the identity that was named; the verbs that are none are performed elsewhere.
    pub(super) fn request(self, identity: Option<&ActorId>) -> Result<Request, String> {
        Ok(match self {
            Self::Obligation(Obligation::List { all }) => Request::ObligationList { all },
            Self::Obligation(Obligation::Show { id }) => Request::ObligationShow { obligation_id: id.into() },
            Self::Obligation(Obligation::Trace { id }) => Request::ObligationTrace { obligation_id: id.into() },
            Self::Obligation(Obligation::Why { id }) => Request::ObligationWhy { obligation_id: id.into() },
            Self::Reentry(Reentry::List { obligation }) => {
                Request::ReentryList { obligation_id: obligation.map(Into::into) }
            }
            Self::Reentry(Reentry::Register { file }) => Request::ReentryRegister { reentry: value_of(&file)? },
            Self::Reentry(Reentry::Test { file, json_text }) => Request::ReentryTest {
                predicate: match (file, json_text) {
                    (Some(file), _) => value_of(&file)?,
                    (None, Some(text)) => serde_json::from_str(&text).map_err(|error| error.to_string())?,
                    (None, None) => return Err("give a file or --json-text".to_owned()),
                },
            },
            Self::Bench(bench) => bench.request(),
            Self::Budgets => Request::BudgetShow,
            Self::Restrictions => Request::RestrictionList,
            Self::Lift { id, reason } => Request::RestrictionLift { restriction_id: id.into(), reason: reason.into() },
            Self::Search { words } => Request::Search { words },
            Self::Receipt(Receipt::List) => Request::ReceiptList,
            Self::Event(event) => event.request(identity)?,
            Self::Grant(Grant::List { all }) => Request::GrantList { all },
            Self::Grant(Grant::Show { id }) => Request::GrantShow { grant_id: id.into() },
            Self::Grant(Grant::Revoke { id, reason }) => Request::Restrict(RestrictDraft::of_grant(id.into(), reason)),
            Self::Change(change) => change.request(),
            Self::Profile(ProfileVerb::Check) => Request::ProfileCheck,
            Self::Briefcase => Request::BriefcaseShow,
            Self::Handoff(handoff) => handoff.request(),
            Self::Receipt(Receipt::Show { receipt }) => Request::ReceiptShow { receipt },
            Self::Export { recipient, purpose, items } => Request::Export {
                recipient: recipient.into(),
                purpose: purpose.map(Into::into),
                items: items.into_iter().map(Into::into).collect(),
            },
            Self::Incident(incident) => incident.request(),
            Self::Work(work) => work.request()?,
            Self::Verify => Request::Verify,
            Self::Rebuild => Request::Rebuild,
            Self::Backup { destination } => {
                let absolute = std::path::absolute(&destination).map_err(|error| error.to_string())?;
                Request::Backup { destination: absolute.to_string_lossy().into_owned() }
            }
            Self::Keys(Keys::List) => Request::Keys(KeysRequest::List),
            Self::Keys(Keys::Rotate { whose, public_key, scopes, key: _ }) => {
                Request::Keys(KeysRequest::Rotate { identity: whose, public_key, signing_scope: scopes })
            }
            Self::Keys(Keys::Revoke { key_id, compromised }) => {
                Request::Keys(KeysRequest::Revoke { key_id: key_id.into(), compromised })
            }
            Self::Init { .. }
            | Self::Run(_)
            | Self::Serve { .. }
            | Self::Gate(_)
            | Self::Mcp { .. }
            | Self::Hook(_)
            | Self::Token(_)
            | Self::Source(_)
            | Self::Signin
            | Self::Restrict(_)
            | Self::Restore { .. }
            | Self::Eval(_)
            | Self::Keys(Keys::New { .. } | Keys::Sign { .. }) => {
                return Err("this verb asks no space".to_owned());
            }
        })
    }
}

impl ChangeVerb {
    fn request(self) -> Request {
        Request::Change(match self {
            Self::List => ChangeRequest::List,
            Self::Join { id, key: _ } => ChangeRequest::Join { delta_id: id.into() },
        })
    }
}

impl Bench {
    fn request(self) -> Request {
        let named = |values: Vec<(String, Value)>| values.into_iter().map(|(name, value)| (name.into(), value));
        match self {
            Self::List { all } => Request::BenchList { all },
            Self::Show { id } => Request::BenchShow { decision_id: id.into() },
            Self::Confirm { attempts, absent } => Request::BenchConfirm(ConfirmDraft {
                attempt_ids: attempts.into_iter().map(Into::into).collect(),
                shows: !absent,
            }),
            Self::Decisions { id } => Request::DecisionList { packet_id: id.map(Into::into) },
            Self::Decide { id, option, amend, expect, key: _ } => Request::BenchDecide(AnswerDraft {
                decision_id: id.into(),
                option,
                packet_digest: None,
                amend: named(amend).collect(),
                expect: named(expect).collect(),
            }),
        }
    }
}
