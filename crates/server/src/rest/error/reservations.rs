//! Errors of reservations and refunds.

use axum::http::StatusCode;
use headgate::StoreError;
use headgate_api::rate_limits::ReservationRefusal;
use headgate_ratelimit::usecase::{RefundError, ReservationError};

use super::{ApiError, Detail};

pub(super) const fn status(refusal: &ReservationRefusal) -> StatusCode {
    match refusal {
        ReservationRefusal::NotFound(_)
        | ReservationRefusal::NoSuchLease(_)
        | ReservationRefusal::NoCharge(_) => StatusCode::NOT_FOUND,
        ReservationRefusal::Expired(_)
        | ReservationRefusal::Settled(_)
        | ReservationRefusal::LeaseEnded
        | ReservationRefusal::RequestIdReused(_) => StatusCode::CONFLICT,
    }
}

impl From<ReservationRefusal> for ApiError {
    fn from(refusal: ReservationRefusal) -> Self {
        Self::Reservation(refusal)
    }
}

impl From<ReservationError> for ApiError {
    fn from(error: ReservationError) -> Self {
        let error = match ReservationRefusal::try_from(error) {
            Ok(refusal) => return refusal.into(),
            Err(error) => error,
        };
        let message = error.to_string();
        let detail = match error {
            ReservationError::Store(cause) => return Self::store(&cause),
            ReservationError::DeniedBy(_) => {
                return Self::store(&StoreError::Refused(message));
            }
            ReservationError::Check(i, error) => return Self::from(error).within("checks", i),
            ReservationError::Checks => Detail::new("checks", "length", message),
            ReservationError::Ttl => Detail::new("ttl_seconds", "out_of_range", message),
            ReservationError::Costs { field, .. } => Detail::new(field, "length", message),
            _ => Detail::new("checks", "invalid", message),
        };
        Self::Invalid(vec![detail])
    }
}

impl From<RefundError> for ApiError {
    fn from(error: RefundError) -> Self {
        match ReservationRefusal::try_from(error) {
            Ok(refusal) => refusal.into(),
            Err(RefundError::Check(error)) => error.into(),
            Err(other) => Self::Internal(other.to_string()),
        }
    }
}

impl ApiError {
    /// The error of a lease, whose fields have other names.
    pub(in crate::rest) fn of_lease(error: ReservationError) -> Self {
        match error {
            ReservationError::Ended => ReservationRefusal::LeaseEnded.into(),
            ReservationError::Ttl => {
                let message = error.to_string().replace("ttl_seconds", "lease_seconds");
                Self::Invalid(vec![Detail::new("lease_seconds", "out_of_range", message)])
            }
            other => other.into(),
        }
    }

    /// The same error about one item of a list.
    fn within(self, list: &str, index: usize) -> Self {
        match self {
            Self::Invalid(details) => {
                let within = |detail: Detail| detail.within(list, index);
                Self::Invalid(details.into_iter().map(within).collect())
            }
            other => other,
        }
    }
}
