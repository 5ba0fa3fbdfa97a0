//! The MCP servers behind the runtime: started once each, asked for what they offer, called one tool at a time.
//!
//! A server is another party. What it lists is compared with what was registered before every call, whatever it answers is
//! data, and nothing it asks for is given: no sampling, no roots, no questions to people. An answer is bounded in time and
//! bytes; a second one to the same call, or one that nobody waits for, is dropped. A server that ends is started anew for
//! the next call, and the call that it ended in is never made again by itself.

mod config;
mod forward;
mod listed;
mod session;

pub use config::McpServer;
pub use forward::{NotForwarded, forward};
pub use listed::{Listed, ToolDigest};

pub(crate) use session::{CallError, Session};

use crate::process::ProcessLedger;
use closer_contracts::id::AttemptId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// How many answers are held for whoever called, and how many bytes of them.
const ANSWERS_MAX: usize = 64;
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// The servers by name, and the newest answers of calls.
#[derive(Clone)]
pub struct McpServers {
    inner: Arc<Inner>,
}

struct Inner {
    servers: BTreeMap<String, McpServer>,
    ledger: Arc<dyn ProcessLedger>,
    sessions: AsyncMutex<BTreeMap<String, Arc<Session>>>,
    answers: Mutex<VecDeque<(AttemptId, String)>>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServers").field("servers", &self.inner.servers.keys()).finish_non_exhaustive()
    }
}

impl Default for McpServers {
    fn default() -> Self {
        Self::new(BTreeMap::new(), Self::unrecorded())
    }
}

impl McpServers {
    /// The declared servers; none is started yet.
    #[must_use]
    pub fn new(servers: BTreeMap<String, McpServer>, ledger: Arc<dyn ProcessLedger>) -> Self {
        let inner =
            Inner { servers, ledger, sessions: AsyncMutex::new(BTreeMap::new()), answers: Mutex::new(VecDeque::new()) };
        Self { inner: Arc::new(inner) }
    }

    /// A ledger for servers that are started once, asked and ended.
    #[must_use]
    pub fn unrecorded() -> Arc<dyn ProcessLedger> {
        Arc::new(crate::process::MemoryLedger::default())
    }

    /// The session with a server; started where none runs.
    ///
    /// # Errors
    /// Why it could not be started; nothing was asked of it.
    pub(crate) async fn session(&self, name: &str) -> Result<Arc<Session>, String> {
        let server = self.inner.servers.get(name).ok_or_else(|| format!("no `[[mcp_server]]` is called `{name}`"))?;
        let mut sessions = self.inner.sessions.lock().await;
        if let Some(session) = sessions.get(name).filter(|session| session.is_open()) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::start(name, server, &self.inner.ledger).await?);
        sessions.insert(name.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// What a server lists now, asked anew.
    ///
    /// # Errors
    /// Why it could not be asked, or that it lists more than is taken.
    pub async fn listed(&self, name: &str) -> Result<Vec<Listed>, String> {
        self.session(name).await?.tools().await
    }

    /// Keeps the answer of a call for whoever made it; the oldest give way.
    pub(crate) fn keep(&self, attempt_id: &AttemptId, answer: String) {
        let mut answers = self.inner.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push_back((attempt_id.clone(), answer));
        while answers.len() > ANSWERS_MAX
            || answers.iter().map(|(_, answer)| answer.len()).sum::<usize>() > ANSWERS_BYTES_MAX
        {
            answers.pop_front();
        }
    }

    /// The answer of a call that this process made, as the server gave it: JSON, where it is still held.
    #[must_use]
    pub fn answer(&self, attempt_id: &AttemptId) -> Option<String> {
        let answers = self.inner.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().rev().find(|(known, _)| known == attempt_id).map(|(_, answer)| answer.clone())
    }
}
