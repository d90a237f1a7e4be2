use headgate_ratelimit::usecase::{RefundError, ReservationError};
use thiserror::Error;

/// The error of a request about a reservation or a refund, the same for every surface. Invalid
/// fields and errors of the store are not among them.
#[derive(Clone, Debug, Error)]
pub enum ReservationRefusal {
    /// The text is not the id of a reservation.
    #[error("reservation not found: {0}")]
    NotFound(String),
    /// The reservation has expired, or was cancelled.
    #[error("{0}")]
    Expired(String),
    /// The reservation was settled for another cost.
    #[error("{0}")]
    Settled(String),
    /// An idempotency key was used before.
    #[error("{0}")]
    RequestIdReused(String),
    /// The text is not the id of a lease.
    #[error("lease not found: {0}")]
    NoSuchLease(String),
    /// The lease has ended.
    #[error(
        "the lease has ended, and its places may have another holder: stop the work, or acquire again"
    )]
    LeaseEnded,
    /// Nothing was taken under an idempotency key.
    #[error("{0}")]
    NoCharge(String),
}

impl ReservationRefusal {
    /// The refusal of an unknown id, which is shortened.
    pub fn not_found(id: &str) -> Self {
        Self::NotFound(id.chars().take(64).collect())
    }

    /// The refusal of an unknown id of a lease, which is shortened.
    pub fn no_such_lease(id: &str) -> Self {
        Self::NoSuchLease(id.chars().take(64).collect())
    }

    /// The code on every surface.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "SYS_RATELIMIT_RESERVATION_NOT_FOUND",
            Self::Expired(_) => "SYS_RATELIMIT_RESERVATION_EXPIRED",
            Self::Settled(_) => "SYS_RATELIMIT_RESERVATION_CONFLICT",
            Self::RequestIdReused(_) => "SYS_RATELIMIT_REQUEST_ID_CONFLICT",
            Self::NoSuchLease(_) => "SYS_RATELIMIT_LEASE_NOT_FOUND",
            Self::LeaseEnded => "SYS_RATELIMIT_LEASE_ENDED",
            Self::NoCharge(_) => "SYS_RATELIMIT_REQUEST_NOT_FOUND",
        }
    }
}

/// The refusal that an error is, or the error back.
impl TryFrom<ReservationError> for ReservationRefusal {
    type Error = ReservationError;

    fn try_from(error: ReservationError) -> Result<Self, ReservationError> {
        let message = error.to_string();
        match error {
            ReservationError::Ended => Ok(Self::Expired(message)),
            ReservationError::SettledFor(_) => Ok(Self::Settled(message)),
            ReservationError::RequestIdReused(_) => Ok(Self::RequestIdReused(message)),
            other => Err(other),
        }
    }
}

/// The refusal that an error is, or the error back.
impl TryFrom<RefundError> for ReservationRefusal {
    type Error = RefundError;

    fn try_from(error: RefundError) -> Result<Self, RefundError> {
        let message = error.to_string();
        match error {
            RefundError::Reused(_) => Ok(Self::RequestIdReused(message)),
            RefundError::Unknown(_) => Ok(Self::NoCharge(message)),
            other => Err(other),
        }
    }
}
