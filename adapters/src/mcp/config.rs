//! How a server is started or reached.

use crate::declared::absolute;
use crate::operations::require_private;
use closer_contracts::fault::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A declared MCP server: a program that speaks over its standard input and output, or an address it is reached at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// The program, as an absolute path.
    #[serde(default)]
    pub program: Option<String>,
    /// Or the address of one that is reached over streamable HTTP. `http` is accepted to this machine alone.
    #[serde(default)]
    pub url: Option<String>,
    /// A file that holds a bearer token for the address, as an absolute path; nobody else may read it. Default: none.
    #[serde(default)]
    pub bearer_file: Option<String>,
    /// Its arguments, as they stand.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Environment variables that are set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Environment variables that are handed on from the runtime's own where it has them. All others are withheld.
    #[serde(default = "environment_allowed")]
    pub environment_allowed: Vec<String>,
    /// The folder it runs in, as an absolute path. Default: `/`.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// How long it may take to start and to list its tools, in milliseconds. Default 30 s.
    #[serde(default = "start_ms")]
    pub start_ms: u64,
}

fn environment_allowed() -> Vec<String> {
    ["PATH", "HOME", "LANG"].map(str::to_owned).to_vec()
}

const fn start_ms() -> u64 {
    30_000
}

impl McpServer {
    /// Whether it can be started, as far as that is told without starting it.
    ///
    /// # Errors
    /// `schema_invalid` with the path of what does not fit.
    pub fn check(&self) -> Result<(), Fault> {
        match (&self.program, &self.url) {
            (Some(program), None) => absolute(program, "program")?,
            (None, Some(url)) => {
                let url = reqwest::Url::parse(url).map_err(|error| Fault::schema(error.to_string()).within("url"))?;
                require_private(&url).map_err(|reason| Fault::schema(reason).within("url"))?;
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(Fault::schema("name either a `program` or a `url`").within("program"));
            }
        }
        self.bearer_file.as_ref().map_or(Ok(()), |file| absolute(file, "bearer_file"))?;
        self.working_directory.as_ref().map_or(Ok(()), |folder| absolute(folder, "working_directory"))?;
        crate::declared::positive(self.start_ms, "start_ms")
    }
}
