//! `headgate quota create` and `headgate quota update`

use clap::{Args, ValueEnum};
use reqwest::{Method, header::ETAG};
use serde_json::{Map, Value, json};

use super::Policy;
use crate::{
    client::{Client, ClientError, Reply},
    failure::Failure,
    fields::{self, EnabledFlags},
};

/// Create a policy.
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
    options: PolicyOptions,
}

/// Change the given fields of a policy; the others keep their values.
#[derive(Debug, Args)]
pub(super) struct Update {
    /// Policy id.
    id: String,
    #[command(flatten)]
    options: PolicyOptions,
    /// Remove the value of an optional field; may be repeated.
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<OptionalField>,
}

/// Fields of a policy.
#[derive(Debug, Args)]
struct PolicyOptions {
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Type of the subject: tenant, user or `api_key`.
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// Id of the subject.
    #[arg(long, value_name = "ID")]
    subject_id: Option<String>,
    /// Units that the subject may consume per period.
    #[arg(long)]
    limit: Option<u64>,
    /// Length of a period: daily or monthly.
    #[arg(long)]
    period: Option<String>,
    /// Time zone whose calendar bounds the periods, such as Asia/Tokyo; UTC by default.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Usage at which a threshold event is published, as a percentage of the limit.
    #[arg(long, value_name = "PERCENT")]
    alert_at: Option<u8>,
    #[command(flatten)]
    enabled: EnabledFlags,
}

/// Fields that a policy may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OptionalField {
    TimeZone,
    AlertAt,
}

// === impl Create ===

impl Create {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        client.send(Method::POST, &[], &self.options.fields())
    }
}

// === impl Update ===

impl Update {
    pub(super) fn run(self, client: &Client) -> Result<Reply, Failure> {
        let cleared = self.clear.iter().map(|field| field.name());
        let changes = fields::changes(cleared, self.options.fields(), "headgate quota update")?;
        let path = [self.id.as_str()];
        let read = client.get(&path, &[])?;
        let current: Policy = read.json()?;
        // PUT requires these; an optional field that is left out keeps its value.
        let mut policy = Map::from_iter([
            ("name".to_owned(), json!(current.name)),
            ("subject_type".to_owned(), json!(current.subject_type)),
            ("subject_id".to_owned(), json!(current.subject_id)),
            ("limit".to_owned(), json!(current.limit)),
            ("period".to_owned(), json!(current.period)),
        ]);
        policy.extend(changes);
        Ok(client.put_if_match(&path, &policy, read.headers.get(ETAG))?)
    }
}

// === impl PolicyOptions ===

impl PolicyOptions {
    /// Returns the fields that were given, under their names in the API.
    fn fields(self) -> Map<String, Value> {
        fields::given([
            ("name", self.name.map(Value::from)),
            ("subject_type", self.subject_type.map(Value::from)),
            ("subject_id", self.subject_id.map(Value::from)),
            ("limit", self.limit.map(Value::from)),
            ("period", self.period.map(Value::from)),
            ("time_zone", self.time_zone.map(Value::from)),
            ("alert_threshold_percent", self.alert_at.map(Value::from)),
            ("enabled", self.enabled.value().map(Value::from)),
        ])
    }
}

// === impl OptionalField ===

impl OptionalField {
    const fn name(self) -> &'static str {
        match self {
            Self::TimeZone => "time_zone",
            Self::AlertAt => "alert_threshold_percent",
        }
    }
}
