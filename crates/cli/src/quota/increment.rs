//! `headgate quota increment`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::EXCEEDED;
use crate::{
    client::{Client, ClientError, Refusal, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Use something of a quota, if there is so much left.
///
/// Exits with 0 when it was used, 2 when there is not so much left, 1 when nobody knows.
#[derive(Debug, Args)]
pub(super) struct Increment {
    /// The policy's id.
    id: String,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Debug, Args, Serialize)]
struct Wanted {
    /// How much.
    #[arg(long, default_value_t = 1)]
    amount: u64,
    /// By what name it is sent again: it is charged once in a period.
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct Done {
    quota_id: String,
    used: u64,
    remaining: u64,
    usage_percent: f64,
}

impl Increment {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<ExitCode, Failure> {
        match client.send(Method::POST, &[&self.id, "usage", "increment"], &self.wanted) {
            Ok(reply) => {
                print(&reply, output)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(ClientError::Refused(refusal)) if refusal.is_exceeded() => {
                print_refusal(&refusal, output)?;
                Ok(ExitCode::from(EXCEEDED))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let Done { quota_id, used, remaining, usage_percent } = reply.json()?;
    let fields = [
        ("allowed", "yes".to_owned()),
        ("quota", quota_id),
        ("used", format!("{used} ({usage_percent} %)")),
        ("remaining", remaining.to_string()),
    ];
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

fn print_refusal(refusal: &Refusal, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        Output::Json => {
            out.write_all(refusal.body())?;
            writeln!(out)
        }
        Output::Table => {
            let mut fields =
                vec![("allowed", "no".to_owned()), ("reason", refusal.message().to_owned())];
            fields.extend(refusal.detail("reset_at").map(|time| ("reset at", time.to_owned())));
            table::write_fields(&mut out, &fields)
        }
    }
}
