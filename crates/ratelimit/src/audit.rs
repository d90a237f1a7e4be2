//! The record of who changed what.

use async_trait::async_trait;
use headgate::Timestamp;

use crate::{Author, Listed, Page, RepositoryError};

/// One change, as it was made.
///
/// `before` and `after` are JSON objects: what the changed thing said before and says now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its place in the record.
    pub id: i64,
    /// Who made it, in which request, and when.
    pub author: Author,
    /// What was done: `rule.create`, `rule.update`, `rule.delete`, `counter.reset`.
    pub action: String,
    /// To what: a rule's id, `scope:identifier`, or `rate_limiter:algorithm:key`.
    pub target: String,
    /// What it said before.
    pub before: Option<String>,
    /// What it says now. Of a reset that was not done, `{"outcome":"not_done"}`; of one that was begun
    /// and of which nobody knows whether it was done, `{"outcome":"unknown"}`.
    pub after: Option<String>,
    /// Why, in the words of whoever did it.
    pub reason: Option<String>,
}

/// Which entries are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those of this actor.
    pub actor: Option<String>,
    /// Only those that did this.
    pub action: Option<String>,
    /// Only those about this.
    pub target: Option<String>,
    /// Only those not before this time.
    pub since: Option<Timestamp>,
    /// Only those before this time.
    pub until: Option<Timestamp>,
}

/// Keeps the record of what is not written through a repository, and shows all of it.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry, and returns the id that the record gives it.
    async fn record(&self, entry: &AuditEntry) -> Result<i64, RepositoryError>;

    /// Replaces what the entry `id` says of the time after the change, once that is known.
    async fn settle(&self, id: i64, after: Option<&str>) -> Result<(), RepositoryError>;

    /// Deletes the entries of changes before this time, some at a time; returns how many.
    async fn prune(&self, before: Timestamp) -> Result<u64, RepositoryError>;

    /// One page of the entries that pass `filter`, the newest first.
    async fn entries(
        &self,
        filter: &AuditFilter,
        page: Page,
    ) -> Result<Listed<AuditEntry>, RepositoryError>;
}
