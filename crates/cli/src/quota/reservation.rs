//! `headgate quota reserve`, `reservation`, `use`, `settle` and `cancel`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{EXCEEDED, increment::print_exceeded};
use crate::{
    client::{Client, ClientError, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Reserve units of a quota before their use is known.
///
/// They count against the limit until they are settled or cancelled, or until the TTL is over. Exits
/// with 0 if they were reserved, 2 if the quota does not allow it and 1 on errors.
#[derive(Debug, Args)]
pub(super) struct Reserve {
    /// Policy id.
    id: String,
    #[command(flatten)]
    request: ReserveRequest,
}

#[derive(Debug, Args, Serialize)]
struct ReserveRequest {
    /// Units to reserve.
    #[arg(long, default_value_t = 1)]
    amount: u64,
    /// Seconds after which the units come back: 1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[serde(rename = "ttl_seconds")]
    ttl: u64,
    /// Idempotency key: repeats with the same key return the same reservation.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// The ids of a policy and of its reservation.
#[derive(Debug, Args)]
pub(super) struct ReservationName {
    /// Policy id.
    id: String,
    /// Reservation id.
    reservation: String,
}

/// Charge what was produced while a reservation runs, and renew it.
///
/// Exits with 0 if more may be produced, 2 if not and 1 on errors.
#[derive(Debug, Args)]
pub(super) struct Use {
    #[command(flatten)]
    name: ReservationName,
    #[command(flatten)]
    request: UseRequest,
}

#[derive(Debug, Args, Serialize)]
struct UseRequest {
    /// Units that were produced since the last use; 0 only renews the TTL.
    #[arg(long)]
    amount: u64,
    /// Idempotency key: a retry of the latest use is charged once.
    #[arg(long, value_name = "KEY")]
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// Charge what a reservation took in all, and end it.
#[derive(Debug, Args)]
pub(super) struct Settle {
    #[command(flatten)]
    name: ReservationName,
    #[command(flatten)]
    request: SettleRequest,
}

#[derive(Debug, Args, Serialize)]
struct SettleRequest {
    /// Units in all, with those that were used while it ran.
    #[arg(long)]
    amount: u64,
    /// Charge what is missing even past the limit.
    #[arg(long)]
    overdraft: bool,
}

/// A response about a reservation; each command has its own fields.
#[derive(Deserialize)]
struct ReservationResponse {
    id: String,
    quota_id: String,
    status: Option<String>,
    amount: Option<u64>,
    charged: Option<u64>,
    settled: Option<u64>,
    returned: Option<u64>,
    owed: Option<u64>,
    held: Option<u64>,
    stop: Option<bool>,
    expires_at: Option<String>,
    used: Option<u64>,
    reserved: Option<u64>,
    remaining: Option<u64>,
}

// === impl Reserve ===

impl Reserve {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<ExitCode, Failure> {
        match client.send(Method::POST, &[&self.id, "reservations"], &self.request) {
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

// === impl ReservationName ===

impl ReservationName {
    pub(super) fn show(&self, client: &Client, output: Output) -> Result<(), Failure> {
        print(&client.get(&[&self.id, "reservations", &self.reservation], &[])?, output)
    }

    pub(super) fn cancel(&self, client: &Client, output: Output) -> Result<(), Failure> {
        print(&self.post(client, "cancel", &json!({}))?, output)
    }

    fn post(
        &self,
        client: &Client,
        verb: &str,
        body: &impl Serialize,
    ) -> Result<Reply, ClientError> {
        let path = [&*self.id, "reservations", &*self.reservation, verb];
        client.send(Method::POST, &path, body)
    }
}

// === impl Use ===

impl Use {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<ExitCode, Failure> {
        let reply = self.name.post(client, "use", &self.request)?;
        let stop = reply.json::<ReservationResponse>()?.stop == Some(true);
        print(&reply, output)?;
        Ok(if stop { ExitCode::from(EXCEEDED) } else { ExitCode::SUCCESS })
    }
}

// === impl Settle ===

impl Settle {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<(), Failure> {
        print(&self.name.post(client, "settle", &self.request)?, output)
    }
}

fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<ReservationResponse>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

// === impl ReservationResponse ===

impl ReservationResponse {
    fn fields(self) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let stop = self.stop.map(|stop| if stop { "yes" } else { "no" }.to_owned());
        let optional = [
            ("status", self.status),
            ("amount", number(self.amount)),
            ("charged", number(self.charged)),
            ("settled", number(self.settled)),
            ("returned", number(self.returned)),
            ("owed", number(self.owed)),
            ("held", number(self.held)),
            ("stop", stop),
            ("expires at", self.expires_at),
            ("used", number(self.used)),
            ("reserved", number(self.reserved)),
            ("remaining", number(self.remaining)),
        ];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        [("reservation", self.id), ("quota", self.quota_id)].into_iter().chain(optional).collect()
    }
}
