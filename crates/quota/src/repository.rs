//! The storage of policies.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page, Revision};
use thiserror::Error;
use tokio::sync::Notify;

use crate::{QuotaId, QuotaPeriod, QuotaPolicy, QuotaSpec, Subject, SubjectType};

/// Stores policies and records changes in the audit log.
///
/// # Contract
///
/// - [`write`](Self::write) is atomic: the change is made, recorded in the audit log and followed
///   by a new revision, or nothing is.
/// - No policy is added beyond a maximum number, even with concurrent writers.
/// - No two policies have the same subject and period, even with concurrent writers.
/// - An update gives a policy a later `updated_at`, which therefore identifies its state.
/// - A deleted policy is gone at once; its usage stays in the ledger.
/// - Two different sets of policies never have the same revision.
#[async_trait]
pub trait QuotaPolicyRepository: Send + Sync {
    /// Returns the current revision.
    async fn revision(&self) -> Result<Revision, RepositoryError>;

    /// Returns all policies, and a revision that is not newer than they are.
    async fn load(&self) -> Result<(Revision, Vec<QuotaPolicy>), RepositoryError>;

    /// Returns the changes after this revision.
    async fn changes(&self, since: Revision) -> Result<Changes, RepositoryError>;

    /// Returns a page of the policies that match `filter`, newest first and then by id.
    async fn list(
        &self,
        filter: &PolicyFilter,
        page: Page,
    ) -> Result<Listed<QuotaPolicy>, RepositoryError>;

    /// Returns the policy with this id.
    async fn get(&self, id: &QuotaId) -> Result<Option<QuotaPolicy>, RepositoryError>;

    /// Applies a change; returns the new policy, or the old one of a deletion.
    async fn write(
        &self,
        change: &PolicyChange,
        author: &Author,
    ) -> Result<QuotaPolicy, RepositoryError>;

    /// Applies a change without an audit entry, for policies that a program creates by itself, such
    /// as one per user.
    async fn write_unrecorded(
        &self,
        change: &PolicyChange,
        at: Timestamp,
    ) -> Result<QuotaPolicy, RepositoryError>;

    /// Deletes unused policies and their closed periods in batches, without audit entries; returns
    /// how many.
    async fn delete_unused(&self, unused: &Unused<'_>) -> Result<u64, RepositoryError>;

    /// Notifies `changed` after every write by any server; returns if the connection is lost.
    /// A repository without notifications never notifies and never returns.
    async fn listen(&self, changed: &Notify) -> RepositoryError;
}

/// Changes since a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The current revision.
    pub revision: Revision,
    /// Created and updated policies.
    pub changed: Vec<QuotaPolicy>,
    /// Ids of deleted policies, as far as they are still recorded.
    pub deleted: Vec<QuotaId>,
    /// Number of policies: a catalog that has another number after the changes must load all.
    pub total: u64,
}

/// A change of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// Creates a policy.
    Create(QuotaSpec),
    /// Replaces the fields of a policy.
    Update {
        /// Its id.
        id: QuotaId,
        /// Expected current fields: the change fails if they differ.
        from: QuotaSpec,
        /// New fields.
        to: QuotaSpec,
    },
    /// Deletes a policy.
    Delete(QuotaId),
    /// Deletes a policy whose `updated_at` is still this.
    DeleteIfUnchanged(QuotaId, Timestamp),
}

/// Selects policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFilter {
    /// Only policies for this type of subject.
    pub subject_type: Option<SubjectType>,
    /// Only policies for the subject with this id.
    pub subject_id: Option<String>,
    /// Only enabled policies.
    pub enabled_only: bool,
}

/// Selects unused policies that a program created by itself. Disabled ones are never selected,
/// because an operator disabled them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused<'a> {
    /// Name of the policies.
    pub name: &'a str,
    /// Type of their subjects.
    pub subject_type: SubjectType,
    /// Their period.
    pub period: QuotaPeriod,
    /// Only policies that were neither changed nor used since then.
    pub before: Timestamp,
}

/// An error of a repository or ledger.
#[derive(Clone, Debug, Error)]
pub enum RepositoryError {
    /// Another policy has the same subject and period.
    #[error("a {period} quota policy for {} {} already exists", subject.kind, subject.id)]
    Exists {
        /// Subject of both.
        subject: Subject,
        /// Period of both.
        period: QuotaPeriod,
    },
    /// The maximum number of policies is reached.
    #[error(
        "there may be at most {max} quota policies; delete those that are not needed, or raise \
         quota.max_policies"
    )]
    TooManyPolicies {
        /// The maximum.
        max: u64,
    },
    /// There is no such policy.
    #[error("quota policy not found: {0}")]
    NotFound(QuotaId),
    /// The policy was changed after it was read.
    #[error("quota policy has changed in the meantime: {0}")]
    Changed(QuotaId),
    /// The database contains invalid data.
    #[error("the database contains an invalid quota: {0}")]
    Corrupt(String),
    /// The period is not the current one by the database's clock. Nothing was done.
    #[error("{0} is not the current period by the database's clock")]
    OutOfPeriod(String),
    /// The database is unreachable or failed. Nothing was done.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
    /// Other transactions hold locks that the operation needs. Nothing was done.
    #[error("the database is busy with the quota: {cause}")]
    Busy {
        /// Policies whose rows are locked; empty if that is unknown.
        policies: Arc<[QuotaId]>,
        /// The cause.
        cause: Arc<dyn StdError + Send + Sync>,
    },
    /// The database works, and refused the operation: a value, a constraint. Nothing was done.
    #[error("the database refused the operation: {0}")]
    Refused(Arc<dyn StdError + Send + Sync>),
    /// The database did not confirm the operation, which may have been done.
    #[error("the database did not confirm the operation: {0}")]
    Unconfirmed(Arc<dyn StdError + Send + Sync>),
}

// === impl RepositoryError ===

impl RepositoryError {
    /// Wraps the cause of an outage.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// Wraps the cause of a lock that was not available, without the policies.
    pub fn busy(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Busy { policies: Arc::default(), cause: Arc::new(cause) }
    }

    /// Wraps the cause of a refusal.
    pub fn refused(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Refused(Arc::new(cause))
    }

    /// Returns `true` if it may concern only some of the operations of a transaction: without them,
    /// the others may succeed.
    pub(crate) const fn is_partial(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Refused(_) | Self::Corrupt(_))
    }

    /// Creates the error of a result that does not belong to its operation, which is a defect.
    pub(crate) fn mismatched(operation: &str) -> Self {
        Self::Corrupt(format!("the ledger gave another result than that of {operation}"))
    }

    /// Wraps the cause of a lost confirmation.
    pub fn unconfirmed(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unconfirmed(Arc::new(cause))
    }
}
