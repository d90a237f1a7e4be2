//! `headgate quota refund`

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use crate::{client::Client, failure::Failure, output::Output, table};

/// Give back what an increment of the current period consumed, once.
#[derive(Debug, Args)]
pub(super) struct Refund {
    /// Policy id.
    id: String,
    /// Idempotency key of the increment.
    #[arg(long, value_name = "KEY")]
    request_id: String,
}

#[derive(Deserialize)]
struct RefundResponse {
    quota_id: String,
    refunded: u64,
    used: u64,
    remaining: u64,
    usage_percent: f64,
}

impl Refund {
    pub(super) fn run(self, client: &Client, output: Output) -> Result<(), Failure> {
        let body = json!({ "request_id": self.request_id });
        let reply = client.send(Method::POST, &[&self.id, "usage", "refund"], &body)?;
        let RefundResponse { quota_id, refunded, used, remaining, usage_percent } = reply.json()?;
        let fields = [
            ("quota", quota_id),
            ("refunded", refunded.to_string()),
            ("used", format!("{used} ({usage_percent} %)")),
            ("remaining", remaining.to_string()),
        ];
        Ok(output.print(&reply, |out| table::write_fields(out, &fields))?)
    }
}
