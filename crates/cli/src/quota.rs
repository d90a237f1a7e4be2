//! `headgate quota`

mod change;
mod events;
mod history;
mod increment;
mod list;
mod policy;
mod usage;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use self::{
    change::{Create, Update},
    events::Events,
    history::History,
    increment::Increment,
    list::List,
    policy::Policy,
    usage::Check,
};
use crate::{
    client::{Asking, Client, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Show, change and use quotas.
#[derive(Debug, Args)]
pub(crate) struct Quota {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    /// Show one policy.
    Get {
        /// The policy's id.
        id: String,
    },
    Create(Create),
    Update(Update),
    /// Remove a policy.
    Delete {
        /// The policy's id.
        id: String,
    },
    /// Show how much of a quota is used.
    Usage {
        /// The policy's id.
        id: String,
    },
    Check(Check),
    Increment(Increment),
    /// Set the usage of the present period to 0.
    Reset {
        /// The policy's id.
        id: String,
        /// Why, for the audit log.
        #[arg(long)]
        reason: String,
    },
    History(History),
    Events(Events),
}

/// There is not so much left.
const EXCEEDED: u8 = 2;

impl Quota {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.asking.connect_to(self.command.area())?;
        let output = self.asking.output;
        match self.command {
            Command::List(list) => list.run(&client, output)?,
            Command::Get { id } => print(&client.get(&[&id], &[])?, output)?,
            Command::Create(create) => print(&create.run(&client)?, output)?,
            Command::Update(update) => print(&update.run(&client)?, output)?,
            Command::Delete { id } => {
                client.delete(&[&id])?;
                print_deleted(&id, output)?;
            }
            Command::Usage { id } => usage::print(&client.get(&[&id, "usage"], &[])?, output)?,
            Command::Check(check) => return check.run(&client, output),
            Command::Increment(increment) => return increment.run(&client, output),
            Command::Reset { id, reason } => reset(&client, &id, &reason, output)?,
            Command::History(history) => history.run(&client, output)?,
            Command::Events(events) => events.run(&client, output)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Command {
    /// Where its paths are.
    const fn area(&self) -> &'static str {
        match self {
            Self::Events(_) => "events",
            _ => "quotas",
        }
    }
}

/// Prints the policy that a server answered with.
fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<Policy>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

fn print_deleted(id: &str, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        Output::Table => writeln!(out, "deleted {id}"),
        Output::Json => writeln!(out, "{}", json!({ "deleted": id })),
    }
}

fn reset(client: &Client, id: &str, reason: &str, output: Output) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Done {
        quota_id: String,
        used: u64,
        reset_at: String,
        reset_by: String,
    }
    let body = json!({ "reason": reason });
    let reply = client.send(Method::POST, &[id, "usage", "reset"], &body)?;
    let Done { quota_id, used, reset_at, reset_by } = reply.json()?;
    let fields = [
        ("quota", quota_id),
        ("used", used.to_string()),
        ("reset at", reset_at),
        ("reset by", reset_by),
    ];
    Ok(output.print(&reply, |out| table::write_fields(out, &fields))?)
}
