//! `headgate reserve`, `reservation`, `use`, `settle` and `cancel`

use std::process::ExitCode;

use clap::Args;
use reqwest::{Method, header::RETRY_AFTER};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    attributes,
    client::{Client, ClientError, Reply, ServerOptions},
    failure::Failure,
    table,
};

/// Exit code of a denial, and of a use after which nothing more may be spent.
const DENIED: u8 = 2;

/// Reserve units of rate limits before their use is known.
///
/// They are taken until they are settled or cancelled, or until the TTL is over. Several checks are
/// reserved together, or not at all. Exits with 0 if they were reserved, 2 if they were denied and 1
/// on errors.
#[derive(Debug, Args)]
pub(crate) struct Reserve {
    /// Scope of the subject: service, user or endpoint.
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    scope: Option<String>,
    /// Identifier of the subject.
    identifier: Option<String>,
    /// Attribute of the request, such as tenant=acme; may be repeated.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair)]
    attributes: Vec<(String, String)>,
    /// Units to reserve.
    #[arg(long, default_value_t = 1)]
    cost: u64,
    /// Another check that must be admitted, too, such as user:u1=500; may be repeated.
    #[arg(long, value_name = "SCOPE:IDENTIFIER=COST", value_parser = another)]
    and: Vec<Subject>,
    /// Seconds after which the units return: 1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    ttl: u64,
    /// Idempotency key: repeats with the same key return the same reservation.
    #[arg(long, value_name = "KEY")]
    request_id: Option<String>,
    #[command(flatten)]
    options: ServerOptions,
}

/// Show a reservation of rate limits.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Reservation id.
    id: String,
    #[command(flatten)]
    options: ServerOptions,
}

/// Charge what was spent while a reservation runs, and renew it.
///
/// Exits with 0 if more may be spent, 2 if not and 1 on errors.
#[derive(Debug, Args)]
pub(crate) struct Use {
    /// Reservation id.
    id: String,
    /// Units that were spent since the last use, or a comma-separated list with one for each check; 0 only renews.
    #[arg(
        long,
        value_delimiter = ',',
        required_unless_present = "total",
        conflicts_with = "total"
    )]
    cost: Vec<u64>,
    /// Units that were spent since the reservation was made; what was charged before is not charged again, so it can be repeated.
    #[arg(long, value_delimiter = ',')]
    total: Vec<u64>,
    #[command(flatten)]
    options: ServerOptions,
}

/// Charge what a reservation cost in all, and end it.
#[derive(Debug, Args)]
pub(crate) struct Settle {
    /// Reservation id.
    id: String,
    /// Units in all, or a comma-separated list with one for each check.
    #[arg(long, value_delimiter = ',', required = true)]
    cost: Vec<u64>,
    /// Charge what is missing even past the limit.
    #[arg(long)]
    overdraft: bool,
    #[command(flatten)]
    options: ServerOptions,
}

/// End a reservation: what it holds returns.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Reservation id.
    id: String,
    #[command(flatten)]
    options: ServerOptions,
}

/// A check of a subject.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    scope: String,
    identifier: String,
    cost: u64,
}

/// A response about a reservation; each command has its own fields.
#[derive(Deserialize)]
struct ReservationResponse {
    id: Option<String>,
    status: Option<String>,
    allowed: Option<bool>,
    settled: Option<u64>,
    returned: Option<u64>,
    owed: Option<u64>,
    held: Option<u64>,
    stop: Option<bool>,
    expires_at: Option<String>,
    #[serde(default)]
    results: Vec<CheckResult>,
}

/// One check in a response.
#[derive(Deserialize)]
struct CheckResult {
    held: Option<u64>,
    remaining: Option<u64>,
    #[serde(default)]
    reason: String,
}

// === impl Reserve ===

impl Reserve {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply =
            self.options.connect()?.send(Method::POST, &["reservations"], &self.request())?;
        let response: ReservationResponse = reply.json()?;
        let allowed = response.allowed == Some(true);
        print(&reply, response, &self.options)?;
        Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
    }

    fn request(&self) -> Value {
        let mut first = json!({"cost": self.cost});
        if let (Some(scope), Some(identifier)) = (&self.scope, &self.identifier) {
            first["scope"] = json!(scope);
            first["identifier"] = json!(identifier);
        }
        if !self.attributes.is_empty() {
            first["attributes"] = Value::Object(attributes::object(&self.attributes));
        }
        let others = self.and.iter().map(|check| json!(check));
        let checks: Vec<Value> = [first].into_iter().chain(others).collect();
        let mut request = json!({"checks": checks, "ttl_seconds": self.ttl});
        if let Some(request_id) = &self.request_id {
            request["request_id"] = json!(request_id);
        }
        request
    }
}

// === impl Show ===

impl Show {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.options.connect()?.get(&["reservations", &self.id], &[])?;
        finish(&reply, &self.options)
    }
}

// === impl Use ===

impl Use {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let body = match &self.total[..] {
            [] => json!({"cost": cost(&self.cost)}),
            total => json!({"total": cost(total)}),
        };
        let reply = change(&client, &self.id, "use", &body)?;
        let response: ReservationResponse = reply.json()?;
        let stop = response.stop == Some(true);
        print(&reply, response, &self.options)?;
        Ok(if stop { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
    }
}

// === impl Settle ===

impl Settle {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        let body = json!({"cost": cost(&self.cost), "overdraft": self.overdraft});
        finish(&change(&client, &self.id, "settle", &body)?, &self.options)
    }
}

// === impl Cancel ===

impl Cancel {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        finish(&change(&client, &self.id, "cancel", &json!({}))?, &self.options)
    }
}

fn change(client: &Client, id: &str, verb: &str, body: &Value) -> Result<Reply, ClientError> {
    client.send(Method::POST, &["reservations", id, verb], body)
}

/// One number, or one for each check.
fn cost(costs: &[u64]) -> Value {
    match costs {
        [one] => json!(one),
        several => json!(several),
    }
}

fn finish(reply: &Reply, options: &ServerOptions) -> Result<ExitCode, Failure> {
    print(reply, reply.json()?, options)?;
    Ok(ExitCode::SUCCESS)
}

fn print(
    reply: &Reply,
    response: ReservationResponse,
    options: &ServerOptions,
) -> Result<(), Failure> {
    let fields = response.fields(reply);
    Ok(options.output.print(reply, |out| table::write_fields(out, &fields))?)
}

/// Parses `SCOPE:IDENTIFIER=COST`; the cost is 1 if it is left out.
fn another(text: &str) -> Result<Subject, String> {
    let wrong = || "expected SCOPE:IDENTIFIER=COST, such as user:u1=500".to_owned();
    let (scope, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (identifier, cost) = match rest.rsplit_once('=') {
        Some((identifier, cost)) => (identifier, cost.parse().map_err(|_| wrong())?),
        None => (rest, 1),
    };
    Ok(Subject { scope: scope.to_owned(), identifier: identifier.to_owned(), cost })
}

// === impl ReservationResponse ===

impl ReservationResponse {
    fn fields(self, reply: &Reply) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let yes = |flag: Option<bool>| flag.map(|flag| if flag { "yes" } else { "no" }.to_owned());
        let each = |of: fn(&CheckResult) -> Option<u64>| {
            let all: Option<Vec<String>> =
                self.results.iter().map(|it| of(it).map(|number| number.to_string())).collect();
            all.filter(|all| !all.is_empty()).map(|all| all.join(", "))
        };
        let (held, remaining) = (each(|it| it.held), each(|it| it.remaining));
        let reason = self.results.iter().map(|it| it.reason.clone()).find(|it| !it.is_empty());
        let wait = reply.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let fields = [
            ("reservation", self.id),
            ("allowed", yes(self.allowed)),
            ("status", self.status),
            ("settled", number(self.settled)),
            ("returned", number(self.returned)),
            ("owed", number(self.owed)),
            ("held", number(self.held).or(held)),
            ("stop", yes(self.stop)),
            ("expires at", self.expires_at),
            ("remaining", remaining),
            ("retry after", wait.map(|seconds| format!("{seconds} s"))),
            ("reason", reason),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
