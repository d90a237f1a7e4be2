//! Error responses.

use utoipa::IntoResponses;

use crate::rest::error::Envelope;

/// Errors of requests with parameters.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Invalid {
    /// Invalid fields; `details` lists them.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
}

/// Errors of requests with a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum WithBody {
    /// Invalid fields; `details` lists them.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(Envelope<'static>),
    /// The body is not sent as JSON.
    #[response(status = 415)]
    NotJson(Envelope<'static>),
}

/// Errors of requests that need a token.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Protected {
    /// There is no token, or it is not valid.
    #[response(status = 401)]
    Unknown(Envelope<'static>),
    /// The token's role may not do that.
    #[response(status = 403)]
    Forbidden(Envelope<'static>),
}

/// Errors of requests that wait for a dependency.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Late {
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
}

/// Errors of requests that need the database or the store.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Failing {
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
    /// An internal error; the server's log has the cause.
    #[response(status = 500)]
    Failed(Envelope<'static>),
    /// The database or the store does not answer. Nothing was changed, unless `message` says that the outcome is unknown.
    #[response(status = 503)]
    Unavailable(Envelope<'static>),
}

/// Errors of reading the configuration.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Unloadable {
    /// The configuration is invalid, or its live keys contradict keys that need a restart: nothing was changed. `details` lists the problems with their places.
    #[response(status = 422)]
    Refused(Envelope<'static>),
}

/// Errors of requests for one rule.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchRule {
    /// There is no such rule.
    #[response(status = 404)]
    NoSuchRule(Envelope<'static>),
}

/// Errors of requests for one override.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchOverride {
    /// There is no such override.
    #[response(status = 404)]
    NoSuchOverride(Envelope<'static>),
}

/// Errors of setting an override.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum TooManyOverrides {
    /// The maximum number of overrides is reached.
    #[response(status = 409)]
    TooMany(Envelope<'static>),
}

/// Errors of writing a rule.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Conflict {
    /// A rule with this scope, pattern and window exists, or the maximum number of rules is reached.
    #[response(status = 409)]
    Exists(Envelope<'static>),
}

/// Errors of writing a list of rules.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum ListConflict {
    /// The rules have changed since this `revision`, or meanwhile: plan again. Or there would be too many rules.
    #[response(status = 409)]
    Changed(Envelope<'static>),
}

/// Errors of a conditional change of a rule.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Changed {
    /// The rule changed since it had the tag of `If-Match`.
    #[response(status = 412)]
    Changed(Envelope<'static>),
}

/// Errors of requests for one service.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchService {
    /// No service of this name has a document.
    #[response(status = 404)]
    NoSuchService(Envelope<'static>),
}

/// Errors of changing a document.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum DocumentChanged {
    /// The document has another version than `expected_version`.
    #[response(status = 409)]
    Changed(Envelope<'static>),
}

/// Errors of requests for one quota.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchQuota {
    /// There is no such quota policy.
    #[response(status = 404)]
    NoSuchQuota(Envelope<'static>),
}

/// Errors of writing a quota.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum QuotaExists {
    /// There is a policy for this subject and period already, this one changed meanwhile, or the maximum number of policies is reached.
    #[response(status = 409)]
    Exists(Envelope<'static>),
}

/// Errors of a conditional change of a quota.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum QuotaChanged {
    /// The policy changed since it had the tag of `If-Match`.
    #[response(status = 412)]
    Changed(Envelope<'static>),
}

/// Errors of repeated increments.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum RequestIdReused {
    /// Another amount was used under this `request_id` in this period.
    #[response(status = 409)]
    Reused(Envelope<'static>),
}

/// Errors of refunds.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoRefund {
    /// There is no such quota policy, or nothing was charged under this `request_id`.
    #[response(status = 404)]
    NoCharge(Envelope<'static>),
    /// It was charged in a period that is over.
    #[response(status = 409)]
    PeriodOver(Envelope<'static>),
}

/// Errors of requests for one reservation.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchReservation {
    /// There is no such quota policy, or no such reservation of it.
    #[response(status = 404)]
    NoSuchReservation(Envelope<'static>),
}

/// Errors of changing a reservation.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum ReservationEnded {
    /// The reservation has expired, or was settled or cancelled before in another way. Nothing was changed.
    #[response(status = 409)]
    Ended(Envelope<'static>),
}

/// Errors of requests for one reservation of rate limits.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchLimitReservation {
    /// There is no such reservation.
    #[response(status = 404)]
    NoSuchReservation(Envelope<'static>),
}

/// Errors of changing a reservation of rate limits.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum LimitReservationEnded {
    /// The reservation has expired or was cancelled, or was settled for another cost. Nothing was changed.
    #[response(status = 409)]
    Ended(Envelope<'static>),
}

/// Errors of unknown leases.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchLease {
    /// The id is not that of a lease, or no such holder is listed.
    #[response(status = 404)]
    NotFound(Envelope<'static>),
}

/// Errors of renewing a lease.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum LeaseEnded {
    /// The lease has ended: its places may have another holder.
    #[response(status = 409)]
    Ended(Envelope<'static>),
}

/// Errors of requests with an idempotency key.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum RequestIdUsed {
    /// The `request_id` was used before. Nothing was taken.
    #[response(status = 409)]
    Used(Envelope<'static>),
}

/// Errors of refunds of checks.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchCheck {
    /// No such check was admitted under this `request_id`, or its units do not count any more.
    #[response(status = 404)]
    NoCharge(Envelope<'static>),
}

/// Errors of using a quota.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Exceeded {
    /// The quota is exceeded; nothing was used. `Retry-After` says when the period ends.
    #[response(status = 429)]
    Exceeded(Envelope<'static>),
}

/// Errors of following events.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Crowded {
    /// This caller has 16 streams open already.
    #[response(status = 429)]
    Crowded(Envelope<'static>),
}

/// Errors of requests that need counters or ledger.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Undecided {
    /// Neither the counters nor the ledger can be reached; nothing was used.
    #[response(status = 502)]
    Undecided(Envelope<'static>),
}
