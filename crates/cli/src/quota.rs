//! `headgate quota`

mod events;
mod history;
mod increment;
mod list;
mod policy;
mod refund;
mod reservation;
mod usage;
mod write;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use self::{
    events::Events,
    history::History,
    increment::Increment,
    list::List,
    policy::Policy,
    refund::Refund,
    reservation::{ReservationName, Reserve, Settle, Use},
    usage::Check,
    write::{Create, Update},
};
use crate::{
    client::{Client, Reply, ServerOptions},
    failure::Failure,
    output::Output,
    table,
};

/// Manage and consume quotas.
#[derive(Debug, Args)]
pub(crate) struct Quota {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    /// Show one policy.
    Get {
        /// Policy id.
        id: String,
    },
    Create(Create),
    Update(Update),
    /// Delete a policy.
    Delete {
        /// Policy id.
        id: String,
    },
    /// Show the usage of the current period.
    Usage {
        /// Policy id.
        id: String,
    },
    Check(Check),
    Increment(Increment),
    Refund(Refund),
    Reserve(Reserve),
    /// Show a reservation.
    Reservation(ReservationName),
    Use(Use),
    Settle(Settle),
    /// Cancel a reservation: what it holds comes back.
    Cancel(ReservationName),
    /// Reset the usage of the current period to 0.
    Reset {
        /// Policy id.
        id: String,
        /// Reason for the audit log.
        #[arg(long)]
        reason: String,
    },
    History(History),
    Events(Events),
}

/// Exit code if the quota is exceeded.
const EXCEEDED: u8 = 2;

impl Quota {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect_to(self.command.area())?;
        let output = self.options.output;
        match self.command {
            Command::List(list) => list.run(&client, output)?,
            Command::Get { id } => print(&client.get(&[&id], &[])?, output)?,
            Command::Create(create) => print(&create.run(&client)?, output)?,
            Command::Update(update) => print(&update.run(&client)?, output)?,
            Command::Delete { id } => {
                client.delete(&[&id])?;
                output.print_deleted(&id)?;
            }
            Command::Usage { id } => usage::print(&client.get(&[&id, "usage"], &[])?, output)?,
            Command::Check(check) => return check.run(&client, output),
            Command::Increment(increment) => return increment.run(&client, output),
            Command::Refund(refund) => refund.run(&client, output)?,
            Command::Reserve(reserve) => return reserve.run(&client, output),
            Command::Reservation(name) => name.show(&client, output)?,
            Command::Use(spend) => return spend.run(&client, output),
            Command::Settle(settle) => settle.run(&client, output)?,
            Command::Cancel(name) => name.cancel(&client, output)?,
            Command::Reset { id, reason } => reset(&client, &id, &reason, output)?,
            Command::History(history) => history.run(&client, output)?,
            Command::Events(events) => events.run(&client, output)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Command {
    /// The path segment below `/api/v1`.
    const fn area(&self) -> &'static str {
        match self {
            Self::Events(_) => "events",
            _ => "quotas",
        }
    }
}

/// Prints the policy in a response.
fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<Policy>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

fn reset(client: &Client, id: &str, reason: &str, output: Output) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct ResetResponse {
        quota_id: String,
        used: u64,
        reset_at: String,
        reset_by: String,
    }
    let body = json!({ "reason": reason });
    let reply = client.send(Method::POST, &[id, "usage", "reset"], &body)?;
    let ResetResponse { quota_id, used, reset_at, reset_by } = reply.json()?;
    let fields = [
        ("quota", quota_id),
        ("used", used.to_string()),
        ("reset at", reset_at),
        ("reset by", reset_by),
    ];
    Ok(output.print(&reply, |out| table::write_fields(out, &fields))?)
}
