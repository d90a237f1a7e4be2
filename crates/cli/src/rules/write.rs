//! `headgate rules create` and `headgate rules update`

use clap::{Args, ValueEnum};
use headgate::LeasePolicy;
use headgate_ratelimit::Window;
use reqwest::{Method, header::ETAG};
use serde_json::{Map, Value, json};

use super::{
    PATH, Rule,
    rule::{Lease, Limit},
};
use crate::{
    client::{Client, ClientError, Reply},
    failure::Failure,
    fields::{self, EnabledFlags},
};

/// Create a rule.
#[derive(Debug, Args)]
#[command(
    mut_arg("scope", |arg| arg.required_unless_present_any(["when", "per"])),
    mut_arg("pattern", |arg| arg.required_unless_present_any(["when", "per"])),
    mut_arg("limit", |arg| arg.required(true)),
    mut_arg("window", |arg| arg.required(true))
)]
pub(super) struct Create {
    #[command(flatten)]
    options: RuleOptions,
}

/// Change the given fields of a rule; the others keep their values.
#[derive(Debug, Args)]
pub(super) struct Update {
    /// Rule id.
    id: String,
    #[command(flatten)]
    options: RuleOptions,
    /// Remove the value of an optional field; may be repeated.
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<OptionalField>,
}

/// Fields of a rule.
#[derive(Debug, Args)]
struct RuleOptions {
    /// Scope of the subjects: service, user or endpoint.
    #[arg(long)]
    scope: Option<String>,
    /// Subjects that the rule matches: `u1`, `team-*` or `*`.
    #[arg(long)]
    pattern: Option<String>,
    /// Units that each subject may consume per window; or, for a rule over attributes, limits by
    /// plan in JSON: `{"by": "plan", "free": 100, "pro": 1000, "default": 50}`.
    #[arg(long, value_name = "UNITS|JSON")]
    limit: Option<Limit>,
    /// Length of the window, such as 60s, 1m or 1h.
    #[arg(long)]
    window: Option<Window>,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Algorithm: `token_bucket`, `sliding_window`, `sliding_window_counter`, `fixed_window`,
    /// `leaky_bucket` or `concurrency`.
    #[arg(long)]
    algorithm: Option<String>,
    /// Units that may be consumed at once; the limit by default.
    #[arg(long)]
    burst: Option<u64>,
    /// How to decide while the store is unavailable: capped, open, closed or local.
    #[arg(long, value_name = "MODE")]
    fail_mode: Option<String>,
    /// Part of the limit that a server takes in advance from Redis, and for how long: 10%/200ms; or
    /// off.
    #[arg(long, value_name = "SHARE/HOLD")]
    lease: Option<LeasePolicy>,
    /// Conditions of a rule over attributes, in JSON: `{"path": "/v1/*", "method": ["POST"]}`.
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    when: Option<Value>,
    /// Attributes that a rule over attributes counts by, separated by commas.
    #[arg(long, value_name = "ATTRIBUTES", value_delimiter = ',')]
    per: Option<Vec<String>>,
    /// Priority of a rule over attributes, -1000 to 1000.
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Where the rule matches, rules of a lower priority do not apply: true or false.
    #[arg(long)]
    stops: Option<bool>,
    #[command(flatten)]
    enabled: EnabledFlags,
}

/// Fields that a rule may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OptionalField {
    Name,
    Burst,
    FailMode,
    Lease,
    When,
    Per,
}

// === impl Create ===

impl Create {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        client.send(Method::POST, &[PATH], &self.options.fields())
    }
}

// === impl Update ===

impl Update {
    pub(super) fn run(self, client: &Client) -> Result<Reply, Failure> {
        let cleared = self.clear.iter().map(|field| field.name());
        let changes = fields::changes(cleared, self.options.fields(), "headgate rules update")?;
        let path = [PATH, self.id.as_str()];
        let read = client.get(&path, &[])?;
        let current: Rule = read.json()?;
        // PUT requires these; an optional field that is left out keeps its value.
        let mut rule = Map::from_iter([
            ("limit".to_owned(), json!(current.spec.limit)),
            ("window_seconds".to_owned(), json!(current.spec.window_seconds)),
        ]);
        // A rule over attributes has neither.
        if current.spec.when.is_none() {
            rule.insert("scope".to_owned(), json!(current.spec.scope));
            let pattern = json!(current.spec.identifier_pattern);
            rule.insert("identifier_pattern".to_owned(), pattern);
        }
        rule.extend(changes);
        Ok(client.put_if_match(&path, &rule, read.headers.get(ETAG))?)
    }
}

// === impl RuleOptions ===

impl RuleOptions {
    /// Returns the fields that were given, under their names in the API.
    fn fields(self) -> Map<String, Value> {
        fields::given([
            ("scope", self.scope.map(Value::from)),
            ("identifier_pattern", self.pattern.map(Value::from)),
            ("limit", self.limit.map(|limit| json!(limit))),
            ("window_seconds", self.window.map(|window| Value::from(window.seconds()))),
            ("name", self.name.map(Value::from)),
            ("algorithm", self.algorithm.map(Value::from)),
            ("burst", self.burst.map(Value::from)),
            ("fail_mode", self.fail_mode.map(Value::from)),
            ("lease", self.lease.map(|policy| json!(Lease::from(policy)))),
            ("when", self.when),
            ("per", self.per.map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("stops", self.stops.map(Value::from)),
            ("enabled", self.enabled.value().map(Value::from)),
        ])
    }
}

/// Parses a JSON object.
fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("expected a JSON object".to_owned()),
        Err(error) => Err(format!("expected a JSON object: {error}")),
    }
}

// === impl OptionalField ===

impl OptionalField {
    const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Burst => "burst",
            Self::FailMode => "fail_mode",
            Self::Lease => "lease",
            Self::When => "when",
            Self::Per => "per",
        }
    }
}
