//! The HTTP surface, described for programs: generated from the handlers and their types.

use std::sync::LazyLock;

use axum::response::Response;
use utoipa::{
    IntoResponses, Modify, OpenApi, ToSchema,
    openapi::{
        self,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{audit, check, error::Envelope, explain, health, json, metrics, reset, rules, usage};

/// What kind of subject.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(super) enum Scope {
    Service,
    User,
    Endpoint,
}

/// How units are counted.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(super) enum Algorithm {
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingWindow,
    SlidingWindowCounter,
}

/// Who decides while the store cannot.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(super) enum FailMode {
    Open,
    Closed,
    Local,
}

/// What every request with parameters may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Invalid {
    /// Something does not fit; `details` says what.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
}

/// What every request with a body may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum WithBody {
    /// Something does not fit; `details` says what.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(Envelope<'static>),
    /// The body is not sent as JSON.
    #[response(status = 415)]
    NotJson(Envelope<'static>),
}

/// What everybody who needs a token may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Protected {
    /// There is no token, or it is not valid.
    #[response(status = 401)]
    Unknown(Envelope<'static>),
    /// The token's role may not do that.
    #[response(status = 403)]
    Forbidden(Envelope<'static>),
    /// The database or the store does not answer; nothing was changed.
    #[response(status = 503)]
    Unavailable(Envelope<'static>),
}

#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum NoSuchRule {
    /// There is no such rule.
    #[response(status = 404)]
    NoSuchRule(Envelope<'static>),
}

#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Conflict {
    /// There is a rule with this scope, pattern and window already.
    #[response(status = 409)]
    Exists(Envelope<'static>),
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Headgate",
        description = "May subject S do X, at cost C, now, and if not, when?",
    ),
    paths(
        check::check,
        check::batch::check_batch,
        rules::list,
        rules::create,
        rules::apply::apply,
        rules::get,
        rules::update,
        rules::delete,
        usage::usage,
        explain::explain,
        reset::reset,
        audit::audit,
        health::live,
        health::ready,
        metrics::render,
    ),
    modifiers(&Token),
)]
struct Surface;

/// How callers show who they are.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A JWT of the configured issuer, a configured token, or the admin token",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// The description itself.
pub(crate) fn document() -> openapi::OpenApi {
    Surface::openapi()
}

pub(super) async fn show() -> Response {
    static DOCUMENT: LazyLock<openapi::OpenApi> = LazyLock::new(document);
    json::respond(&*DOCUMENT)
}
