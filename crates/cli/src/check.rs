//! `headgate check`

use std::process::ExitCode;

use clap::Args;
use reqwest::{Method, header::RETRY_AFTER};
use serde::{Deserialize, Serialize};

use crate::{
    client::{Asking, Reply},
    failure::Failure,
    moment::Moment,
    table,
};

/// Ask a server whether a subject may go on, and take one unit if it may.
///
/// Exits with 0 when it may, 2 when it may not, 1 when nobody knows.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Args, Serialize)]
struct Question {
    /// What kind of subject: service, user or endpoint.
    scope: String,
    /// Which one.
    identifier: String,
    /// Ask the rule with this window, such as 60s, 1m or 1h.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<String>,
    /// Take so many units.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Take nothing.
    #[arg(long)]
    dry_run: bool,
}

const DENIED: u8 = 2;

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    remaining: u64,
    reset_at: Moment,
    limit: u64,
    reason: String,
}

// === impl Check ===

impl Check {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.asking.connect()?;
        let reply = client.send(Method::POST, &["check"], &self.question)?;
        let decision: Decision = reply.json()?;
        let fields = decision.fields(&reply);
        self.asking.output.print(&reply, |out| table::write_fields(out, &fields))?;
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
