//! `headgate check`

use std::process::ExitCode;

use clap::Args;
use reqwest::{Method, header::RETRY_AFTER};
use serde::{Deserialize, Serialize};

use crate::{
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
    scope: String,
    /// Identifier of the subject.
    identifier: String,
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
}

const DENIED: u8 = 2;

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    remaining: u64,
    reset_at: UnixTime,
    limit: u64,
    reason: String,
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
        let mut fields = vec![
            ("allowed", if self.allowed { "yes" } else { "no" }.to_owned()),
            ("limit", self.limit.to_string()),
            ("remaining", self.remaining.to_string()),
            ("reset at", self.reset_at.to_string()),
        ];
        if let Some(seconds) = reply.headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()) {
            fields.push(("retry after", format!("{seconds} s")));
        }
        if !self.reason.is_empty() {
            fields.push(("reason", self.reason.clone()));
        }
        fields
    }
}
