//! The audit log.

use async_trait::async_trait;
use headgate::Timestamp;

use crate::{Author, Listed, Page, RepositoryError};

/// A recorded change.
///
/// `before` and `after` are JSON objects: the changed resource before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id, in the order of recording.
    pub id: i64,
    /// The caller, the request and the time.
    pub author: Author,
    /// `rule.create`, `rule.update`, `rule.delete`, `override.set`, `override.delete`,
    /// `counter.reset` or `lease.end`.
    pub action: String,
    /// The id of a rule or override, `scope:identifier`, or `rate_limiter:algorithm:key`.
    pub target: String,
    /// The resource before the change.
    pub before: Option<String>,
    /// The resource after the change. For a reset that was not done, `{"outcome":"not_done"}`; for
    /// a reset that was started and whose outcome is unknown, `{"outcome":"unknown"}`.
    pub after: Option<String>,
    /// The reason that the caller gave.
    pub reason: Option<String>,
}

/// Selects entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only entries by this actor.
    pub actor: Option<String>,
    /// Only entries with this action.
    pub action: Option<String>,
    /// Only entries about this target.
    pub target: Option<String>,
    /// Only entries at or after this time.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
}

/// Lists all entries, and records changes that no repository writes.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry and returns its id.
    async fn record(&self, entry: &AuditEntry) -> Result<i64, RepositoryError>;

    /// Replaces `after` of the entry `id` once the outcome is known.
    async fn settle(&self, id: i64, after: Option<&str>) -> Result<(), RepositoryError>;

    /// Deletes entries older than this in batches; returns how many.
    async fn prune(&self, before: Timestamp) -> Result<u64, RepositoryError>;

    /// Returns a page of the entries that match `filter`, newest first.
    async fn entries(
        &self,
        filter: &AuditFilter,
        page: Page,
    ) -> Result<Listed<AuditEntry>, RepositoryError>;
}
