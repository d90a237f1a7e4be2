//! `headgate usage`

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use crate::{client::Asking, failure::Failure, moment::Moment, table, window::Window};

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

impl Usage {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let mut query = vec![("rule_id", self.rule_id.as_str())];
        query.extend(self.identifier.as_deref().map(|identifier| ("identifier", identifier)));
        let reply = self.asking.connect()?.get(&["usage"], &query)?;
        let fields = reply.json::<Standing>()?.fields();
        self.asking.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Standing {
    fn fields(self) -> Vec<(&'static str, String)> {
        // Many subjects share a pattern, and each has its own usage.
        let unknown = || "(give --identifier)".to_owned();
        vec![
            ("rule", self.rule_id),
            ("name", self.rule_name),
            ("limit", format!("{}/{}", self.limit, Window(self.window_seconds))),
            ("algorithm", self.algorithm),
            ("enabled", if self.enabled { "yes" } else { "no" }.to_owned()),
            ("used", self.used.map_or_else(unknown, |used| used.to_string())),
            ("remaining", self.remaining.map_or_else(unknown, |left| left.to_string())),
            ("reset at", self.reset_at.map_or_else(unknown, |time| time.to_string())),
        ]
    }
}
