//! Every error of this surface and its status, with REST's code in `google.rpc.ErrorInfo` and all
//! invalid fields in `google.rpc.BadRequest`.
//!
//! Handlers return a [`CallError`]. As a [`Status`] it carries itself along as its source, so
//! that `surface`, which knows the call's id, can log the cause, which the caller does not get.

use std::{borrow::Cow, collections::HashMap, error::Error as _, sync::Arc, time::Duration};

use headgate::StoreError;
use headgate_api::{Namespace, error_code, quotas::QuotaRefusal, rate_limits::ReservationRefusal};
use headgate_auth::AuthError;
use headgate_ratelimit::{FieldError, RepositoryError, usecase::ManageError};
use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, QuotaViolation, StatusExt as _};

/// Maximum size of a request message.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The error of a call. Messages are for the caller; causes are for the log.
#[derive(Clone, Debug, Error)]
pub(super) enum CallError {
    #[error("validation failed")]
    Invalid(Vec<Violation>),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("rule not found: {0}")]
    NoSuchRule(String),
    #[error("override not found: {0}")]
    NoSuchOverride(String),
    #[error("{0}")]
    TooManyOverrides(String),
    #[error("{0}")]
    RuleExists(String),
    #[error("{0}")]
    TooManyRules(String),
    #[error(transparent)]
    Quota(QuotaRefusal),
    #[error(transparent)]
    Reservation(#[from] ReservationRefusal),
    #[error("no such service")]
    NoSuchService,
    #[error("no such method")]
    NoSuchMethod,
    #[error("the message cannot be read: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Uncompressed(String),
    #[error("the message must be at most {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    #[error("the call took too long")]
    TimedOut,
    #[error("the stream ended after {} seconds without a message: open another one", .0.as_secs())]
    Silent(Duration),
    #[error("too many reflection streams open: try again later")]
    TooManyStreams,
    #[error("the server is shutting down; reconnect to another server")]
    Stopping,
    #[error("the database cannot be reached: nothing was changed, try again later")]
    NoDatabase(String),
    #[error("the store of counters cannot be reached: nothing was changed, try again later")]
    NoStore(String),
    #[error(
        "the store of counters did not answer: the counter may or may not have been reset, ask again"
    )]
    ResetUnconfirmed(String),
    #[error(
        "no rate limit configuration yet: see envoy in /readyz, and check envoy.xds.url and envoy.xds.node_id"
    )]
    NotConfigured,
    #[error("internal error")]
    Internal(String),
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    field: Cow<'static, str>,
    message: String,
}

// === impl CallError ===

impl CallError {
    /// One invalid field.
    pub(super) fn field(field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(field, message)])
    }

    /// An error of the store that no fail mode handles.
    pub(super) fn store(cause: &StoreError) -> Self {
        if cause.is_temporary() {
            Self::NoStore(cause.to_string())
        } else {
            Self::Internal(cause.to_string())
        }
    }

    /// Returns the error in `status`, or that of an invalid message: nothing else fails before a
    /// handler is called.
    pub(super) fn of(status: &Status) -> Self {
        let ours = status.source().and_then(|source| source.downcast_ref::<Self>());
        match (ours, status.code()) {
            (Some(ours), _) => ours.clone(),
            (None, Code::OutOfRange | Code::ResourceExhausted) => Self::TooLarge,
            (None, Code::Unimplemented) => Self::Uncompressed(status.message().to_owned()),
            (None, _) => Self::Unreadable(status.message().to_owned()),
        }
    }

    pub(super) const fn status(&self) -> Code {
        match self {
            Self::Invalid(_) | Self::Unreadable(_) => Code::InvalidArgument,
            Self::Auth(AuthError::PermissionDenied { .. } | AuthError::CrossSite) => {
                Code::PermissionDenied
            }
            Self::Auth(_) => Code::Unauthenticated,
            Self::NoSuchRule(_) | Self::NoSuchOverride(_) | Self::NoSuchService => Code::NotFound,
            Self::RuleExists(_) => Code::AlreadyExists,
            Self::Quota(refusal) => quota_status(refusal),
            Self::Reservation(refusal) => reservation_status(refusal),
            Self::NoSuchMethod | Self::Uncompressed(_) => Code::Unimplemented,
            Self::TooLarge
            | Self::TooManyRules(_)
            | Self::TooManyOverrides(_)
            | Self::TooManyStreams => Code::ResourceExhausted,
            Self::TimedOut | Self::Silent(_) => Code::DeadlineExceeded,
            Self::Stopping
            | Self::NoDatabase(_)
            | Self::NoStore(_)
            | Self::ResetUnconfirmed(_)
            | Self::NotConfigured => Code::Unavailable,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// The code, the same as in REST.
    pub(super) const fn code(&self, namespace: Namespace) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Unreadable(_) => error_code!(namespace, "VALIDATION_ERROR"),
            Self::Auth(error) => error.code(),
            Self::NoSuchRule(_) => "SYS_RATELIMIT_RULE_NOT_FOUND",
            Self::RuleExists(_) => "SYS_RATELIMIT_RULE_EXISTS",
            Self::TooManyRules(_) => "SYS_RATELIMIT_TOO_MANY_RULES",
            Self::NoSuchOverride(_) => "SYS_RATELIMIT_OVERRIDE_NOT_FOUND",
            Self::TooManyOverrides(_) => "SYS_RATELIMIT_TOO_MANY_OVERRIDES",
            Self::Quota(refusal) => refusal.code(),
            Self::Reservation(refusal) => refusal.code(),
            Self::NoSuchMethod | Self::NoSuchService => error_code!(namespace, "NOT_FOUND"),
            Self::Uncompressed(_) => error_code!(namespace, "UNSUPPORTED_MEDIA_TYPE"),
            Self::TooLarge => error_code!(namespace, "BODY_TOO_LARGE"),
            Self::TimedOut | Self::Silent(_) => error_code!(namespace, "TIMEOUT"),
            Self::TooManyStreams => error_code!(namespace, "TOO_MANY_STREAMS"),
            Self::Stopping => error_code!(namespace, "STOPPING"),
            Self::NoDatabase(_) => error_code!(namespace, "DATABASE_UNAVAILABLE"),
            Self::NoStore(_) | Self::ResetUnconfirmed(_) => {
                error_code!(namespace, "STORE_UNAVAILABLE")
            }
            Self::NotConfigured => error_code!(namespace, "NOT_CONFIGURED"),
            Self::Internal(_) => error_code!(namespace, "INTERNAL_ERROR"),
        }
    }

    /// The internal cause, for the log.
    pub(super) fn cause(&self) -> Option<&str> {
        match self {
            Self::NoDatabase(cause)
            | Self::NoStore(cause)
            | Self::ResetUnconfirmed(cause)
            | Self::Internal(cause) => Some(cause),
            Self::Quota(refusal) => refusal.cause(),
            _ => None,
        }
    }

    /// The status that the caller gets, with codes of `namespace`.
    pub(super) fn into_status(self, namespace: Namespace) -> Status {
        let code = self.code(namespace);
        let mut details = ErrorDetails::with_error_info(code, domain(namespace), HashMap::new());
        match &self {
            Self::Invalid(violations) => {
                let violations = violations.iter().map(FieldViolation::from).collect::<Vec<_>>();
                details.set_bad_request(violations);
            }
            Self::Quota(QuotaRefusal::Exceeded(usage)) => {
                let violation = QuotaViolation::new(usage.quota_id.as_str(), self.to_string());
                details.set_quota_failure(vec![violation]);
                details.set_retry_info(Some(Duration::from_secs(usage.seconds_until_reset())));
            }
            _ => {}
        }
        let mut status = Status::with_error_details(self.status(), self.to_string(), details);
        status.set_source(Arc::new(self));
        status
    }
}

/// The domain of `ErrorInfo`.
const fn domain(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::RateLimit => "ratelimit.system.k1s0",
        Namespace::Quota => "quota.system.k1s0",
    }
}

const fn reservation_status(refusal: &ReservationRefusal) -> Code {
    match refusal {
        ReservationRefusal::NotFound(_)
        | ReservationRefusal::NoSuchLease(_)
        | ReservationRefusal::NoCharge(_) => Code::NotFound,
        ReservationRefusal::Expired(_)
        | ReservationRefusal::LeaseEnded
        | ReservationRefusal::Settled(_) => Code::FailedPrecondition,
        ReservationRefusal::RequestIdReused(_) => Code::AlreadyExists,
    }
}

const fn quota_status(refusal: &QuotaRefusal) -> Code {
    match refusal {
        QuotaRefusal::Invalid(_) => Code::InvalidArgument,
        QuotaRefusal::NotFound(_) | QuotaRefusal::NoCharge(_) | QuotaRefusal::NoReservation(_) => {
            Code::NotFound
        }
        QuotaRefusal::RequestRefunded(_)
        | QuotaRefusal::PeriodOver { .. }
        | QuotaRefusal::ReservationExpired(_)
        | QuotaRefusal::ReservationEnded(_) => Code::FailedPrecondition,
        QuotaRefusal::Exists(_) | QuotaRefusal::RequestIdReused(_) => Code::AlreadyExists,
        QuotaRefusal::Changed(_) | QuotaRefusal::Stale(_) => Code::Aborted,
        QuotaRefusal::Exceeded(_) | QuotaRefusal::TooMany(_) => Code::ResourceExhausted,
        QuotaRefusal::Overloaded
        | QuotaRefusal::ClockSkew(_)
        | QuotaRefusal::NoDatabase(_)
        | QuotaRefusal::Busy(_)
        | QuotaRefusal::Unconfirmed(_)
        | QuotaRefusal::Undecided(_) => Code::Unavailable,
        QuotaRefusal::Internal(_) => Code::Internal,
    }
}

impl From<CallError> for Status {
    /// The surface, which knows the namespace, renders it again.
    fn from(error: CallError) -> Self {
        error.into_status(Namespace::RateLimit)
    }
}

impl From<QuotaRefusal> for CallError {
    fn from(refusal: QuotaRefusal) -> Self {
        match refusal {
            QuotaRefusal::Invalid(errors) => {
                Self::Invalid(errors.into_iter().map(Violation::from).collect())
            }
            other => Self::Quota(other),
        }
    }
}

impl From<RepositoryError> for CallError {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::NotFound(id) => Self::NoSuchRule(id.to_string()),
            RepositoryError::Exists { .. } | RepositoryError::Changed(_) => {
                Self::RuleExists(error.to_string())
            }
            RepositoryError::TooManyWindows { .. } => Self::field("window_secs", error.to_string()),
            RepositoryError::NoSuchOverride(id) => Self::NoSuchOverride(id.to_string()),
            RepositoryError::TooManyOverrides => Self::TooManyOverrides(error.to_string()),
            RepositoryError::TooManyRules { .. } => Self::TooManyRules(error.to_string()),
            RepositoryError::Unavailable(_) => Self::NoDatabase(error.to_string()),
            // Only lists of rules are written with a revision, and only REST has them.
            RepositoryError::RulesChanged { .. } | RepositoryError::Corrupt(_) => {
                Self::Internal(error.to_string())
            }
        }
    }
}

impl From<ManageError> for CallError {
    fn from(error: ManageError) -> Self {
        match error {
            ManageError::Repository(error) => error.into(),
            ManageError::Invalid(errors) => {
                Self::Invalid(errors.into_iter().map(Violation::from).collect())
            }
            // Only REST has lists of rules.
            ManageError::InvalidAt(_) | ManageError::Duplicate(..) => {
                Self::Internal(error.to_string())
            }
        }
    }
}

// === impl Violation ===

impl Violation {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The same, in an item of a list.
    pub(super) fn within(self, list: &str, index: usize) -> Self {
        Self { field: format!("{list}[{index}].{}", self.field).into(), ..self }
    }
}

impl From<FieldError> for Violation {
    fn from(error: FieldError) -> Self {
        let field = match error.field {
            "scope" | "identifier_pattern" => "key",
            "window_seconds" => "window_secs",
            other => other,
        };
        Self::new(field, error.message)
    }
}

impl From<&Violation> for FieldViolation {
    fn from(violation: &Violation) -> Self {
        Self::new(&*violation.field, &violation.message)
    }
}
