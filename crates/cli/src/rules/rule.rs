//! Rules in the API.

use std::{fmt, str::FromStr};

use headgate::LeasePolicy;
use headgate_ratelimit::Window;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A stored rule.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) spec: Spec,
    created_at: String,
    updated_at: String,
    #[serde(default)]
    warnings: Vec<Warning>,
}

/// The fields of a rule that users set.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) scope: String,
    pub(super) identifier_pattern: String,
    /// A number, or limits by plan.
    pub(super) limit: Limit,
    pub(super) window_seconds: u64,
    pub(super) algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fail_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<Lease>,
    /// Only rules over attributes have this and the next three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stops: Option<bool>,
    pub(super) enabled: bool,
}

/// Units per window: a number, or numbers by the value of an attribute.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Limit {
    Number(u64),
    ByPlan(Map<String, Value>),
}

/// A warning about a rule.
#[derive(Debug, Deserialize)]
struct Warning {
    message: String,
}

/// The lease of a rule.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Lease {
    pub(super) share_percent: u64,
    pub(super) hold_ms: u64,
}

/// The algorithm of rules that set none.
const DEFAULT_ALGORITHM: &str = "token_bucket";

// === impl Rule ===

impl Rule {
    pub(super) fn fields(self) -> Vec<(&'static str, String)> {
        let Self { id, spec, created_at, updated_at, warnings } = self;
        let subjects = spec.subjects();
        let window = Window::from_secs(spec.window_seconds);
        let mut fields = vec![("id", id)];
        fields.extend(spec.name.map(|name| ("name", name)));
        fields.extend([
            ("subjects", subjects),
            ("limit", spec.limit.to_string()),
            ("window", window.to_string()),
            ("algorithm", spec.algorithm),
        ]);
        fields.extend(spec.burst.map(|burst| ("burst", burst.to_string())));
        fields.extend(spec.fail_mode.map(|mode| ("fail mode", mode)));
        fields.extend(spec.lease.map(|lease| ("lease", lease.to_string())));
        fields.extend(spec.when.map(|when| ("when", when.to_string())));
        fields.extend(spec.per.map(|per| ("per", per.join(", "))));
        fields.extend(spec.priority.map(|priority| ("priority", priority.to_string())));
        fields.extend(spec.stops.map(|stops| ("stops", yes_or_no(stops))));
        fields.extend([
            ("enabled", yes_or_no(spec.enabled)),
            ("created at", created_at),
            ("updated at", updated_at),
        ]);
        fields.extend(warnings.into_iter().map(|warning| ("warning", warning.message)));
        fields
    }
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

// === impl Spec ===

impl Spec {
    /// Scope and pattern.
    pub(super) fn subjects(&self) -> String {
        format!("{}:{}", self.scope, self.identifier_pattern)
    }
}

// === impl Limit ===

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let fields = serde_json::from_str(text).map(Self::ByPlan);
        fields.map_err(|_| {
            "expected a number, or JSON such as {\"by\": \"plan\", \"free\": 100, \"default\": 50}"
                .to_owned()
        })
    }
}

/// A number, or values with their numbers: `free 100, default 50 by plan`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = match self {
            Self::Number(number) => return number.fmt(f),
            Self::ByPlan(fields) => fields,
        };
        let limits = fields.iter().filter(|(name, _)| *name != "by");
        for (i, (value, limit)) in limits.enumerate() {
            write!(f, "{}{value} {limit}", if i > 0 { ", " } else { "" })?;
        }
        write!(f, " by {}", fields.get("by").and_then(Value::as_str).unwrap_or_default())
    }
}

// === impl Lease ===

impl From<LeasePolicy> for Lease {
    fn from(policy: LeasePolicy) -> Self {
        Self { share_percent: policy.share_percent().into(), hold_ms: policy.hold_ms().into() }
    }
}

/// As on the command line.
impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = LeasePolicy::new(self.share_percent, self.hold_ms);
        policy.unwrap_or(LeasePolicy::OFF).fmt(f)
    }
}

/// One line with the limit and everything that is not a default.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.subjects(), self.limit, Window::from_secs(self.window_seconds))?;
        if self.algorithm != DEFAULT_ALGORITHM {
            write!(f, ", {}", self.algorithm)?;
        }
        if let Some(burst) = self.burst {
            write!(f, ", burst {burst}")?;
        }
        if let Some(mode) = &self.fail_mode {
            write!(f, ", fail {mode}")?;
        }
        if let Some(lease) = &self.lease {
            write!(f, ", lease {lease}")?;
        }
        if let Some(when) = &self.when {
            write!(f, ", when {when}")?;
        }
        if let Some(per) = self.per.as_deref().filter(|per| !per.is_empty()) {
            write!(f, ", per {}", per.join(", "))?;
        }
        if let Some(priority) = self.priority.filter(|priority| *priority != 0) {
            write!(f, ", priority {priority}")?;
        }
        if self.stops == Some(true) {
            f.write_str(", stops others")?;
        }
        if !self.enabled {
            f.write_str(", disabled")?;
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, ", named {name:?}"))
    }
}
