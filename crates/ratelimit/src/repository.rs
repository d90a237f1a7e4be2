//! The storage of rules.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page, Revision};
use thiserror::Error;
use tokio::sync::Notify;

use crate::{
    OverrideFilter, OverrideId, OverrideSpec, Pattern, RateLimitRule, RuleId, RuleOverride,
    RuleSpec, Scope,
};

/// Stores rules and records changes in the audit log.
///
/// # Contract
///
/// - [`write`](Self::write) is atomic: all changes are made, recorded in the audit log and
///   followed by a new revision, or none is.
/// - No two rules have the same scope, pattern and window, even with concurrent writers.
/// - No rule is added to a scope and pattern that already have [`RateLimitRule::MAX_WINDOWS`].
/// - No rule is added beyond [`max_rules`](Self::max_rules).
/// - Two different sets of rules never have the same revision.
/// - Each change of a rule increases its `updated_at`, even if the clock goes back.
#[async_trait]
pub trait RateLimitRuleRepository: Send + Sync {
    /// Maximum number of rules.
    fn max_rules(&self) -> u64;

    /// Returns all rules, and a revision that is not newer than they are.
    async fn load(&self) -> Result<(Revision, Vec<RateLimitRule>), RepositoryError>;

    /// Returns all overrides that rules had at the revision of an earlier [`load`](Self::load), or
    /// later.
    async fn load_overrides(&self) -> Result<Vec<RuleOverride>, RepositoryError>;

    /// Returns the changes after the revision `since`, read consistently; `None` if they are not
    /// available any more and all rules must be loaded.
    async fn changes(&self, since: Revision) -> Result<Option<RuleDelta>, RepositoryError>;

    /// Returns a page of the rules that match `filter`, newest first and then by id, with the
    /// revision they belong to.
    async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), RepositoryError>;

    /// Returns the rule with this id.
    async fn get(&self, id: RuleId) -> Result<Option<RateLimitRule>, RepositoryError>;

    /// Applies `changes` in order; returns the new rules, or the old ones of deletions.
    async fn write(
        &self,
        changes: &[RuleChange],
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError>;

    /// Applies `changes` on condition that the rules are still of the revision `expected`.
    async fn write_if_unchanged(
        &self,
        changes: &[RuleChange],
        expected: Revision,
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError>;

    /// Notifies `changed` after every write by any server; returns if the connection is lost.
    /// A repository without notifications never notifies and never returns.
    async fn listen(&self, changed: &Notify) -> RepositoryError;
}

/// The changes between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleDelta {
    /// The revision after the changes.
    pub revision: Revision,
    /// Created and updated rules.
    pub changed: Vec<RateLimitRule>,
    /// Ids of deleted rules, including rules that were created in between.
    pub deleted: Vec<RuleId>,
    /// Created and updated overrides.
    pub overrides: Vec<RuleOverride>,
    /// Ids of deleted overrides.
    pub deleted_overrides: Vec<OverrideId>,
}

/// Stores overrides and records changes in the audit log. Overrides belong to the same revisions as
/// the rules, and are deleted with their rule.
#[async_trait]
pub trait OverrideRepository: Send + Sync {
    /// Returns a page of the overrides that match `filter`, newest first and then by id.
    async fn list_overrides(
        &self,
        filter: &OverrideFilter,
        page: Page,
    ) -> Result<Listed<RuleOverride>, RepositoryError>;

    /// Returns the override with this id.
    async fn get_override(&self, id: OverrideId) -> Result<Option<RuleOverride>, RepositoryError>;

    /// Creates an override, or replaces the one of the same rule and subject. The flag is `true` if
    /// it is new.
    async fn set_override(
        &self,
        spec: &OverrideSpec,
        author: &Author,
    ) -> Result<(RuleOverride, bool), RepositoryError>;

    /// Deletes an override and returns it.
    async fn delete_override(
        &self,
        id: OverrideId,
        author: &Author,
    ) -> Result<RuleOverride, RepositoryError>;
}

/// A change of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// Creates a rule.
    Create(RuleSpec),
    /// Replaces the fields of a rule.
    Update(RuleId, RuleSpec),
    /// Replaces the fields of a rule, on condition that its `updated_at` is still this.
    UpdateIfUnchanged(RuleId, RuleSpec, Timestamp),
    /// Deletes a rule.
    Delete(RuleId),
    /// Deletes a rule, on condition that its `updated_at` is still this.
    DeleteIfUnchanged(RuleId, Timestamp),
}

/// Selects rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// Only rules of this scope.
    pub scope: Option<Scope>,
    /// Only enabled rules.
    pub enabled_only: bool,
    /// Only rules whose name or pattern contains this, ignoring case.
    pub search: Option<String>,
}

/// An error of a repository.
#[derive(Clone, Debug, Error)]
pub enum RepositoryError {
    /// Another rule has the same scope, pattern and window.
    #[error(
        "a rule for {scope}:{pattern} with a window of {window_seconds} seconds already exists"
    )]
    Exists {
        /// Scope of both.
        scope: Scope,
        /// Pattern of both.
        pattern: Pattern,
        /// Window of both.
        window_seconds: u32,
    },
    /// A scope and pattern already have the maximum number of windows.
    #[error(
        "{scope}:{pattern} may have at most {max} windows; delete one of its rules first",
        max = RateLimitRule::MAX_WINDOWS
    )]
    TooManyWindows {
        /// Their scope.
        scope: Scope,
        /// Their pattern.
        pattern: Pattern,
    },
    /// The maximum number of rules is reached.
    #[error(
        "there may be at most {max} rules; delete rules that are not needed, match several \
         subjects with one prefix*, or raise ratelimit.max_rules"
    )]
    TooManyRules {
        /// The maximum.
        max: u64,
    },
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NotFound(RuleId),
    /// There is no such override.
    #[error("override not found: {0}")]
    NoSuchOverride(OverrideId),
    /// The maximum number of overrides is reached.
    #[error(
        "there may be at most {max} overrides; delete some, or write a limit by plan",
        max = RuleOverride::MAX
    )]
    TooManyOverrides,
    /// The rule was changed after it was read.
    #[error("rule {0} has changed in the meantime; read it again and retry")]
    Changed(RuleId),
    /// The rules were changed after they were read.
    #[error(
        "the rules have changed in the meantime (revision {}, expected {}); repeat the dry run and retry",
        actual.0,
        expected.0
    )]
    RulesChanged {
        /// The revision that the change was made for.
        expected: Revision,
        /// The current revision.
        actual: Revision,
    },
    /// The database contains invalid data.
    #[error("the database contains an invalid rule: {0}")]
    Corrupt(String),
    /// The database is unreachable or failed.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

// === impl RepositoryError ===

impl RepositoryError {
    /// Wraps the cause of an outage.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }
}
