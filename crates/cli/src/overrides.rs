//! `headgate overrides`

mod list;
mod set;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::{list::List, set::Set};
use crate::{
    client::{Reply, ServerOptions},
    failure::Failure,
    output::Output,
    table,
};

/// Manage other limits for single subjects of a rule.
#[derive(Debug, Args)]
pub(crate) struct Overrides {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    /// Show one override.
    Get {
        /// Override id.
        id: String,
    },
    Set(Set),
    /// Delete an override: the subject has the limit of the rule again.
    Delete {
        /// Override id.
        id: String,
    },
}

/// An override in the API.
#[derive(Debug, Deserialize)]
struct RuleOverride {
    id: String,
    rule_id: String,
    rule_name: Option<String>,
    subject: Map<String, Value>,
    limit: u64,
    until: Option<String>,
    active: bool,
    reason: Option<String>,
    #[serde(default)]
    warnings: Vec<Warning>,
}

#[derive(Debug, Deserialize)]
struct Warning {
    message: String,
}

const PATH: &str = "overrides";

impl Overrides {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let output = self.options.output;
        match self.command {
            Command::List(list) => list.run(&client, output)?,
            Command::Get { id } => print(&client.get(&[PATH, &id], &[])?, output)?,
            Command::Set(set) => print(&set.run(&client)?, output)?,
            Command::Delete { id } => {
                client.delete(&[PATH, &id])?;
                output.print_deleted(&id)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the override in a response.
fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<RuleOverride>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

impl RuleOverride {
    /// The attributes as on the command line: `tenant=acme,user=u1`.
    fn subject(&self) -> String {
        let pair = |(name, value): (&String, &Value)| {
            format!("{name}={}", value.as_str().unwrap_or_default())
        };
        self.subject.iter().map(pair).collect::<Vec<_>>().join(",")
    }

    fn fields(self) -> Vec<(&'static str, String)> {
        let subject = self.subject();
        let mut fields = vec![("id", self.id), ("rule", self.rule_id)];
        fields.extend(self.rule_name.map(|name| ("rule name", name)));
        fields.extend([("subject", subject), ("limit", self.limit.to_string())]);
        fields.extend(self.until.map(|until| ("until", until)));
        fields.push(("active", if self.active { "yes" } else { "no" }.to_owned()));
        fields.extend(self.reason.map(|reason| ("reason", reason)));
        fields.extend(self.warnings.into_iter().map(|warning| ("warning", warning.message)));
        fields
    }
}
