//! `headgate refund`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::{attributes, client::ServerOptions, failure::Failure, table, unix_time::UnixTime};

/// Give back what a check consumed, once, by its request id.
///
/// The options are those of the check.
#[derive(Debug, Args)]
pub(crate) struct Refund {
    #[command(flatten)]
    request: RefundRequest,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Args, Serialize)]
struct RefundRequest {
    /// Scope of the subject: service, user or endpoint.
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// Identifier of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    /// Attribute of the request, such as tenant=acme; may be repeated.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair)]
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "attributes::serialize")]
    attributes: Vec<(String, String)>,
    /// Window of the check, if it had one.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// Units that the check consumed.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Request id of the check.
    #[arg(long, value_name = "KEY")]
    request_id: String,
}

#[derive(Deserialize)]
struct Refunded {
    cost: u64,
    limit: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<UnixTime>,
}

impl Refund {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.options.connect()?.send(Method::POST, &["refund"], &self.request)?;
        let done: Refunded = reply.json()?;
        let mut fields = vec![("cost", done.cost.to_string())];
        fields.extend(done.limit.map(|limit| ("limit", limit.to_string())));
        fields.extend(done.remaining.map(|remaining| ("remaining", remaining.to_string())));
        fields.extend(done.reset_at.map(|time| ("reset at", time.to_string())));
        self.options.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }
}
