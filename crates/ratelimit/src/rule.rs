//! What a rule says.

use std::{fmt, str::FromStr, time::Duration};

use headgate::{Algorithm, FailMode, Limit, LimitError, Timestamp};
use uuid::Uuid;

use crate::{Pattern, Scope};

/// Names a rule for as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(Uuid);

/// A rule that is in force, or would be if it were enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitRule {
    /// Its name for programs.
    pub id: RuleId,
    /// What it says.
    pub spec: RuleSpec,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What a rule says. It is made by [`Draft::validate`](crate::Draft::validate) alone, so that
/// one which exists is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleSpec {
    /// Its name for people.
    pub name: Option<String>,
    /// What kind of subject it is about.
    pub scope: Scope,
    /// Which subjects of that kind.
    pub identifier_pattern: Pattern,
    /// How many units a subject may take.
    pub limit: u32,
    /// In how many seconds.
    pub window_seconds: u32,
    /// How that is counted.
    pub algorithm: Algorithm,
    /// How many units at once, where that is not the limit.
    pub burst: Option<u32>,
    /// Who decides while the store cannot, where that is not the configured default.
    pub fail_mode: Option<FailMode>,
    /// Whether it is applied: a disabled rule admits everything and counts nothing.
    pub enabled: bool,
}

// === impl RuleId ===

impl RuleId {
    /// An id that no other rule has.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id as the database keeps it.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for RuleId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for RuleId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl RateLimitRule ===

impl RateLimitRule {
    /// The most rules of one scope and pattern. All of them must admit every check, so that a batch has to have room
    /// for as many checks as it has subjects, so many times.
    pub const MAX_WINDOWS: usize = 8;

    /// Its name for people: the given one, or `scope:identifier_pattern`.
    pub fn display_name(&self) -> String {
        self.spec.display_name()
    }
}

// === impl RuleSpec ===

impl RuleSpec {
    /// The given name, or `scope:identifier_pattern`.
    pub fn display_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.key())
    }

    /// Whom it is about: `scope:identifier_pattern`.
    pub fn key(&self) -> String {
        format!("{}:{}", self.scope, self.identifier_pattern)
    }

    /// What makes it another rule than all others: whom it is about, and its window.
    pub fn identity(&self) -> (Scope, &Pattern, u32) {
        (self.scope, &self.identifier_pattern, self.window_seconds)
    }

    /// The limit in the engine's words.
    pub fn engine_limit(&self) -> Result<Limit, LimitError> {
        let window = Duration::from_secs(self.window_seconds.into());
        let limit = Limit::new(self.algorithm, self.limit.into(), window)?;
        match self.burst {
            Some(burst) => limit.with_burst(burst.into()),
            None => Ok(limit),
        }
    }
}
