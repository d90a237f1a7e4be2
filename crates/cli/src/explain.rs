//! `headgate explain`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use headgate_ratelimit::Window;
use serde::Deserialize;

use crate::{
    client::ServerOptions,
    failure::Failure,
    table::{Column, Table},
    unix_time::UnixTime,
};

/// Show which rules match a subject and why.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Scope of the subject: service, user or endpoint.
    scope: String,
    /// Identifier of the subject.
    identifier: String,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Deserialize)]
struct Explanation {
    rules: Vec<MatchedRule>,
}

#[derive(Deserialize)]
struct MatchedRule {
    rule_id: Option<String>,
    rule_name: String,
    limit: u64,
    window_seconds: u64,
    algorithm: String,
    applies: bool,
    why: String,
    used: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<UnixTime>,
}

impl Explain {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let query = [("scope", self.scope.as_str()), ("identifier", &self.identifier)];
        let reply = self.options.connect()?.get(&["explain"], &query)?;
        let explanation: Explanation = reply.json()?;
        self.options.output.print(&reply, |out| explanation.write(out))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Explanation {
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([
            Column::Text("APPLIES"),
            Column::Text("RULE"),
            Column::Text("NAME"),
            Column::Number("LIMIT"),
            Column::Text("ALGORITHM"),
            Column::Number("USED"),
            Column::Number("REMAINING"),
            Column::Text("RESET AT"),
            Column::Text("WHY"),
        ]);
        for rule in self.rules {
            table.row([
                if rule.applies { "yes" } else { "no" }.to_owned(),
                rule.rule_id.unwrap_or_else(|| "-".to_owned()),
                rule.rule_name,
                format!("{}/{}", rule.limit, Window::from_secs(rule.window_seconds)),
                rule.algorithm,
                or_dash(rule.used),
                or_dash(rule.remaining),
                or_dash(rule.reset_at),
                rule.why,
            ]);
        }
        table.write(out)
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
