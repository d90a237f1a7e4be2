//! `headgate reset`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{client::ServerOptions, failure::Failure};

/// Reset the usage of a subject.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Args, Serialize)]
struct Subject {
    /// Scope of the subject: service, user or endpoint.
    scope: String,
    /// Identifier of the subject.
    identifier: String,
    /// Reason for the audit log.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResetResponse {
    message: String,
}

impl Reset {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.options.connect()?.send(Method::POST, &["reset"], &self.subject)?;
        let ResetResponse { message } = reply.json()?;
        self.options.output.print(&reply, |out| writeln!(out, "{message}"))?;
        Ok(ExitCode::SUCCESS)
    }
}
