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
    client::{Client, ClientError, ErrorResponse, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Consume units of a quota.
///
/// Exits with 0 if they were consumed, 2 if the quota does not allow it and 1 on errors.
#[derive(Debug, Args)]
pub(super) struct Increment {
    /// Policy id.
    id: String,
    #[command(flatten)]
    request: IncrementRequest,
}

#[derive(Debug, Args, Serialize)]
struct IncrementRequest {
    /// Units to consume.
    #[arg(long, default_value_t = 1)]
    amount: u64,
    /// Idempotency key: repeats with the same key are charged once per period.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct IncrementResponse {
    quota_id: String,
    used: u64,
    remaining: u64,
    usage_percent: f64,
}

impl Increment {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<ExitCode, Failure> {
        match client.send(Method::POST, &[&self.id, "usage", "increment"], &self.request) {
            Ok(reply) => {
                print(&reply, output)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(ClientError::Refused(response)) if response.is_exceeded() => {
                print_exceeded(&response, self.request.amount, output)?;
                Ok(ExitCode::from(EXCEEDED))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let IncrementResponse { quota_id, used, remaining, usage_percent } = reply.json()?;
    let fields = [
        ("allowed", "yes".to_owned()),
        ("quota", quota_id),
        ("used", format!("{used} ({usage_percent} %)")),
        ("remaining", remaining.to_string()),
    ];
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

pub(super) fn print_exceeded(
    response: &ErrorResponse,
    amount: u64,
    output: Output,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        Output::Json => {
            out.write_all(response.body())?;
            writeln!(out)
        }
        Output::Table => {
            let mut fields = vec![
                ("allowed", "no".to_owned()),
                ("requested", amount.to_string()),
                ("reason", response.message().to_owned()),
            ];
            fields.extend(response.detail("reset_at").map(|time| ("reset at", time.to_owned())));
            table::write_fields(&mut out, &fields)
        }
    }
}
