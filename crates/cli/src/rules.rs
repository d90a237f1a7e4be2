//! `headgate rules`

mod apply;
mod export;
mod list;
mod plan;
mod rule;
mod write;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::{
    apply::Apply,
    list::List,
    rule::Rule,
    write::{Create, Update},
};
use crate::{
    client::{Reply, ServerOptions},
    failure::Failure,
    output::Output,
    table,
};

/// Manage rate limit rules.
#[derive(Debug, Args)]
pub(crate) struct Rules {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    /// Show one rule.
    Get {
        /// Rule id.
        id: String,
    },
    Create(Create),
    Update(Update),
    /// Delete a rule.
    Delete {
        /// Rule id.
        id: String,
    },
    Apply(Apply),
    /// Print all rules as YAML for `apply`.
    Export,
}

const PATH: &str = "rules";

impl Rules {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let output = self.options.output;
        match self.command {
            Command::List(list) => list.run(&client, output)?,
            Command::Get { id } => print(&client.get(&[PATH, &id], &[])?, output)?,
            Command::Create(create) => print(&create.run(&client)?, output)?,
            Command::Update(update) => print(&update.run(&client)?, output)?,
            Command::Delete { id } => {
                client.delete(&[PATH, &id])?;
                output.print_deleted(&id)?;
            }
            Command::Apply(apply) => apply.run(&client, output)?,
            Command::Export => export::run(&client, output)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the rule in a response.
fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<Rule>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}
