use headgate::StoreError;
use headgate_api::rate_limits::ReservationRefusal;
use headgate_ratelimit::usecase::{RefundError, ReservationError};

use crate::error::CallError;

impl From<ReservationError> for CallError {
    fn from(error: ReservationError) -> Self {
        let error = match ReservationRefusal::try_from(error) {
            Ok(refusal) => return refusal.into(),
            Err(error) => error,
        };
        let message = error.to_string();
        match error {
            ReservationError::Store(cause) => Self::store(&cause),
            ReservationError::DeniedBy(_) => Self::store(&StoreError::Refused(message)),
            ReservationError::Check(_, error) => error.into(),
            ReservationError::Ttl => Self::field("ttl_seconds", message),
            ReservationError::Costs { field: "total", .. } => Self::field("totals", message),
            ReservationError::Costs { .. } => Self::field("costs", message),
            _ => Self::field("checks", message),
        }
    }
}

impl From<RefundError> for CallError {
    fn from(error: RefundError) -> Self {
        match ReservationRefusal::try_from(error) {
            Ok(refusal) => refusal.into(),
            Err(RefundError::Check(error)) => error.into(),
            Err(other) => Self::Internal(other.to_string()),
        }
    }
}
