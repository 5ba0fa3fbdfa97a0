//! A language model behind any endpoint that speaks the OpenAI chat protocol.
//!
//! The model is asked once, with its packet as data and a contract for its output; what it says is held to that contract
//! strictly ([`output`]), and whatever does not meet it is a failure with a code. Nothing is repaired, nothing is asked again,
//! and a connection that was refused is not tried twice. What it used is told as far as the endpoint measured it.
//!
//! Deliberately absent: tools. A model proposes and assesses; what becomes of that is the protocol's.

mod call;
mod output;
mod prompt;

use super::{answer, no_answer};
use closer_contracts::conference::MoveAnswer;
use closer_contracts::fault::Fault;
use closer_contracts::id::Text;
use closer_contracts::refs::Amounts;
use closer_contracts::word_enum;
use closer_contracts::work::{Work, WorkResult};
use closer_protocol::incident::{Answer as Withdrawn, ScopedNotice};
use closer_protocol::port::{NoAnswer, Participant, Pending, Said};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Contract of participant `model`: an endpoint, a model, a key by reference, and what each role may say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The base address, such as `http://127.0.0.1:8080/v1/`.
    pub endpoint: String,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// The name under which the endpoint answers for it. Where it is given, an answer under another name does not count.
    #[serde(default)]
    pub served_as: Option<String>,
    /// The environment variable that holds the key. The key itself stands nowhere.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<std::path::PathBuf>,
    /// How long one call may take, in milliseconds. Default 60 s.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// How many tokens it may answer with. Default 1024.
    #[serde(default = "tokens_max")]
    pub tokens_max: u32,
    /// The seed to send, where the endpoint takes one.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether to send the output contract as a JSON Schema as well. Default true.
    #[serde(default = "with_schema")]
    pub schema: bool,
    /// What it may say in a role; a role that is not listed may say everything.
    #[serde(default)]
    pub roles: BTreeMap<String, OutputContract>,
}

const fn timeout_ms() -> u64 {
    60_000
}

const fn tokens_max() -> u32 {
    1_024
}

const fn with_schema() -> bool {
    true
}

word_enum! {
    /// One list of an answer.
    pub enum List {
        /// What evidence says about propositions.
        Assessments = "assessments",
        /// The propositions that it claims.
        Claims = "claims",
        /// The actions that it proposes.
        Proposals = "proposals",
        /// What it objects to.
        Objections = "objections",
        /// What it leaves open.
        Unresolved = "unresolved",
    }
}

/// What an answer in one role consists of: exactly these lists, each no longer than this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputContract {
    /// The lists. Default: all.
    #[serde(default = "all_lists")]
    pub lists: Vec<List>,
    /// How many items each may have. Default 8.
    #[serde(default = "items_max")]
    pub items_max: u32,
}

fn all_lists() -> Vec<List> {
    List::ALL.to_vec()
}

const fn items_max() -> u32 {
    8
}

impl Default for OutputContract {
    fn default() -> Self {
        Self { lists: all_lists(), items_max: items_max() }
    }
}

impl Model {
    /// Whether it can be asked at all.
    ///
    /// # Errors
    /// `schema_invalid` with the path of what does not fit.
    pub fn check(&self) -> Result<(), Fault> {
        let http = self.endpoint.starts_with("http://") || self.endpoint.starts_with("https://");
        if !http || !self.endpoint.ends_with('/') {
            let reason = "the base address begins with `http://` or `https://` and ends with a slash";
            return Err(Fault::schema(reason).within("endpoint"));
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return Err(Fault::schema("the key stands in one place").within("key_file"));
        }
        crate::declared::positive(self.timeout_ms, "timeout_ms")?;
        crate::declared::positive(u64::from(self.tokens_max), "tokens_max")
    }

    fn contract(&self, work: &Work) -> OutputContract {
        self.roles.get(work.role.as_str()).cloned().unwrap_or_default()
    }

    async fn answered(&self, work: &Work) -> Result<Said, NoAnswer> {
        let contract = self.contract(work);
        let (text, used) = self.ask(&prompt::for_result(work, &contract)?).await?;
        let said: Result<WorkResult, Fault> = output::result(work, &contract, &text);
        told(said, used)
    }

    async fn moved(&self, work: &Work) -> Result<Said, NoAnswer> {
        let (text, used) = self.ask(&prompt::for_move(work)?).await?;
        let said: Result<MoveAnswer, Fault> = output::made(work, &text);
        told(said, used)
    }
}

/// What the model said, with what it used, whether or not it counts.
fn told<T: closer_contracts::Check + Serialize>(said: Result<T, Fault>, used: Amounts) -> Result<Said, NoAnswer> {
    let said = said.map_err(|fault| super::malformed(&fault)).and_then(|said| answer(&said));
    match said {
        Ok(said) => Ok(Said { used, ..said }),
        Err(no_answer) => Err(NoAnswer { used, ..no_answer }),
    }
}

impl Participant for Model {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(self.answered(work))
    }

    fn turn<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(self.moved(work))
    }

    fn withdraw<'a>(&'a self, _: &'a ScopedNotice) -> Pending<'a, Option<(Withdrawn, Text)>> {
        let reason = Text::from("what the endpoint keeps of a packet is not known");
        Box::pin(std::future::ready(Some((Withdrawn::Failed, reason))))
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
