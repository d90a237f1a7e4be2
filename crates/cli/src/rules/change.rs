//! `headgate rules create` and `headgate rules update`

use clap::{Args, ValueEnum};
use headgate_ratelimit::Window;
use reqwest::{Method, header::ETAG};
use serde_json::{Map, Value, json};

use super::{PATH, Rule};
use crate::client::{Client, ClientError, Reply};

/// Make a rule.
#[derive(Debug, Args)]
#[command(
    mut_arg("scope", |arg| arg.required(true)),
    mut_arg("pattern", |arg| arg.required(true)),
    mut_arg("limit", |arg| arg.required(true)),
    mut_arg("window", |arg| arg.required(true))
)]
pub(super) struct Create {
    #[command(flatten)]
    wanted: Wanted,
}

/// Change what a rule says, as far as options are given.
#[derive(Debug, Args)]
pub(super) struct Update {
    /// The rule's id.
    id: String,
    #[command(flatten)]
    wanted: Wanted,
    /// Take back what the rule says here.
    #[arg(long, value_enum, value_name = "FIELD")]
    clear: Vec<Clearable>,
}

/// What a rule shall say.
#[derive(Debug, Args)]
struct Wanted {
    /// What kind of subject it is about: service, user or endpoint.
    #[arg(long)]
    scope: Option<String>,
    /// Which subjects: `u1`, `team-*` or `*`.
    #[arg(long)]
    pattern: Option<String>,
    /// How many units each may take.
    #[arg(long)]
    limit: Option<u64>,
    /// In how long a time, such as 60s, 1m or 1h.
    #[arg(long)]
    window: Option<Window>,
    /// Its name for people.
    #[arg(long)]
    name: Option<String>,
    /// How units are counted: `token_bucket`, `sliding_window`, `sliding_window_counter`, `fixed_window` or `leaky_bucket`.
    #[arg(long)]
    algorithm: Option<String>,
    /// How many units at once, where that is not the limit.
    #[arg(long)]
    burst: Option<u64>,
    /// What decides while the store cannot: capped, open, closed or local.
    #[arg(long, value_name = "MODE")]
    fail_mode: Option<String>,
    /// Apply it.
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Keep it, but do not apply it.
    #[arg(long)]
    disabled: bool,
}

/// What a rule need not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clearable {
    Name,
    Burst,
    FailMode,
}

// === impl Create ===

impl Create {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        client.send(Method::POST, &[PATH], &self.wanted.fields())
    }
}

// === impl Update ===

impl Update {
    pub(super) fn run(self, client: &Client) -> Result<Reply, ClientError> {
        let path = [PATH, self.id.as_str()];
        let seen = client.get(&path, &[])?;
        let present: Rule = seen.json()?;
        // What must be there comes from the rule; what is left out beyond that stays.
        let mut fields = Map::from_iter([
            ("scope".to_owned(), json!(present.spec.scope)),
            ("identifier_pattern".to_owned(), json!(present.spec.identifier_pattern)),
            ("limit".to_owned(), json!(present.spec.limit)),
            ("window_seconds".to_owned(), json!(present.spec.window_seconds)),
        ]);
        fields.extend(self.clear.iter().map(|field| (field.name().to_owned(), Value::Null)));
        fields.extend(self.wanted.fields());
        client.send_if_seen(&path, &fields, seen.headers.get(ETAG))
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
            ("scope", self.scope.map(Value::from)),
            ("identifier_pattern", self.pattern.map(Value::from)),
            ("limit", self.limit.map(Value::from)),
            ("window_seconds", self.window.map(|window| Value::from(window.seconds()))),
            ("name", self.name.map(Value::from)),
            ("algorithm", self.algorithm.map(Value::from)),
            ("burst", self.burst.map(Value::from)),
            ("fail_mode", self.fail_mode.map(Value::from)),
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
            Self::Name => "name",
            Self::Burst => "burst",
            Self::FailMode => "fail_mode",
        }
    }
}
