//! `ResetLimit`: resets the counters of a subject.

use headgate::Key;
use headgate_ratelimit::{Scope, UnknownScope, usecase::ResetError};

use super::{
    error::{CallError, Violation},
    proto::ResetLimitRequest,
    wire,
};

const MAX_REASON_CHARS: usize = 1000;

/// The subject to reset, and the reason.
pub(super) struct Reset<'a> {
    pub(super) scope: Scope,
    pub(super) subject: Key<'a>,
    pub(super) reason: Option<String>,
}

impl<'a> TryFrom<&'a ResetLimitRequest> for Reset<'a> {
    type Error = CallError;

    fn try_from(wire: &'a ResetLimitRequest) -> Result<Self, CallError> {
        let subject = wire::subject("identifier", &wire.identifier);
        match (scope(&wire.scope), subject, reason(&wire.reason)) {
            (Ok(scope), Ok(subject), Ok(reason)) => Ok(Self { scope, subject, reason }),
            (scope, subject, reason) => {
                let wrong = [scope.err(), subject.err(), reason.err()];
                Err(CallError::Invalid(wrong.into_iter().flatten().collect()))
            }
        }
    }
}

fn scope(name: &str) -> Result<Scope, Violation> {
    if name.is_empty() {
        return Err(Violation::new("scope", "scope is required"));
    }
    name.parse().map_err(|error: UnknownScope| Violation::new("scope", error.to_string()))
}

pub(super) fn reason(text: &str) -> Result<Option<String>, Violation> {
    if text.chars().count() > MAX_REASON_CHARS {
        let message = format!("reason must be at most {MAX_REASON_CHARS} characters");
        return Err(Violation::new("reason", message));
    }
    Ok(Some(text).filter(|text| !text.is_empty()).map(str::to_owned))
}

impl From<ResetError> for CallError {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::Unrecorded(error) => error.into(),
            ResetError::Unconfirmed(cause) if cause.is_temporary() => {
                Self::ResetUnconfirmed(cause.to_string())
            }
            ResetError::Unconfirmed(cause) | ResetError::NotSent(cause) => Self::store(&cause),
        }
    }
}
