//! `headgate holders`

use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    attributes,
    client::{Client, ServerOptions},
    failure::Failure,
    table::{Column, Table},
};

/// Show who holds the places of a concurrency limit, or end a lease.
#[derive(Debug, Args)]
pub(crate) struct Holders {
    #[command(flatten)]
    subject: Subject,
    /// Maximum number of holders to list per rule, at most 1000.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, conflicts_with_all = ["attributes", "end"])]
    max: u32,
    /// End the lease of this holder: its places are free at once, and its next renewal is refused.
    #[arg(long, value_name = "HOLDER", allow_hyphen_values = true)]
    end: Option<String>,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Debug, Args, Serialize)]
struct Subject {
    /// Scope of the subject: service, user or endpoint.
    #[arg(required_unless_present = "attributes", requires = "identifier")]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// Identifier of the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    /// Attribute of the acquisition, such as tenant=acme; may be repeated. Values that differ for
    /// one name are a list.
    #[arg(long = "attribute", id = "attributes", value_name = "NAME=VALUE", value_parser = attributes::pair, conflicts_with = "scope")]
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "attributes::serialize")]
    attributes: Vec<(String, String)>,
    /// Reason for the audit log.
    #[arg(long, requires = "end")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct HoldersResponse {
    rules: Vec<RuleHolders>,
}

#[derive(Deserialize)]
struct RuleHolders {
    rule_name: String,
    subject: String,
    limit: u64,
    taken: u64,
    total: u64,
    holders: Vec<HeldPlaces>,
}

#[derive(Deserialize)]
struct HeldPlaces {
    holder: String,
    places: u64,
    expires_at: String,
    expires_in_ms: u64,
}

#[derive(Deserialize)]
struct Ended {
    ended: bool,
}

impl Holders {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let client = self.options.connect()?;
        match &self.end {
            Some(holder) => self.end(&client, holder),
            None => self.list(&client),
        }
    }

    fn list(&self, client: &Client) -> Result<ExitCode, Failure> {
        let subject = &self.subject;
        let reply = if subject.attributes.is_empty() {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            let (scope, identifier) = (text(&subject.scope), text(&subject.identifier));
            let max = self.max.to_string();
            let query = [("scope", &*scope), ("identifier", &identifier), ("max", &max)];
            client.get(&["holders"], &query)?
        } else {
            let check = json!({"attributes": attributes::object(&subject.attributes)});
            client.send(Method::POST, &["holders"], &check)?
        };
        let listed: HoldersResponse = reply.json()?;
        self.options.output.print(&reply, |out| listed.write(out))?;
        Ok(ExitCode::SUCCESS)
    }

    fn end(&self, client: &Client, holder: &str) -> Result<ExitCode, Failure> {
        let reply = client.send(Method::POST, &["holders", holder, "end"], &self.subject)?;
        let Ended { ended } = reply.json()?;
        let message = if ended { "ended" } else { "had ended before" };
        self.options.output.print(&reply, |out| writeln!(out, "lease of {holder} {message}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl HoldersResponse {
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        if self.rules.is_empty() {
            return writeln!(out, "no concurrency rule applies");
        }
        let mut table = Table::new([
            Column::Text("HOLDER"),
            Column::Number("PLACES"),
            Column::Text("ENDS AT"),
            Column::Number("LEFT"),
            Column::Text("RULE"),
            Column::Text("SUBJECT"),
        ]);
        let mut totals = Vec::new();
        for rule in self.rules {
            totals.push(rule.total());
            for holder in rule.holders {
                table.row([
                    holder.holder,
                    holder.places.to_string(),
                    holder.expires_at,
                    left(holder.expires_in_ms),
                    rule.rule_name.clone(),
                    rule.subject.clone(),
                ]);
            }
        }
        table.write(out)?;
        totals.into_iter().try_for_each(|total| writeln!(out, "{total}"))
    }
}

impl RuleHolders {
    fn total(&self) -> String {
        let Self { rule_name, limit, taken, total, .. } = self;
        let listed = self.holders.len();
        let holders = if *total == 1 { "holder" } else { "holders" };
        let part =
            if *total > listed as u64 { format!(", {listed} listed") } else { String::new() };
        format!("{rule_name}: {taken} of {limit} places taken, {total} {holders}{part}")
    }
}

/// Time left, in seconds with one digit.
fn left(milliseconds: u64) -> String {
    format!("{:.1}s", Duration::from_millis(milliseconds).as_secs_f64())
}
