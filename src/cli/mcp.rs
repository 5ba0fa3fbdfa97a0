//! An MCP server on standard input and output, for one agent.

use super::exit::Exit;
use super::talk::{Talk, answered, unfounded};
use crate::deployment::Deployment;
use crate::error::Error;
use crate::mcp::{Asks, serve_stdio};
use crate::request::{Answer, Request};
use closer_contracts::id::ActorId;
use closer_protocol::port::Pending;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use std::path::{Path, PathBuf};

/// Asks whoever holds the store, as one agent; the store itself where nobody does.
struct Local {
    store: PathBuf,
    identity: ActorId,
}

impl Asks for Local {
    fn ask<'a>(&'a self, _: &'a RequestContext<RoleServer>, request: Request) -> Pending<'a, Answer> {
        Box::pin(async move {
            let answer = answered(&self.store, Some(self.identity.clone()), request).await;
            answer.unwrap_or_else(|error| Answer::failed(&error))
        })
    }
}

pub(super) async fn mcp(directory: &Path, identity: Option<ActorId>, talk: Talk) -> Result<Exit, Error> {
    let Some(identity) = identity else {
        return Ok(talk.misused("say for which agent: `closer mcp DIR --as IDENTITY`, one of `kind = \"agent\"`"));
    };
    let store = Deployment::store_of(directory)?;
    if let Some(answer) = unfounded(&store, directory)? {
        return Ok(talk.tell(&answer));
    }
    serve_stdio(Local { store, identity }).await?;
    Ok(Exit::Ok)
}
