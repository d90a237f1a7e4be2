//! `headgate explain`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use headgate_ratelimit::Window;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use crate::{
    attributes,
    client::ServerOptions,
    failure::Failure,
    table::{Column, Table},
    unix_time::UnixTime,
};

/// Show which rules match a subject, or a request with attributes, and why.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Scope of the subject: service, user or endpoint.
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    scope: Option<String>,
    /// Identifier of the subject.
    identifier: Option<String>,
    /// Attribute of the request, such as tenant=acme; may be repeated. Values that differ for one
    /// name are a list.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair, conflicts_with = "scope")]
    attributes: Vec<(String, String)>,
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
    /// Servers of older versions send none.
    limit_why: Option<String>,
    used: Option<u64>,
    remaining: Option<u64>,
    reset_at: Option<UnixTime>,
    /// Servers of older versions send none.
    held: Option<Held>,
}

/// Units that the server took in advance.
#[derive(Deserialize)]
struct Held {
    units: u64,
    until: String,
}

impl Explain {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let reply = if self.attributes.is_empty() {
            let (scope, identifier) = (self.scope.unwrap_or_default(), self.identifier);
            let identifier = identifier.unwrap_or_default();
            client.get(&["explain"], &[("scope", &*scope), ("identifier", &identifier)])?
        } else {
            let check = json!({"attributes": attributes::object(&self.attributes)});
            client.send(Method::POST, &["explain"], &check)?
        };
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
            Column::Text("HELD"),
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
                or_dash(rule.held.map(|held| format!("{} until {}", held.units, held.until))),
                match rule.limit_why {
                    Some(limit) => format!("{}; {limit}", rule.why),
                    None => rule.why,
                },
            ]);
        }
        table.write(out)
    }
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
