//! Rules.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use headgate::{Algorithm, FailMode, LeasePolicy, Limit, LimitError, Timestamp};
use uuid::Uuid;

use crate::{Pattern, PlanLimits, Scope, Selector};

/// Unique id of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(Uuid);

/// A stored rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimitRule {
    /// Its id.
    pub id: RuleId,
    /// Its fields.
    pub spec: RuleSpec,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The fields of a rule. Only [`Draft::validate`](crate::Draft::validate) creates one, so that it
/// is always valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleSpec {
    /// Display name.
    pub name: Option<String>,
    /// Kind of the subjects.
    pub scope: Scope,
    /// Identifiers of the subjects; the name of a rule over attributes.
    pub identifier_pattern: Pattern,
    /// Units that a subject may consume per window; the [fallback](crate::PlanLimits::fallback) if
    /// the limit is by plan.
    pub limit: u32,
    /// Window in seconds.
    pub window_seconds: u32,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Units that may be consumed at once; the limit if `None`. Other limits of the rule, by plan
    /// and by override, have a burst in the same proportion.
    pub burst: Option<u32>,
    /// Failure mode, which decides checks while the store is unavailable; the configured one if
    /// `None`.
    pub fail_mode: Option<FailMode>,
    /// Part of the limit that a server takes in advance from a shared store; the configured one if
    /// `None`.
    pub lease: Option<LeasePolicy>,
    /// `true` if it is enforced. A disabled rule admits everything and counts nothing.
    pub enabled: bool,
    /// Conditions on the attributes of a check; `None` for a rule of subjects, by scope and pattern.
    pub selector: Option<Arc<Selector>>,
}

// === impl RuleId ===

impl RuleId {
    /// Generates a new id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns the UUID.
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
    /// Maximum number of rules with one scope and pattern. A check consults all of them, so that
    /// this bounds the size of its batch.
    pub const MAX_WINDOWS: usize = 8;

    /// Returns its name, or `scope:identifier_pattern`.
    pub fn display_name(&self) -> String {
        self.spec.display_name()
    }
}

// === impl RuleSpec ===

impl RuleSpec {
    /// Returns the name, or `scope:identifier_pattern`.
    pub fn display_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.key())
    }

    /// Returns `scope:identifier_pattern`.
    pub fn key(&self) -> String {
        format!("{}:{}", self.scope, self.identifier_pattern)
    }

    /// Returns what identifies a rule among others: scope, pattern and window.
    pub fn identity(&self) -> (Scope, &Pattern, u32) {
        (self.scope, &self.identifier_pattern, self.window_seconds)
    }

    /// Returns the window.
    pub fn window(&self) -> Duration {
        Duration::from_secs(self.window_seconds.into())
    }

    /// Returns the limits by plan: values of the attribute, and units.
    pub fn plan_limits(&self) -> impl Iterator<Item = (&str, u32)> {
        let limits = self.selector.as_deref().and_then(Selector::limits);
        limits.into_iter().flat_map(PlanLimits::limits)
    }

    /// Converts to the engine's limit.
    pub fn engine_limit(&self) -> Result<Limit, LimitError> {
        self.engine_limit_of(self.limit)
    }

    /// Converts to the engine's limit with another number of units.
    pub fn engine_limit_of(&self, units: u32) -> Result<Limit, LimitError> {
        let limit = Limit::new(self.algorithm, units.into(), self.window())?;
        match self.burst {
            Some(burst) => limit.with_burst(self.scaled(burst, units)),
            None => Ok(limit),
        }
    }

    /// Returns a burst in proportion to `units`. Rounded down, so that it refills as fast.
    fn scaled(&self, burst: u32, units: u32) -> u64 {
        let scaled = u64::from(burst) * u64::from(units) / u64::from(self.limit.max(1));
        scaled.clamp(1, u32::MAX.into())
    }
}
