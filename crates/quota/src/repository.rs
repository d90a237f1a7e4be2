//! What is asked of whoever keeps policies.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page, Revision};
use thiserror::Error;
use tokio::sync::Notify;

use crate::{QuotaId, QuotaPeriod, QuotaPolicy, QuotaSpec, Subject, SubjectType};

/// Keeps policies, and a record of who changed them.
///
/// Its contract:
///
/// - [`write`](Self::write) is atomic: the change is made, recorded in the audit log and followed
///   by a new revision, or nothing is.
/// - No two policies have the same subject and period, whoever writes at the same time.
/// - A policy that is deleted is gone from here at once; what was used of it stays in the ledger.
/// - Two different sets of policies never have the same revision.
#[async_trait]
pub trait QuotaPolicyRepository: Send + Sync {
    /// Which set of policies is kept now.
    async fn revision(&self) -> Result<Revision, RepositoryError>;

    /// All policies, and a revision that is not newer than they are.
    async fn load(&self) -> Result<(Revision, Vec<QuotaPolicy>), RepositoryError>;

    /// What was made, changed or deleted after the set of policies of this revision.
    async fn changes(&self, since: Revision) -> Result<Changes, RepositoryError>;

    /// One page of the policies that pass `filter`: the newest first, then by id.
    async fn list(
        &self,
        filter: &PolicyFilter,
        page: Page,
    ) -> Result<Listed<QuotaPolicy>, RepositoryError>;

    /// The policy with this id.
    async fn get(&self, id: &QuotaId) -> Result<Option<QuotaPolicy>, RepositoryError>;

    /// Makes a change; gives the policy as it is then, or was when deleted.
    async fn write(
        &self,
        change: &PolicyChange,
        author: &Author,
    ) -> Result<QuotaPolicy, RepositoryError>;

    /// Makes a change that nobody decided, such as a program's own policy for whoever comes: the
    /// audit log does not tell of it.
    async fn write_unrecorded(
        &self,
        change: &PolicyChange,
        at: Timestamp,
    ) -> Result<QuotaPolicy, RepositoryError>;

    /// Deletes the policies that nobody uses, and what closed periods say of them, many at a time; says
    /// how many. The audit log does not tell of it.
    async fn delete_unused(&self, unused: &Unused<'_>) -> Result<u64, RepositoryError>;

    /// Wakes `changed` whenever somebody has written; returns when it cannot any more.
    /// Where nobody can be heard it never returns, and never wakes.
    async fn listen(&self, changed: &Notify) -> RepositoryError;
}

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Which set of policies is kept now.
    pub revision: Revision,
    /// Those that are new, or say something else.
    pub changed: Vec<QuotaPolicy>,
    /// Those that were deleted, as far as that is remembered.
    pub deleted: Vec<QuotaId>,
    /// How many there are in all: whoever then has another number must read all of them.
    pub total: u64,
}

/// One change of the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// A new policy.
    Create(QuotaSpec),
    /// What a policy says from now on.
    Update {
        /// Which policy.
        id: QuotaId,
        /// What it said when that was decided: if it says something else by now, nothing changes.
        from: QuotaSpec,
        /// What it is to say.
        to: QuotaSpec,
    },
    /// No policy any more.
    Delete(QuotaId),
}

/// Which policies are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFilter {
    /// Only those about this kind of subject.
    pub subject_type: Option<SubjectType>,
    /// Only those about the subject with this id.
    pub subject_id: Option<String>,
    /// Only those that are enabled.
    pub enabled_only: bool,
}

/// Policies that a program made by itself and nobody uses. One that is disabled is never among them:
/// somebody decided that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused<'a> {
    /// What the program calls its policies.
    pub name: &'a str,
    /// Whom they are about.
    pub subject_type: SubjectType,
    /// How long they count.
    pub period: QuotaPeriod,
    /// They were neither changed nor used since then.
    pub before: Timestamp,
}

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
pub enum RepositoryError {
    /// Another policy is about the same subject and period.
    #[error("a {period} quota policy for {} {} already exists", subject.kind, subject.id)]
    Exists {
        /// The subject of both.
        subject: Subject,
        /// The period of both.
        period: QuotaPeriod,
    },
    /// There is no such policy.
    #[error("quota policy not found: {0}")]
    NotFound(QuotaId),
    /// Somebody else changed the policy meanwhile.
    #[error("quota policy was changed by somebody else: {0}")]
    Changed(QuotaId),
    /// What is kept makes no sense.
    #[error("the database holds something that is no quota: {0}")]
    Corrupt(String),
    /// The period is not the present one by the database's clock. Nothing was done.
    #[error("{0} is not the present period by the database's clock")]
    OutOfPeriod(String),
    /// The database cannot be reached, or failed. Nothing was done.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
    /// The database did not say whether it was done: it may have been.
    #[error("the database did not confirm: {0}")]
    Unconfirmed(Arc<dyn StdError + Send + Sync>),
}

// === impl RepositoryError ===

impl RepositoryError {
    /// An outage with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// A lost confirmation with its cause.
    pub fn unconfirmed(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unconfirmed(Arc::new(cause))
    }
}
