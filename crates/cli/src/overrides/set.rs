//! `headgate overrides set`

use std::time::Duration;

use clap::Args;
use headgate_ratelimit::Window;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;

use super::PATH;
use crate::{
    attributes,
    client::{Client, ClientError, Reply},
    fields,
};

/// Set another limit for a subject of a rule; replaces the one that the subject has.
#[derive(Debug, Args)]
pub(super) struct Set {
    /// Rule id.
    #[arg(long)]
    rule: String,
    /// Attribute that a check must have, such as tenant=acme; may be repeated. The subject of a rule
    /// by scope is its identifier: user=u1.
    #[arg(long = "subject", id = "subject", value_name = "NAME=VALUE", value_parser = attributes::pair, required = true)]
    subject: Vec<(String, String)>,
    /// Units that the subject may consume per window.
    #[arg(long)]
    limit: u64,
    /// Time at which it ends, such as 2026-12-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Time after which it ends, such as 90m or 24h.
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "until")]
    lasting: Option<Window>,
    /// Reason, for people and the audit log.
    #[arg(long)]
    reason: Option<String>,
}

impl Set {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        let lasting = self.lasting.map(|time| Duration::from_secs(time.seconds()));
        // A time beyond the year 9999 is as good as none.
        let end = lasting.and_then(|time| Timestamp::now().checked_add(time).ok()).or(self.until);
        let subject = attributes::object(&self.subject);
        let draft = fields::given([
            ("rule_id", Some(self.rule.into())),
            ("subject", Some(Value::Object(subject))),
            ("limit", Some(self.limit.into())),
            ("until", end.map(|end| end.to_string().into())),
            ("reason", self.reason.map(Value::from)),
        ]);
        client.send(Method::PUT, &[PATH], &draft)
    }
}
