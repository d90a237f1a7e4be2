//! Errors of quotas, the same for every surface.

use headgate_quota::{
    FieldError, QuotaUsage, RepositoryError, Reservation, ReservationStatus,
    usecase::{IncrementError, ManageError, ReadError, RefundError, ReservationError, ResetError},
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
    /// The maximum number of policies is reached.
    #[error("{0}")]
    TooMany(String),
    /// Another request changed the policy first.
    #[error("{0}: read it again and repeat what you want to change")]
    Changed(String),
    /// The policy changed since the caller read it.
    #[error("{0}; read it again")]
    Stale(String),
    /// An idempotency key was used with another amount.
    #[error("request_id {0} was used with another amount in this period")]
    RequestIdReused(String),
    /// An idempotency key's increment was refunded.
    #[error("request_id {0} was refunded in this period: send a new one")]
    RequestRefunded(String),
    /// Nothing was charged under an idempotency key.
    #[error("nothing was charged under request_id {0}")]
    NoCharge(String),
    /// An increment cannot be refunded any more.
    #[error(
        "request_id {request_id} was charged in {period_name}, which is over: nothing was refunded"
    )]
    PeriodOver {
        /// The idempotency key.
        request_id: String,
        /// Name of the period.
        period_name: String,
    },
    /// No reservation of this policy has this id.
    #[error("quota reservation not found: {0}")]
    NoReservation(String),
    /// The TTL of a reservation is over.
    #[error("quota reservation {0} has expired and holds nothing any more: reserve again")]
    ReservationExpired(String),
    /// A reservation was settled or cancelled before.
    #[error("{0}")]
    ReservationEnded(String),
    /// The quota does not cover the amount.
    #[error("quota exceeded for {}: {}/{} ({})", .0.subject.id, .0.used + .0.reserved, .0.limit, .0.period)]
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
    /// Another transaction holds a lock on the quota.
    #[error("the database is busy with this quota: nothing was changed, try again")]
    Busy(String),
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
            Self::TooMany(_) => "SYS_QUOTA_TOO_MANY_POLICIES",
            Self::Changed(_) => "SYS_QUOTA_CONFLICT",
            Self::Stale(_) => "SYS_QUOTA_CHANGED",
            Self::RequestIdReused(_) => "SYS_QUOTA_REQUEST_ID_CONFLICT",
            Self::RequestRefunded(_) => "SYS_QUOTA_REQUEST_REFUNDED",
            Self::NoCharge(_) => "SYS_QUOTA_REQUEST_NOT_FOUND",
            Self::PeriodOver { .. } => "SYS_QUOTA_PERIOD_CLOSED",
            Self::NoReservation(_) => "SYS_QUOTA_RESERVATION_NOT_FOUND",
            Self::ReservationExpired(_) => "SYS_QUOTA_RESERVATION_EXPIRED",
            Self::ReservationEnded(_) => "SYS_QUOTA_RESERVATION_CONFLICT",
            Self::Exceeded(_) => "SYS_QUOTA_EXCEEDED",
            Self::Overloaded => "SYS_QUOTA_OVERLOADED",
            Self::ClockSkew(_) => "SYS_QUOTA_CLOCK_SKEW",
            Self::NoDatabase(_) => "SYS_QUOTA_DATABASE_UNAVAILABLE",
            Self::Busy(_) => "SYS_QUOTA_BUSY",
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
            | Self::Busy(cause)
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
            RepositoryError::TooManyPolicies { .. } => Self::TooMany(message),
            RepositoryError::Changed(_) => Self::Changed(message),
            RepositoryError::OutOfPeriod(_) => Self::ClockSkew(message),
            RepositoryError::Unavailable(_) => Self::NoDatabase(message),
            RepositoryError::Busy { .. } => Self::Busy(message),
            RepositoryError::Unconfirmed(_) => Self::Unconfirmed(message),
            RepositoryError::Corrupt(_) | RepositoryError::Refused(_) => Self::Internal(message),
        }
    }
}

impl From<ManageError> for QuotaRefusal {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Invalid(errors) => Self::Invalid(errors),
            ManageError::Stale(_) => Self::Stale(error.to_string()),
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
            IncrementError::Refunded(id) => Self::RequestRefunded(id),
            IncrementError::Overloaded => Self::Overloaded,
            IncrementError::Repository(error) => error.into(),
        }
    }
}

impl From<RefundError> for QuotaRefusal {
    fn from(error: RefundError) -> Self {
        match error {
            RefundError::Invalid(errors) => Self::Invalid(errors),
            RefundError::Unknown(id) => Self::NoCharge(id),
            RefundError::PeriodOver { request_id, period_name } => {
                Self::PeriodOver { request_id, period_name }
            }
            RefundError::Overloaded => Self::Overloaded,
            RefundError::Repository(error) => error.into(),
        }
    }
}

impl From<ReservationError> for QuotaRefusal {
    fn from(error: ReservationError) -> Self {
        match error {
            ReservationError::Invalid(errors) => Self::Invalid(errors),
            ReservationError::Denied(usage) => Self::Exceeded(usage),
            ReservationError::Conflict(id) => Self::RequestIdReused(id),
            ReservationError::Unknown(id) => Self::NoReservation(id),
            ReservationError::Expired(reservation) => {
                Self::ReservationExpired(reservation.id.to_string())
            }
            ReservationError::Ended(reservation) => Self::ReservationEnded(ended(&reservation)),
            ReservationError::Overloaded => Self::Overloaded,
            ReservationError::Repository(error) => error.into(),
        }
    }
}

/// Describes how a reservation has ended.
fn ended(reservation: &Reservation) -> String {
    let Reservation { id, status, settled_for, .. } = reservation;
    match (status, settled_for) {
        (ReservationStatus::Settled, Some(first)) => {
            let how = if first.overdraft { "with" } else { "without" };
            let amount = first.amount;
            format!(
                "quota reservation {id} was settled for {amount} {how} overdraft: nothing was changed"
            )
        }
        _ => format!("quota reservation {id} was {status}: nothing was changed"),
    }
}
