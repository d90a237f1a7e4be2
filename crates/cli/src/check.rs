//! `headgate check`

use std::process::ExitCode;

use clap::Args;
use reqwest::{Method, header::RETRY_AFTER};
use serde::{Deserialize, Serialize};

use crate::{
    attributes,
    client::{Reply, ServerOptions},
    failure::Failure,
    table,
    unix_time::UnixTime,
};

/// Check a subject against its rate limits and consume one unit.
///
/// Exits with 0 if the request is allowed, 2 if it is denied and 1 on errors.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    request: CheckRequest,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Args, Serialize)]
struct CheckRequest {
    /// Scope of the subject: service, user or endpoint.
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// Identifier of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    /// Attribute of the request, such as tenant=acme; may be repeated. Values that differ for one
    /// name are a list.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair)]
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "attributes::serialize")]
    attributes: Vec<(String, String)>,
    /// Check only the rule with this window, such as 60s, 1m or 1h.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// Units to consume.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Consume nothing.
    #[arg(long)]
    dry_run: bool,
    /// Idempotency key, by which `headgate refund` gives the units back.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

const DENIED: u8 = 2;

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    /// Left out if no rule matches, as the next two.
    remaining: Option<u64>,
    reset_at: Option<UnixTime>,
    limit: Option<u64>,
    reason: String,
    /// Only checks with attributes name the rule.
    rule: Option<RuleName>,
    /// Left out if the store was asked.
    #[serde(default)]
    leased: bool,
}

/// The rule that decided.
#[derive(Deserialize)]
struct RuleName {
    name: String,
}

// === impl Check ===

impl Check {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let reply = client.send(Method::POST, &["check"], &self.request)?;
        let decision: Decision = reply.json()?;
        let fields = decision.fields(&reply);
        self.options.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(if decision.allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
    }
}

// === impl Decision ===

impl Decision {
    fn fields(&self, reply: &Reply) -> Vec<(&'static str, String)> {
        let mut fields = vec![("allowed", if self.allowed { "yes" } else { "no" }.to_owned())];
        fields.extend(self.rule.as_ref().map(|rule| ("rule", rule.name.clone())));
        fields.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        fields.extend(self.remaining.map(|remaining| ("remaining", remaining.to_string())));
        fields.extend(self.reset_at.as_ref().map(|time| ("reset at", time.to_string())));
        if let Some(seconds) = reply.headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()) {
            fields.push(("retry after", format!("{seconds} s")));
        }
        if !self.reason.is_empty() {
            fields.push(("reason", self.reason.clone()));
        }
        if self.leased {
            fields.push(("leased", "yes".to_owned()));
        }
        fields
    }
}
