//! Statuses, details and headers of quota errors.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};
use headgate_api::quotas::QuotaRefusal;

use super::{ApiError, Detail};
use crate::rest::{limit_headers, time};

pub(super) const fn status(refusal: &QuotaRefusal) -> StatusCode {
    match refusal {
        QuotaRefusal::Invalid(_) => StatusCode::BAD_REQUEST,
        QuotaRefusal::NotFound(_) | QuotaRefusal::NoCharge(_) | QuotaRefusal::NoReservation(_) => {
            StatusCode::NOT_FOUND
        }
        QuotaRefusal::Exists(_)
        | QuotaRefusal::TooMany(_)
        | QuotaRefusal::Changed(_)
        | QuotaRefusal::RequestIdReused(_)
        | QuotaRefusal::RequestRefunded(_)
        | QuotaRefusal::PeriodOver { .. }
        | QuotaRefusal::ReservationExpired(_)
        | QuotaRefusal::ReservationEnded(_) => StatusCode::CONFLICT,
        QuotaRefusal::Stale(_) => StatusCode::PRECONDITION_FAILED,
        QuotaRefusal::Exceeded(_) => StatusCode::TOO_MANY_REQUESTS,
        QuotaRefusal::Overloaded
        | QuotaRefusal::ClockSkew(_)
        | QuotaRefusal::NoDatabase(_)
        | QuotaRefusal::Busy(_)
        | QuotaRefusal::Unconfirmed(_) => StatusCode::SERVICE_UNAVAILABLE,
        QuotaRefusal::Undecided(_) => StatusCode::BAD_GATEWAY,
        QuotaRefusal::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The details beside the message.
pub(super) fn details(refusal: &QuotaRefusal) -> Vec<Detail> {
    match refusal {
        QuotaRefusal::Exceeded(usage) => vec![
            Detail::new("quota_id", "exceeded", usage.quota_id.to_string()),
            Detail::new("reset_at", "retry_after", time::text(usage.span.end)),
        ],
        _ => Vec::new(),
    }
}

/// Writes the state of an exceeded quota, and `Retry-After`.
pub(super) fn write_headers(headers: &mut HeaderMap, refusal: &QuotaRefusal) {
    let seconds = match refusal {
        QuotaRefusal::Exceeded(usage) => {
            limit_headers::write_quota(headers, usage);
            usage.seconds_until_reset()
        }
        QuotaRefusal::Overloaded | QuotaRefusal::Busy(_) => 1,
        _ => return,
    };
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
}

impl From<QuotaRefusal> for ApiError {
    fn from(refusal: QuotaRefusal) -> Self {
        match refusal {
            QuotaRefusal::Invalid(errors) => {
                Self::Invalid(errors.into_iter().map(Detail::from).collect())
            }
            other => Self::Quota(other),
        }
    }
}
