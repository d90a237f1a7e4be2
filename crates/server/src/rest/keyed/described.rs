//! Responses in the `OpenAPI` description.

use utoipa::{IntoResponses, ToSchema};

use super::answer::{WireDecision, WireRemaining};
use crate::rest::error::KeyedEnvelope as Envelope;

/// Algorithm; names are case-insensitive.
#[derive(ToSchema)]
#[schema(as = RateLimitAlgorithm, rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Algorithm {
    TokenBucket,
    SlidingWindow,
    SlidingWindowCounter,
    FixedWindow,
    LeakyBucket,
}

/// Responses to a check.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Decided {
    /// The request is admitted, and its permits are taken.
    #[response(
        status = 200,
        headers(
            ("X-RateLimit-Limit" = u64, description = "Maximum number of permits at once"),
            ("X-RateLimit-Remaining" = u64, description = "Remaining units"),
            ("X-RateLimit-Reset" = u64, description = "Unix time in seconds at which the whole limit is available again"),
            ("RateLimit-Policy" = String, description = "The algorithm, its quota and its window"),
            ("RateLimit" = String, description = "Remaining units, and seconds until more are available"),
            ("X-RateLimit-Degraded" = String, description = "Fail mode that decided in place of the store; absent otherwise"),
            ("X-RateLimit-Leased" = bool, description = "`true` if Redis was not asked; absent otherwise"),
        ),
    )]
    Allowed(WireDecision<'static>),
    /// The request is denied; nothing was taken.
    #[response(
        status = 429,
        headers(
            ("Retry-After" = u64, description = "Seconds until the same request would be admitted"),
            ("X-RateLimit-Limit" = u64, description = "Maximum number of permits at once"),
            ("X-RateLimit-Remaining" = u64, description = "Remaining units"),
            ("X-RateLimit-Reset" = u64, description = "Unix time in seconds at which the whole limit is available again"),
            ("RateLimit-Policy" = String, description = "The algorithm, its quota and its window"),
            ("RateLimit" = String, description = "Remaining units, and seconds until more are available"),
            ("X-RateLimit-Degraded" = String, description = "Fail mode that decided in place of the store; absent otherwise"),
            ("X-RateLimit-Leased" = bool, description = "`true` if Redis was not asked; absent otherwise"),
        ),
    )]
    Denied(WireDecision<'static>),
}

/// Responses to a peek.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Looked {
    /// Remaining units.
    #[response(
        status = 200,
        headers(
            ("X-RateLimit-Limit" = u64, description = "Maximum number of permits at once"),
            ("X-RateLimit-Remaining" = u64, description = "Remaining units"),
            ("X-RateLimit-Reset" = u64, description = "Unix time in seconds at which the whole limit is available again"),
            ("RateLimit-Policy" = String, description = "The algorithm, its quota and its window"),
            ("RateLimit" = String, description = "Remaining units, and seconds until more are available"),
            ("X-RateLimit-Degraded" = String, description = "Fail mode that answered in place of the store; absent otherwise"),
        ),
    )]
    Remaining(WireRemaining<'static>),
}

/// Errors.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Refused {
    /// A parameter is invalid.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
    /// An internal error; the server's log has the cause.
    #[response(status = 500)]
    Failed(Envelope<'static>),
    /// The store does not answer. Nothing was changed, unless `message` says that the outcome is unknown.
    #[response(status = 503)]
    Unavailable(Envelope<'static>),
}

/// Further errors of a reset.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(super) enum Protected {
    /// There is no token, or it is not valid.
    #[response(status = 401)]
    Unknown(Envelope<'static>),
    /// The token's role may not do that.
    #[response(status = 403)]
    Forbidden(Envelope<'static>),
}
