//! `headgate usage`

use std::process::ExitCode;

use clap::Args;
use headgate_ratelimit::Window;
use serde::Deserialize;

use crate::{
    client::{Client, ClientError, ServerOptions},
    failure::Failure,
    table,
    unix_time::UnixTime,
};

/// Show the usage of a rule.
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// Rule id.
    rule_id: String,
    /// Identifier of the subject, if the rule matches several.
    #[arg(long)]
    identifier: Option<String>,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Deserialize)]
struct RuleUsage {
    rule_id: String,
    rule_name: String,
    limit: u64,
    window_seconds: u64,
    algorithm: String,
    enabled: bool,
    used: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<UnixTime>,
}

#[derive(Deserialize)]
struct RulePattern {
    identifier_pattern: String,
}

/// Shown if the rule matches several subjects, each with its own usage.
const NEEDS_IDENTIFIER: &str = "(pass --identifier)";
/// Shown if nothing was used or the store is unavailable: the server omits the fields in both
/// cases.
const UNKNOWN: &str = "-";

// === impl Usage ===

impl Usage {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let mut query = vec![("rule_id", self.rule_id.as_str())];
        query.extend(self.identifier.as_deref().map(|identifier| ("identifier", identifier)));
        let client = self.options.connect()?;
        let reply = client.get(&["usage"], &query)?;
        let usage: RuleUsage = reply.json()?;
        let placeholder = self.placeholder(&client, &usage)?;
        let fields = usage.fields(placeholder);
        self.options.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the text for fields that the response leaves out.
    fn placeholder(&self, client: &Client, usage: &RuleUsage) -> Result<&'static str, ClientError> {
        if usage.used.is_some() || self.identifier.is_some() {
            return Ok(UNKNOWN);
        }
        let rule: RulePattern = client.get(&["rules", &usage.rule_id], &[])?.json()?;
        Ok(if rule.identifier_pattern.ends_with('*') { NEEDS_IDENTIFIER } else { UNKNOWN })
    }
}

// === impl RuleUsage ===

impl RuleUsage {
    fn fields(self, placeholder: &str) -> Vec<(&'static str, String)> {
        let unknown = || placeholder.to_owned();
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
