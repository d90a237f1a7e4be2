//! `headgate reset`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{client::Asking, failure::Failure};

/// Give a subject its whole allowance back.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args, Serialize)]
struct Subject {
    /// What kind of subject: service, user or endpoint.
    scope: String,
    /// Which one.
    identifier: String,
    /// Why, for the audit log.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Done {
    message: String,
}

impl Reset {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.asking.connect()?.send(Method::POST, &["reset"], &self.subject)?;
        let Done { message } = reply.json()?;
        self.asking.output.print(&reply, |out| writeln!(out, "{message}"))?;
        Ok(ExitCode::SUCCESS)
    }
}
