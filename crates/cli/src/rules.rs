//! `headgate rules`

mod apply;
mod change;
mod export;
mod file;
mod list;
mod plan;
mod rule;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use self::file::FileError;
use self::{
    apply::Apply,
    change::{Create, Update},
    list::List,
    rule::Rule,
};
use crate::{
    client::{Asking, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Show and change the rules.
#[derive(Debug, Args)]
pub(crate) struct Rules {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    /// Show one rule.
    Get {
        /// The rule's id.
        id: String,
    },
    Create(Create),
    Update(Update),
    /// Remove a rule.
    Delete {
        /// The rule's id.
        id: String,
    },
    Apply(Apply),
    /// Print all rules as YAML that `apply` takes back.
    Export,
}

const PATH: &str = "rules";

impl Rules {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.asking.connect()?;
        let output = self.asking.output;
        match self.command {
            Command::List(list) => list.run(&client, output)?,
            Command::Get { id } => print(&client.get(&[PATH, &id], &[])?, output)?,
            Command::Create(create) => print(&create.run(&client)?, output)?,
            Command::Update(update) => print(&update.run(&client)?, output)?,
            Command::Delete { id } => {
                client.delete(&[PATH, &id])?;
                list::print_deleted(&id, output)?;
            }
            Command::Apply(apply) => apply.run(&client, output)?,
            Command::Export => export::run(&client, output)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the rule that a server answered with.
fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<Rule>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}
