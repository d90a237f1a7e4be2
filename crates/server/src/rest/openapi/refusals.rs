//! What callers are told when they do not get what they asked for.

use utoipa::IntoResponses;

use crate::rest::error::Envelope;

/// What every request with parameters may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Invalid {
    /// Something does not fit; `details` says what.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
}

/// What every request with a body may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum WithBody {
    /// Something does not fit; `details` says what.
    #[response(status = 400)]
    Invalid(Envelope<'static>),
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
pub(in crate::rest) enum Protected {
    /// There is no token, or it is not valid.
    #[response(status = 401)]
    Unknown(Envelope<'static>),
    /// The token's role may not do that.
    #[response(status = 403)]
    Forbidden(Envelope<'static>),
}

/// What whoever waits for others may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Late {
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
}

/// What whoever asks the database or the store may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Failing {
    /// The request took too long.
    #[response(status = 408)]
    TimedOut(Envelope<'static>),
    /// Something of the server's own failed; its log says what.
    #[response(status = 500)]
    Failed(Envelope<'static>),
    /// The database or the store does not answer; nothing was changed, unless `message` says that nobody knows.
    #[response(status = 503)]
    Unavailable(Envelope<'static>),
}

/// What whoever names a rule may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchRule {
    /// There is no such rule.
    #[response(status = 404)]
    NoSuchRule(Envelope<'static>),
}

/// What whoever writes a rule may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Conflict {
    /// There is a rule with this scope, pattern and window already, or there are as many rules as may be.
    #[response(status = 409)]
    Exists(Envelope<'static>),
}

/// What whoever writes a list of rules may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum ListConflict {
    /// The rules were changed since they had this `revision`, or while this was under way: look again what would change. Or there would be more rules than may be.
    #[response(status = 409)]
    Changed(Envelope<'static>),
}

/// What whoever changes a rule that they have seen may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Changed {
    /// Somebody else changed the rule since it had the tag of `If-Match`.
    #[response(status = 412)]
    Changed(Envelope<'static>),
}

/// What whoever names a service may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchService {
    /// No service of this name has a document.
    #[response(status = 404)]
    NoSuchService(Envelope<'static>),
}

/// What whoever changes a document may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum DocumentChanged {
    /// The document has another version than `expected_version`.
    #[response(status = 409)]
    Changed(Envelope<'static>),
}

/// What whoever names a quota may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum NoSuchQuota {
    /// There is no such quota policy.
    #[response(status = 404)]
    NoSuchQuota(Envelope<'static>),
}

/// What whoever writes a quota may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum QuotaExists {
    /// There is a policy for this subject and period already, or somebody else changed this one.
    #[response(status = 409)]
    Exists(Envelope<'static>),
}

/// What whoever repeats an increment may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum RequestIdReused {
    /// Another amount was used under this `request_id` in this period.
    #[response(status = 409)]
    Reused(Envelope<'static>),
}

/// What whoever uses a quota may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Exceeded {
    /// So much is not left: nothing was used. `Retry-After` says when the period ends.
    #[response(status = 429)]
    Exceeded(Envelope<'static>),
}

/// What whoever follows events may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Crowded {
    /// This caller has 16 streams open already.
    #[response(status = 429)]
    Crowded(Envelope<'static>),
}

/// What whoever asks counters and ledger may be told.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Undecided {
    /// Neither the counters nor the ledger can be reached; nothing was used.
    #[response(status = 502)]
    Undecided(Envelope<'static>),
}
