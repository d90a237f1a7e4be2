//! `headgate quota create` and `headgate quota update`

use clap::{Args, ValueEnum};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::Policy;
use crate::client::{Client, ClientError, Reply};

/// Make a policy.
#[derive(Debug, Args)]
#[command(
    mut_arg("name", |arg| arg.required(true)),
    mut_arg("subject_type", |arg| arg.required(true)),
    mut_arg("subject_id", |arg| arg.required(true)),
    mut_arg("limit", |arg| arg.required(true)),
    mut_arg("period", |arg| arg.required(true))
)]
pub(super) struct Create {
    #[command(flatten)]
    wanted: Wanted,
}

/// Change what a policy says, as far as options are given.
#[derive(Debug, Args)]
pub(super) struct Update {
    /// The policy's id.
    id: String,
    #[command(flatten)]
    wanted: Wanted,
    /// Take back what the policy says here.
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<Clearable>,
}

/// What a policy shall say.
#[derive(Debug, Args)]
struct Wanted {
    /// Its name for people.
    #[arg(long)]
    name: Option<String>,
    /// What kind of subject it is about: tenant, user or `api_key`.
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// Which one.
    #[arg(long, value_name = "ID")]
    subject_id: Option<String>,
    /// How much the subject may use in a period.
    #[arg(long)]
    limit: Option<u64>,
    /// How long a period is: daily or monthly.
    #[arg(long)]
    period: Option<String>,
    /// By the calendar of which zone, such as Asia/Tokyo; UTC unless said.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// From which percentage on an alert is raised.
    #[arg(long, value_name = "PERCENT")]
    alert_at: Option<u8>,
    /// Apply it.
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Keep it, but admit everything and count nothing.
    #[arg(long)]
    disabled: bool,
}

/// What a policy need not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clearable {
    TimeZone,
    AlertAt,
}

// === impl Create ===

impl Create {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        client.send(Method::POST, &[], &self.wanted.fields())
    }
}

// === impl Update ===

impl Update {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        let path = [self.id.as_str()];
        let present: Policy = client.get(&path, &[])?.json()?;
        // What must be there comes from the policy; what is left out beyond that stays.
        let mut fields = Map::from_iter([
            ("name".to_owned(), json!(present.name)),
            ("subject_type".to_owned(), json!(present.subject_type)),
            ("subject_id".to_owned(), json!(present.subject_id)),
            ("limit".to_owned(), json!(present.limit)),
            ("period".to_owned(), json!(present.period)),
        ]);
        fields.extend(self.clear.iter().map(|field| (field.name().to_owned(), Value::Null)));
        fields.extend(self.wanted.fields());
        client.send(Method::PUT, &path, &fields)
    }
}

// === impl Wanted ===

impl Wanted {
    /// The fields that were given, as the API calls them.
    fn fields(self) -> Map<String, Value> {
        let enabled = match (self.enabled, self.disabled) {
            (false, false) => None,
            (enabled, _) => Some(enabled),
        };
        let fields = [
            ("name", self.name.map(Value::from)),
            ("subject_type", self.subject_type.map(Value::from)),
            ("subject_id", self.subject_id.map(Value::from)),
            ("limit", self.limit.map(Value::from)),
            ("period", self.period.map(Value::from)),
            ("time_zone", self.time_zone.map(Value::from)),
            ("alert_threshold_percent", self.alert_at.map(Value::from)),
            ("enabled", enabled.map(Value::from)),
        ];
        let given = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
        fields.into_iter().filter_map(given).collect()
    }
}

// === impl Clearable ===

impl Clearable {
    const fn name(self) -> &'static str {
        match self {
            Self::TimeZone => "time_zone",
            Self::AlertAt => "alert_threshold_percent",
        }
    }
}
