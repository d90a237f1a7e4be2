//! Errors of quotas, the same for every surface.

use headgate_quota::{
    FieldError, QuotaUsage, RepositoryError,
    usecase::{IncrementError, ManageError, ReadError, ResetError},
};
use thiserror::Error;

/// The error of a quota request. Messages are for the caller; causes are for the log.
#[derive(Clone, Debug, Error)]
pub enum QuotaRefusal {
    /// Invalid fields.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// No policy has this id.
    #[error("quota policy not found: {0}")]
    NotFound(String),
    /// Another policy is the same.
    #[error("{0}")]
    Exists(String),
    /// Another request changed the policy first.
    #[error("{0}: read it again and repeat what you want to change")]
    Changed(String),
    /// An idempotency key was used with another amount.
    #[error("request_id {0} was used with another amount in this period")]
    RequestIdReused(String),
    /// The quota does not cover the amount.
    #[error("quota exceeded for {}: {}/{} ({})", .0.subject.id, .0.used, .0.limit, .0.period)]
    Exceeded(Box<QuotaUsage>),
    /// The queue of increments is full.
    #[error("too many increments are waiting: nothing was used, try again")]
    Overloaded,
    /// The clocks of server and database differ too much.
    #[error(
        "this server's clock does not agree with the database's: nothing was changed, try again later"
    )]
    ClockSkew(String),
    /// The database cannot be reached.
    #[error("the database cannot be reached: nothing was changed, try again later")]
    NoDatabase(String),
    /// The database did not confirm a change.
    #[error(
        "the database did not confirm: it may have been done; repeat an increment with the same request_id, \
         which is charged once"
    )]
    Unconfirmed(String),
    /// Neither database nor counters can be reached.
    #[error(
        "neither the counters nor the ledger can be reached: nothing was used, try again later"
    )]
    Undecided(String),
    /// A defect, or corrupt data.
    #[error("internal error")]
    Internal(String),
}

// === impl QuotaRefusal ===

impl QuotaRefusal {
    /// The code on every surface.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "SYS_QUOTA_VALIDATION_ERROR",
            Self::NotFound(_) => "SYS_QUOTA_NOT_FOUND",
            Self::Exists(_) => "SYS_QUOTA_ALREADY_EXISTS",
            Self::Changed(_) => "SYS_QUOTA_CONFLICT",
            Self::RequestIdReused(_) => "SYS_QUOTA_REQUEST_ID_CONFLICT",
            Self::Exceeded(_) => "SYS_QUOTA_EXCEEDED",
            Self::Overloaded => "SYS_QUOTA_OVERLOADED",
            Self::ClockSkew(_) => "SYS_QUOTA_CLOCK_SKEW",
            Self::NoDatabase(_) => "SYS_QUOTA_DATABASE_UNAVAILABLE",
            Self::Unconfirmed(_) => "SYS_QUOTA_UNCONFIRMED",
            Self::Undecided(_) => "SYS_QUOTA_REDIS_ERROR",
            Self::Internal(_) => "SYS_QUOTA_INTERNAL_ERROR",
        }
    }

    /// The internal cause, for the log.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::ClockSkew(cause)
            | Self::NoDatabase(cause)
            | Self::Unconfirmed(cause)
            | Self::Undecided(cause)
            | Self::Internal(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<RepositoryError> for QuotaRefusal {
    fn from(error: RepositoryError) -> Self {
        let message = error.to_string();
        match error {
            RepositoryError::NotFound(id) => Self::NotFound(id.to_string()),
            RepositoryError::Exists { .. } => Self::Exists(message),
            RepositoryError::Changed(_) => Self::Changed(message),
            RepositoryError::OutOfPeriod(_) => Self::ClockSkew(message),
            RepositoryError::Unavailable(_) => Self::NoDatabase(message),
            RepositoryError::Unconfirmed(_) => Self::Unconfirmed(message),
            RepositoryError::Corrupt(_) => Self::Internal(message),
        }
    }
}

impl From<ManageError> for QuotaRefusal {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Invalid(errors) => Self::Invalid(errors),
            ManageError::Repository(error) => error.into(),
        }
    }
}

impl From<ReadError> for QuotaRefusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Invalid(errors) => Self::Invalid(errors),
            ReadError::Repository(error) => error.into(),
        }
    }
}

impl From<ResetError> for QuotaRefusal {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::Invalid(errors) => Self::Invalid(errors),
            ResetError::Repository(error) => error.into(),
        }
    }
}

impl From<IncrementError> for QuotaRefusal {
    fn from(error: IncrementError) -> Self {
        match error {
            IncrementError::Invalid(errors) => Self::Invalid(errors),
            IncrementError::Conflict(id) => Self::RequestIdReused(id),
            IncrementError::Overloaded => Self::Overloaded,
            IncrementError::Repository(error) => error.into(),
        }
    }
}
