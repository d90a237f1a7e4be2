//! Rules in the API.

use std::fmt;

use headgate_ratelimit::Window;
use serde::{Deserialize, Serialize};

/// A stored rule.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) spec: Spec,
    created_at: String,
    updated_at: String,
}

/// The fields of a rule that users set.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) scope: String,
    pub(super) identifier_pattern: String,
    pub(super) limit: u64,
    pub(super) window_seconds: u64,
    pub(super) algorithm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fail_mode: Option<String>,
    pub(super) enabled: bool,
}

/// The algorithm of rules that set none.
const DEFAULT_ALGORITHM: &str = "token_bucket";

// === impl Rule ===

impl Rule {
    pub(super) fn fields(self) -> Vec<(&'static str, String)> {
        let Self { id, spec, created_at, updated_at } = self;
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
        fields.extend([
            ("enabled", if spec.enabled { "yes" } else { "no" }.to_owned()),
            ("created at", created_at),
            ("updated at", updated_at),
        ]);
        fields
    }
}

// === impl Spec ===

impl Spec {
    /// Scope and pattern.
    pub(super) fn subjects(&self) -> String {
        format!("{}:{}", self.scope, self.identifier_pattern)
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
        if !self.enabled {
            f.write_str(", disabled")?;
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, ", named {name:?}"))
    }
}
