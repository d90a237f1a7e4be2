//! Overrides: other limits for single subjects of a rule, possibly until a time.

mod draft;
pub(crate) mod subject;

use std::{fmt, str::FromStr};

use headgate::Timestamp;
use uuid::Uuid;

pub use self::{
    draft::OverrideDraft,
    subject::{OverrideSubject, SubjectError},
};
use crate::RuleId;

/// Unique id of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OverrideId(Uuid);

/// Another limit for the subjects of a rule that have certain attributes. The rule stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOverride {
    /// Its id.
    pub id: OverrideId,
    /// Its fields.
    pub spec: OverrideSpec,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// The fields of an override. A rule has at most one for a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideSpec {
    /// The rule.
    pub rule: RuleId,
    /// Attributes that a check must have.
    pub subject: OverrideSubject,
    /// Units per window.
    pub limit: u32,
    /// End, by the clock of the server that checks; none if `None`.
    pub until: Option<Timestamp>,
    /// Note for people.
    pub reason: Option<String>,
}

/// Selects overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverrideFilter {
    /// Only those of this rule.
    pub rule: Option<RuleId>,
    /// Only those whose subject contains this, ignoring case.
    pub search: Option<String>,
    /// Only those that have not ended at this time.
    pub active_at: Option<Timestamp>,
}

// === impl OverrideId ===

impl OverrideId {
    /// Generates a new id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns the UUID.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for OverrideId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl FromStr for OverrideId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

impl fmt::Display for OverrideId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl RuleOverride ===

impl RuleOverride {
    /// Maximum number of overrides.
    pub const MAX: u64 = 100_000;

    /// Returns `true` if it has not ended at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.spec.until.is_none_or(|until| now < until)
    }
}
