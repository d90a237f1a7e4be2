//! What is asked of whoever keeps rules.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page, Revision};
use thiserror::Error;
use tokio::sync::Notify;

use crate::{Pattern, RateLimitRule, RuleId, RuleSpec, Scope};

/// Keeps rules, and a record of who changed them.
///
/// Its contract:
///
/// - [`write`](Self::write) is atomic: all changes are made, recorded in the audit log and
///   followed by a new revision, or none is.
/// - No two rules have the same scope, pattern and window, whoever writes at the same time.
/// - No rule comes to a scope and pattern that have [`RateLimitRule::MAX_WINDOWS`] already.
/// - No rule comes to [`max_rules`](Self::max_rules) others.
/// - Two different sets of rules never have the same revision.
/// - A rule that is changed has a later `updated_at` than before, whatever the clock says.
#[async_trait]
pub trait RateLimitRuleRepository: Send + Sync {
    /// The most rules that are kept.
    fn max_rules(&self) -> u64;

    /// All rules, and a revision that is not newer than they are.
    async fn load(&self) -> Result<(Revision, Vec<RateLimitRule>), RepositoryError>;

    /// What changed after the revision `since`, read at one moment; `None` if that is not known
    /// any more, so that all rules must be read.
    async fn changes(&self, since: Revision) -> Result<Option<RuleDelta>, RepositoryError>;

    /// One page of the rules that pass `filter`, the newest first, then by id; and the revision
    /// that they are of.
    async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), RepositoryError>;

    /// The rule with this id.
    async fn get(&self, id: RuleId) -> Result<Option<RateLimitRule>, RepositoryError>;

    /// Makes `changes` in their order; gives the rules as they are then, or were when deleted.
    async fn write(
        &self,
        changes: &[RuleChange],
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError>;

    /// The same, if the rules are those of `seen`: nobody changed any since they were looked at.
    async fn write_seen(
        &self,
        changes: &[RuleChange],
        seen: Revision,
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError>;

    /// Wakes `changed` whenever somebody has written; returns when it cannot any more.
    /// Where nobody can be heard it never returns, and never wakes.
    async fn listen(&self, changed: &Notify) -> RepositoryError;
}

/// What changed between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleDelta {
    /// The revision after the changes.
    pub revision: Revision,
    /// The rules that are new, or say something else.
    pub changed: Vec<RateLimitRule>,
    /// The rules that are gone, if they were there before.
    pub deleted: Vec<RuleId>,
}

/// One change of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// A new rule.
    Create(RuleSpec),
    /// What a rule says from now on.
    Update(RuleId, RuleSpec),
    /// The same, if the rule was last changed at that time: nobody changed it since it was seen.
    UpdateSeen(RuleId, RuleSpec, Timestamp),
    /// No rule any more.
    Delete(RuleId),
}

/// Which rules are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// Only those of this scope.
    pub scope: Option<Scope>,
    /// Only those that are enabled.
    pub enabled_only: bool,
    /// Only those whose name or pattern contains this, whatever its case.
    pub search: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
pub enum RepositoryError {
    /// Another rule has the same scope, pattern and window.
    #[error(
        "a rule for {scope}:{pattern} with a window of {window_seconds} seconds already exists"
    )]
    Exists {
        /// The scope of both.
        scope: Scope,
        /// The pattern of both.
        pattern: Pattern,
        /// The window of both.
        window_seconds: u32,
    },
    /// As many rules have the same scope and pattern as may.
    #[error(
        "{scope}:{pattern} may have at most {max} windows, since all must admit every check: delete a rule of it first",
        max = RateLimitRule::MAX_WINDOWS
    )]
    Crowded {
        /// The scope of all.
        scope: Scope,
        /// The pattern of all.
        pattern: Pattern,
    },
    /// There are as many rules as may be.
    #[error(
        "there may be at most {max} rules: delete rules that are not needed, match several \
         subjects with one prefix*, or raise ratelimit.max_rules"
    )]
    Full {
        /// How many there may be.
        max: u64,
    },
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NotFound(RuleId),
    /// Somebody else changed the rule since it was seen.
    #[error("rule {0} was changed meanwhile: read it again, and decide again")]
    Changed(RuleId),
    /// Somebody else changed rules since they were seen.
    #[error("the rules were changed meanwhile (revision {}, not {}): look again what would change, and decide again", now.0, seen.0)]
    Moved {
        /// Which ones were seen.
        seen: Revision,
        /// Which ones there are.
        now: Revision,
    },
    /// What is kept makes no sense.
    #[error("the database holds something that is no rule: {0}")]
    Corrupt(String),
    /// The database cannot be reached, or failed.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

// === impl RepositoryError ===

impl RepositoryError {
    /// An outage with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }
}
