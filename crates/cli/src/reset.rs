//! `headgate reset`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{attributes, client::ServerOptions, failure::Failure};

/// Reset the usage of a subject, or of a request with attributes.
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
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// Identifier of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    /// Attribute of the request, such as tenant=acme; may be repeated. Values that differ for one
    /// name are a list.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair, conflicts_with = "scope")]
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "attributes::serialize")]
    attributes: Vec<(String, String)>,
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
