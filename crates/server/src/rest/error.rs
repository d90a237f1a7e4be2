//! Every error of this surface, and the one envelope they travel in:
//! `{"error":{"code","message","request_id","details"?}}`. What is about quotas always has `details`.
//!
//! Handlers return an [`ApiError`]. It becomes a response without a body that carries the
//! error along; `surface`, which knows the request's id, writes the envelope.

mod detail;
mod rules;

use std::borrow::Cow;

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use headgate::StoreError;
use headgate_auth::AuthError;
use serde::Serialize;
use utoipa::ToSchema;

use super::{json, keyed::Refusal, quotas};
use crate::{
    area::{Area, code},
    events::NoPlace,
    quotas::QuotaRefusal,
    request_id::RequestId,
};

pub(super) use self::detail::Detail;

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub(super) enum ApiError {
    /// Fields do not fit.
    Invalid(Vec<Detail>),
    /// The body is not what was asked for; says in what way.
    BadBody(String),
    /// The body is something else than JSON.
    NotJson,
    /// The body has more than this many bytes.
    TooLarge(usize),
    /// The body did not arrive.
    Interrupted,
    /// There is nothing at this path.
    NoSuchRoute(String),
    /// There is something at this path, but not for this method.
    NoSuchMethod(Method),
    /// The caller is not known, or may not do that.
    Auth(AuthError),
    /// The rule is not named.
    NoRuleId,
    /// There is no rule with this id.
    NoSuchRule(String),
    /// There is such a rule already; says which.
    RuleExists(String),
    /// Somebody else changed the rule since the caller saw it; says which.
    RuleChanged(String),
    /// Somebody else changed rules since the caller saw them; says which.
    RulesChanged(String),
    /// There are as many rules as may be; says how many.
    TooManyRules(String),
    /// There is no service of this name that has a document.
    NoSuchService(String),
    /// The document of a service is another than expected; says which.
    DocumentChanged(String),
    /// A question about a key makes no sense.
    Keyed(Refusal),
    /// Too many event streams are open.
    TooManyStreams(NoPlace),
    /// A quota refuses, or nobody can say whether it would.
    Quota(QuotaRefusal),
    /// The request took too long.
    TimedOut,
    /// The database cannot be reached; the log says why.
    NoDatabase(String),
    /// The store cannot be reached; the log says why.
    NoStore(String),
    /// The store did not say whether it reset a counter; the log says why.
    ResetUnconfirmed(String),
    /// Something of ours failed; the log says what.
    Internal(String),
}

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct Envelope<'a> {
    error: Inside<'a>,
}

/// What went wrong.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorBody)]
struct Inside<'a> {
    /// For programs.
    code: &'static str,
    /// For people.
    #[schema(value_type = String)]
    message: Cow<'static, str>,
    /// As in the `X-Request-Id` header and in the log.
    request_id: &'a str,
    /// Every field that does not fit; where there is none, empty for quotas and left out elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Detail>, required = false)]
    details: Option<&'a [Detail]>,
}

pub(super) async fn no_such_route(method: Method, uri: Uri) -> ApiError {
    const MAX_CHARS: usize = 200;
    let path: String = uri.path().chars().take(MAX_CHARS).collect();
    ApiError::NoSuchRoute(format!("{method} {path}"))
}

pub(super) async fn no_such_method(method: Method) -> ApiError {
    ApiError::NoSuchMethod(method)
}

// === impl ApiError ===

impl ApiError {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_)
            | Self::BadBody(_)
            | Self::NoRuleId
            | Self::Interrupted
            | Self::Keyed(_) => StatusCode::BAD_REQUEST,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Auth(AuthError::PermissionDenied { .. } | AuthError::CrossSite) => {
                StatusCode::FORBIDDEN
            }
            Self::Auth(_) => StatusCode::UNAUTHORIZED,
            Self::NoSuchRoute(_) | Self::NoSuchRule(_) | Self::NoSuchService(_) => {
                StatusCode::NOT_FOUND
            }
            Self::RuleExists(_)
            | Self::RulesChanged(_)
            | Self::TooManyRules(_)
            | Self::DocumentChanged(_) => StatusCode::CONFLICT,
            Self::RuleChanged(_) => StatusCode::PRECONDITION_FAILED,
            Self::NoSuchMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Quota(refusal) => quotas::status(refusal),
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::NoDatabase(_)
            | Self::NoStore(_)
            | Self::ResetUnconfirmed(_)
            | Self::TooManyStreams(NoPlace::Full) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyStreams(NoPlace::CallerHasTooMany) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The code that it has in `area`.
    pub(super) const fn code(&self, area: Area) -> &'static str {
        match self {
            Self::Invalid(_) | Self::BadBody(_) | Self::NoRuleId => code!(area, "VALIDATION_ERROR"),
            Self::Interrupted => code!(area, "ERROR"),
            Self::NotJson => code!(area, "UNSUPPORTED_MEDIA_TYPE"),
            Self::TooLarge(_) => code!(area, "BODY_TOO_LARGE"),
            Self::Auth(error) => error.code(),
            Self::Keyed(refusal) => refusal.code(),
            Self::Quota(refusal) => refusal.code(),
            Self::NoSuchRule(_) => "SYS_RATELIMIT_RULE_NOT_FOUND",
            Self::RuleExists(_) => "SYS_RATELIMIT_RULE_EXISTS",
            Self::RuleChanged(_) => "SYS_RATELIMIT_RULE_CHANGED",
            Self::RulesChanged(_) => "SYS_RATELIMIT_RULES_CHANGED",
            Self::TooManyRules(_) => "SYS_RATELIMIT_TOO_MANY_RULES",
            Self::NoSuchService(_) => "SYS_SERVICE_NOT_FOUND",
            Self::DocumentChanged(_) => "SYS_SERVICE_VERSION_MISMATCH",
            Self::NoDatabase(_) => code!(area, "DATABASE_UNAVAILABLE"),
            Self::NoStore(_) | Self::ResetUnconfirmed(_) => code!(area, "STORE_UNAVAILABLE"),
            Self::NoSuchRoute(_) => code!(area, "NOT_FOUND"),
            Self::NoSuchMethod(_) => code!(area, "METHOD_NOT_ALLOWED"),
            Self::TimedOut => code!(area, "TIMEOUT"),
            Self::TooManyStreams(_) => code!(area, "TOO_MANY_STREAMS"),
            Self::Internal(_) => code!(area, "INTERNAL_ERROR"),
        }
    }

    /// What the caller is told. What failed inside is the log's business.
    pub(super) fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Invalid(_) => "validation failed".into(),
            Self::BadBody(what)
            | Self::RuleExists(what)
            | Self::RuleChanged(what)
            | Self::RulesChanged(what)
            | Self::TooManyRules(what)
            | Self::NoSuchService(what)
            | Self::DocumentChanged(what) => what.clone().into(),
            Self::NotJson => "the body must be sent as content-type: application/json".into(),
            Self::TooLarge(most) => format!("the body must be at most {most} bytes").into(),
            Self::Interrupted => "the body did not arrive completely".into(),
            Self::NoSuchRoute(asked) => format!("no such endpoint: {asked}").into(),
            Self::NoSuchMethod(method) => {
                format!("{method} is not supported here; the Allow header says what is").into()
            }
            Self::Auth(error) => error.message().into(),
            Self::Keyed(refusal) => refusal.to_string().into(),
            Self::Quota(refusal) => refusal.to_string().into(),
            Self::NoRuleId => "rule_id is required".into(),
            Self::NoSuchRule(id) => format!("rule not found: {id}").into(),
            Self::NoDatabase(_) => {
                "the database cannot be reached: nothing was changed, try again later".into()
            }
            Self::NoStore(_) => {
                "the store of counters cannot be reached: nothing was changed, try again later"
                    .into()
            }
            Self::ResetUnconfirmed(_) => {
                "the store of counters did not answer: the counter may or may not have been reset, ask again"
                    .into()
            }
            Self::TimedOut => "the request took too long".into(),
            Self::TooManyStreams(_) => {
                "too many event streams open; use GET /api/v1/events instead".into()
            }
            Self::Internal(_) => "internal error".into(),
        }
    }

    /// The fields that do not fit, if that is what is wrong.
    pub(super) fn into_details(self) -> Vec<Detail> {
        match self {
            Self::Invalid(details) => details,
            _ => Vec::new(),
        }
    }

    fn details(&self) -> Cow<'_, [Detail]> {
        match self {
            Self::Invalid(details) => details.into(),
            Self::Quota(refusal) => quotas::details(refusal).into(),
            _ => Cow::Borrowed(&[]),
        }
    }

    /// A store that could not do what nobody else can do for it.
    pub(super) fn store(cause: &StoreError) -> Self {
        if cause.is_temporary() {
            Self::NoStore(cause.to_string())
        } else {
            Self::Internal(cause.to_string())
        }
    }

    /// What failed inside, if something did.
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

    /// The body that tells the caller.
    pub(super) fn envelope(&self, area: Area, id: &RequestId) -> Vec<u8> {
        let details = self.details();
        let error = Inside {
            code: self.code(area),
            message: self.message(),
            request_id: id.as_str(),
            details: Some(&*details).filter(|it| area == Area::Quota || !it.is_empty()),
        };
        json::to_vec(&Envelope { error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        response.headers_mut().insert(header::CONTENT_TYPE, json::CONTENT_TYPE);
        if matches!(self, Self::TooLarge(_) | Self::TimedOut) {
            // The rest of the body is not read, so nothing can follow it.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        if let Self::Quota(refusal) = &self {
            quotas::write_headers(response.headers_mut(), refusal);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        Self::Auth(error)
    }
}
