//! The values of enumerated and nested fields. A test compares them with the types they describe.

use utoipa::ToSchema;

/// Kind of subject.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Scope {
    Service,
    User,
    Endpoint,
}

/// Kind of subject of a rule; `attributes` for a rule over attributes.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum RuleScope {
    Service,
    User,
    Endpoint,
    Attributes,
}

/// Algorithm.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Algorithm {
    TokenBucket,
    LeakyBucket,
    FixedWindow,
    SlidingWindow,
    SlidingWindowCounter,
    Concurrency,
}

/// Decides while the store cannot.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum FailMode {
    Capped,
    Open,
    Closed,
    Local,
}

/// Part of a limit that a server takes in advance from Redis.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) struct Lease {
    /// Share of the limit in percent; 0 turns leases off, whatever the default is.
    #[schema(minimum = 0, maximum = 50, example = 10)]
    share_percent: u8,
    /// Time that a server may hold them, in milliseconds: at least 10, at most a tenth of the
    /// window. Ignored if the share is 0.
    #[schema(minimum = 0, maximum = 1000, example = 200)]
    hold_ms: u16,
}

/// Decided in place of the store: a fail mode, or a denial that the store gave earlier.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Degraded {
    Capped,
    Open,
    Closed,
    Local,
    Remembered,
}

/// A stretch of time: `60s`, `1m`, `1h`, or seconds.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Window {
    Text(String),
    Seconds(u64),
}

/// Kind of match between a rule's pattern and a subject.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Match {
    Exact,
    Prefix,
    Any,
    Default,
}

/// Kind of change.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum AuditAction {
    #[schema(rename = "rule.create")]
    RuleCreate,
    #[schema(rename = "rule.update")]
    RuleUpdate,
    #[schema(rename = "rule.delete")]
    RuleDelete,
    #[schema(rename = "override.set")]
    OverrideSet,
    #[schema(rename = "override.delete")]
    OverrideDelete,
    #[schema(rename = "counter.reset")]
    CounterReset,
    #[schema(rename = "lease.end")]
    LeaseEnd,
    #[schema(rename = "quota.create")]
    QuotaCreate,
    #[schema(rename = "quota.update")]
    QuotaUpdate,
    #[schema(rename = "quota.delete")]
    QuotaDelete,
    #[schema(rename = "quota.reset")]
    QuotaReset,
    #[schema(rename = "config.reload")]
    ConfigReload,
}

/// Kind of subject of a quota.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum SubjectType {
    Tenant,
    User,
    ApiKey,
}

/// Period of a quota: a day or a month of its time zone.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Period {
    Daily,
    Monthly,
}

/// Readiness of the server.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum Condition {
    Starting,
    Ready,
    Degraded,
    Stopping,
}
