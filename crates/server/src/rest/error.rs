//! Every error of this surface, and the body that it is answered with:
//! `{"error":{"code","message","request_id","details"?}}`. What is about quotas always has
//! `details`; limits by key have a body of their own (`keyed`).
//!
//! Handlers return an [`ApiError`], which renders itself. The request's id and the route's
//! [`ErrorFormat`] come from a task-local that `surface` sets around the router; without it, an
//! error has a new id and the default format.

mod detail;
mod format;
mod keyed;
mod quotas;
mod reservations;
mod rules;

use std::borrow::Cow;

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use headgate::StoreError;
use headgate_api::{
    Namespace, error_code, quotas::QuotaRefusal, rate_limits::ReservationRefusal,
    request_id::RequestId,
};
use headgate_auth::AuthError;
use headgate_events::StreamLimit;
use serde::Serialize;
use utoipa::ToSchema;

use super::json;

pub(super) use self::{
    detail::Detail,
    format::{ErrorFormat, scope},
    keyed::{Envelope as KeyedEnvelope, KeyedRefusal, NO_STORE},
};

/// The error of a request.
#[derive(Clone, Debug)]
pub(super) enum ApiError {
    /// Invalid fields.
    Invalid(Vec<Detail>),
    /// An invalid body, with the reason.
    BadBody(String),
    /// A body that is not JSON.
    NotJson,
    /// A body of more than this many bytes.
    TooLarge(usize),
    /// A body that did not arrive completely.
    Interrupted,
    /// Unknown path.
    NoSuchRoute(String),
    /// A method that the path does not support.
    NoSuchMethod(Method),
    /// The caller is unknown or not permitted.
    Auth(AuthError),
    /// No rule id.
    NoRuleId,
    /// Unknown rule id.
    NoSuchRule(String),
    /// Unknown override id.
    NoSuchOverride(String),
    /// Too many overrides.
    TooManyOverrides(String),
    /// A duplicate rule.
    RuleExists(String),
    /// The rule changed since the caller read it.
    RuleChanged(String),
    /// Rules changed since the caller read them.
    RulesChanged(String),
    /// Too many rules.
    TooManyRules(String),
    /// Unknown service.
    NoSuchService(String),
    /// The document has another version than expected.
    DocumentChanged(String),
    /// A configuration that cannot be applied, with its problems.
    ConfigRefused(String, Vec<Detail>),
    /// An invalid request about a key.
    Keyed(KeyedRefusal),
    /// Too many event streams are open.
    TooManyStreams(StreamLimit),
    /// A quota is exceeded, or its usage is unknown.
    Quota(QuotaRefusal),
    /// A reservation or refund is unknown, or has been made before.
    Reservation(ReservationRefusal),
    /// The request took too long.
    TimedOut,
    /// The database is unavailable; the cause is logged.
    NoDatabase(String),
    /// The store is unavailable; the cause is logged.
    NoStore(String),
    /// The outcome of a reset is unknown; the cause is logged.
    ResetUnconfirmed(String),
    /// An internal error; the cause is logged.
    Internal(String),
}

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct Envelope<'a> {
    error: Inside<'a>,
}

/// The error itself.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorBody)]
struct Inside<'a> {
    /// Machine-readable code.
    code: &'static str,
    /// Human-readable message.
    #[schema(value_type = String)]
    message: Cow<'static, str>,
    /// Id of the request, as in the `X-Request-Id` header and in the log.
    request_id: &'a str,
    /// All invalid fields; if there are none, empty for quotas and left out elsewhere.
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
            Self::NoSuchRoute(_)
            | Self::NoSuchRule(_)
            | Self::NoSuchOverride(_)
            | Self::NoSuchService(_) => StatusCode::NOT_FOUND,
            Self::RuleExists(_)
            | Self::RulesChanged(_)
            | Self::TooManyRules(_)
            | Self::TooManyOverrides(_)
            | Self::DocumentChanged(_) => StatusCode::CONFLICT,
            Self::RuleChanged(_) => StatusCode::PRECONDITION_FAILED,
            Self::ConfigRefused(..) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NoSuchMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Quota(refusal) => quotas::status(refusal),
            Self::Reservation(refusal) => reservations::status(refusal),
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::NoDatabase(_)
            | Self::NoStore(_)
            | Self::ResetUnconfirmed(_)
            | Self::TooManyStreams(StreamLimit::Total) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyStreams(StreamLimit::PerCaller) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns its code in `namespace`.
    pub(super) const fn code(&self, namespace: Namespace) -> &'static str {
        match self {
            Self::Invalid(_) | Self::BadBody(_) | Self::NoRuleId => {
                error_code!(namespace, "VALIDATION_ERROR")
            }
            Self::Interrupted => error_code!(namespace, "ERROR"),
            Self::NotJson => error_code!(namespace, "UNSUPPORTED_MEDIA_TYPE"),
            Self::TooLarge(_) => error_code!(namespace, "BODY_TOO_LARGE"),
            Self::Auth(error) => error.code(),
            Self::Keyed(refusal) => refusal.code(),
            Self::Quota(refusal) => refusal.code(),
            Self::Reservation(refusal) => refusal.code(),
            Self::NoSuchRule(_) => "SYS_RATELIMIT_RULE_NOT_FOUND",
            Self::RuleExists(_) => "SYS_RATELIMIT_RULE_EXISTS",
            Self::RuleChanged(_) => "SYS_RATELIMIT_RULE_CHANGED",
            Self::RulesChanged(_) => "SYS_RATELIMIT_RULES_CHANGED",
            Self::TooManyRules(_) => "SYS_RATELIMIT_TOO_MANY_RULES",
            Self::NoSuchOverride(_) => "SYS_RATELIMIT_OVERRIDE_NOT_FOUND",
            Self::TooManyOverrides(_) => "SYS_RATELIMIT_TOO_MANY_OVERRIDES",
            Self::NoSuchService(_) => "SYS_SERVICE_NOT_FOUND",
            Self::DocumentChanged(_) => "SYS_SERVICE_VERSION_MISMATCH",
            Self::ConfigRefused(..) => "SYS_CONFIG_INVALID",
            Self::NoDatabase(_) => error_code!(namespace, "DATABASE_UNAVAILABLE"),
            Self::NoStore(_) | Self::ResetUnconfirmed(_) => {
                error_code!(namespace, "STORE_UNAVAILABLE")
            }
            Self::NoSuchRoute(_) => error_code!(namespace, "NOT_FOUND"),
            Self::NoSuchMethod(_) => error_code!(namespace, "METHOD_NOT_ALLOWED"),
            Self::TimedOut => error_code!(namespace, "TIMEOUT"),
            Self::TooManyStreams(_) => error_code!(namespace, "TOO_MANY_STREAMS"),
            Self::Internal(_) => error_code!(namespace, "INTERNAL_ERROR"),
        }
    }

    /// Returns the message for the caller. Internal causes are only logged.
    pub(super) fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Invalid(_) => "validation failed".into(),
            Self::BadBody(what)
            | Self::RuleExists(what)
            | Self::RuleChanged(what)
            | Self::RulesChanged(what)
            | Self::TooManyRules(what)
            | Self::TooManyOverrides(what)
            | Self::NoSuchService(what)
            | Self::ConfigRefused(what, _)
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
            Self::Reservation(refusal) => refusal.to_string().into(),
            Self::NoRuleId => "rule_id is required".into(),
            Self::NoSuchRule(id) => format!("rule not found: {id}").into(),
            Self::NoSuchOverride(id) => format!("override not found: {id}").into(),
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

    /// Returns the invalid fields, if any.
    pub(super) fn into_details(self) -> Vec<Detail> {
        match self {
            Self::Invalid(details) => details,
            _ => Vec::new(),
        }
    }

    fn details(&self) -> Cow<'_, [Detail]> {
        match self {
            Self::Invalid(details) | Self::ConfigRefused(_, details) => details.into(),
            Self::Quota(refusal) => quotas::details(refusal).into(),
            _ => Cow::Borrowed(&[]),
        }
    }

    /// An error of the store that no fail mode handles.
    pub(super) fn store(cause: &StoreError) -> Self {
        if cause.is_temporary() {
            Self::NoStore(cause.to_string())
        } else {
            Self::Internal(cause.to_string())
        }
    }

    /// Returns the internal cause, for the log.
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

    /// Renders the response to the request with this id.
    pub(super) fn respond(self, format: ErrorFormat, id: &RequestId) -> Response {
        let body = match format {
            ErrorFormat::Keyed => keyed::envelope(&self),
            ErrorFormat::RateLimit | ErrorFormat::Quota => self.envelope(format.namespace(), id),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, json::CONTENT_TYPE);
        if format == ErrorFormat::Keyed {
            headers.insert(header::CACHE_CONTROL, keyed::NO_STORE);
        }
        if matches!(self, Self::TooLarge(_) | Self::TimedOut) {
            // The rest of the body is not read, so nothing can follow it.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Self::Quota(refusal) = &self {
            quotas::write_headers(headers, refusal);
        }
        // For the log, which has the cause.
        response.extensions_mut().insert(self);
        response
    }

    fn envelope(&self, namespace: Namespace, id: &RequestId) -> Vec<u8> {
        let details = self.details();
        let error = Inside {
            code: self.code(namespace),
            message: self.message(),
            request_id: id.as_str(),
            details: Some(&*details).filter(|it| namespace == Namespace::Quota || !it.is_empty()),
        };
        json::to_vec(&Envelope { error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (format, id) = format::current();
        self.respond(format, &id)
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        Self::Auth(error)
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, extract::Request, routing::get};
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};
    use tower_service::Service as _;

    use super::*;

    async fn failing() -> ApiError {
        ApiError::NoSuchRule("r1".to_owned())
    }

    async fn body(response: Response) -> (u16, Value) {
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn renders_itself_in_a_plain_axum_router() {
        let mut router: Router = Router::new().route("/", get(failing));
        let response = router.call(Request::new(Body::empty())).await.unwrap();
        let (status, body) = body(response).await;
        let id = body["error"]["request_id"].as_str().unwrap();
        assert!(id.starts_with("req_"), "{id}");
        let expected = json!({
            "code": "SYS_RATELIMIT_RULE_NOT_FOUND",
            "message": "rule not found: r1",
            "request_id": id,
        });
        assert_eq!((status, &body["error"]), (404, &expected));
    }

    #[tokio::test]
    async fn uses_the_id_and_the_format_of_the_request() {
        let id = RequestId::generate();
        let timed_out = |format| {
            let id = id.clone();
            scope(format, id, async { ApiError::TimedOut.into_response() })
        };
        let (status, quota) = body(timed_out(ErrorFormat::Quota).await).await;
        let expected = json!({"error": {
            "code": "SYS_QUOTA_TIMEOUT",
            "message": "the request took too long",
            "request_id": id.as_str(),
            "details": [],
        }});
        assert_eq!((status, quota), (408, expected));
        let response = timed_out(ErrorFormat::Keyed).await;
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        assert_eq!(body(response).await.1["error"], "TIMEOUT");
    }
}
