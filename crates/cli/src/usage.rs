//! `headgate usage`

use std::process::ExitCode;

use clap::Args;
use headgate_ratelimit::Window;
use serde::Deserialize;

use crate::{
    client::{Asking, Client, ClientError},
    failure::Failure,
    moment::Moment,
    table,
};

/// Show how much of a rule's allowance is used.
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// The rule's id.
    rule_id: String,
    /// Whose usage, where the rule is about many.
    #[arg(long)]
    identifier: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Deserialize)]
struct Standing {
    rule_id: String,
    rule_name: String,
    limit: u64,
    window_seconds: u64,
    algorithm: String,
    enabled: bool,
    used: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<Moment>,
}

#[derive(Deserialize)]
struct Subjects {
    identifier_pattern: String,
}

/// Many subjects share a pattern, and each has its own usage.
const WHOSE: &str = "(give --identifier)";
/// Nothing is used, or the store is away: the server leaves out the same.
const NOTHING_KNOWN: &str = "-";

// === impl Usage ===

impl Usage {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let mut query = vec![("rule_id", self.rule_id.as_str())];
        query.extend(self.identifier.as_deref().map(|identifier| ("identifier", identifier)));
        let client = self.asking.connect()?;
        let reply = client.get(&["usage"], &query)?;
        let standing: Standing = reply.json()?;
        let missing = self.missing(&client, &standing)?;
        let fields = standing.fields(missing);
        self.asking.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }

    /// What is said where the server says nothing.
    fn missing(&self, client: &Client, standing: &Standing) -> Result<&'static str, ClientError> {
        if standing.used.is_some() || self.identifier.is_some() {
            return Ok(NOTHING_KNOWN);
        }
        let rule: Subjects = client.get(&["rules", &standing.rule_id], &[])?.json()?;
        Ok(if rule.identifier_pattern.ends_with('*') { WHOSE } else { NOTHING_KNOWN })
    }
}

// === impl Standing ===

impl Standing {
    fn fields(self, missing: &str) -> Vec<(&'static str, String)> {
        let unknown = || missing.to_owned();
        vec![
            ("rule", self.rule_id),
            ("name", self.rule_name),
            ("limit", format!("{}/{}", self.limit, Window::from_secs(self.window_seconds))),
            ("algorithm", self.algorithm),
            ("enabled", if self.enabled { "yes" } else { "no" }.to_owned()),
            ("used", self.used.map_or_else(unknown, |used| used.to_string())),
            ("remaining", self.remaining.map_or_else(unknown, |left| left.to_string())),
            ("reset at", self.reset_at.map_or_else(unknown, |time| time.to_string())),
        ]
    }
}
