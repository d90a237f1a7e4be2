//! `headgate quota usage` and `headgate quota check`

use std::process::ExitCode;

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::EXCEEDED;
use crate::{
    client::{Client, Reply},
    failure::Failure,
    output::Output,
    table,
};

/// Check whether units are left, without consuming any.
///
/// Exits with 0 if they are, 2 if not and 1 on errors.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Policy id.
    id: String,
    /// Units to check for; 1 by default.
    #[arg(long)]
    amount: Option<u64>,
}

#[derive(Deserialize)]
struct Usage {
    quota_id: String,
    subject_type: String,
    subject_id: String,
    period: String,
    limit: u64,
    used: u64,
    #[serde(default)]
    reserved: u64,
    remaining: u64,
    #[serde(rename = "usage_percent")]
    percent: f64,
    reset_at: String,
    allowed: Option<bool>,
}

/// Prints the usage in a response.
pub(super) fn print(reply: &Reply, output: Output) -> Result<(), Failure> {
    let fields = reply.json::<Usage>()?.fields();
    Ok(output.print(reply, |out| table::write_fields(out, &fields))?)
}

impl Check {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<ExitCode, Failure> {
        let amount = self.amount.map(|amount| ("amount".to_owned(), Value::from(amount)));
        let body: Map<String, Value> = amount.into_iter().collect();
        let reply = client.send(Method::POST, &[&self.id, "check"], &body)?;
        let usage: Usage = reply.json()?;
        let allowed = usage.allowed == Some(true);
        let fields = usage.fields();
        output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(EXCEEDED) })
    }
}

impl Usage {
    fn fields(self) -> Vec<(&'static str, String)> {
        let mut fields: Vec<_> = self
            .allowed
            .map(|allowed| ("allowed", if allowed { "yes" } else { "no" }.to_owned()))
            .into_iter()
            .collect();
        fields.extend([
            ("quota", self.quota_id),
            ("subject", format!("{}:{}", self.subject_type, self.subject_id)),
            ("used", format!("{} of {} ({} %)", self.used, self.limit, self.percent)),
        ]);
        let reserved = (self.reserved > 0).then(|| ("reserved", self.reserved.to_string()));
        fields.extend(reserved);
        fields.extend([
            ("remaining", self.remaining.to_string()),
            ("period", self.period),
            ("reset at", self.reset_at),
        ]);
        fields
    }
}
