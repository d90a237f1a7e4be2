//! How much of a quota is used.

use headgate::Timestamp;

use crate::{QuotaDomainService, QuotaId, QuotaPeriod, QuotaPolicy, Span, Subject};

/// How much of a policy's limit is used in one period.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUsage {
    /// Which policy.
    pub quota_id: QuotaId,
    /// Whom it is about.
    pub subject: Subject,
    /// In which kind of period.
    pub period: QuotaPeriod,
    /// In which one: `2026-02-23` or `2026-02`, its start and its end. `span.end` is `reset_at`.
    pub span: Span,
    /// How much may be used.
    pub limit: u64,
    /// How much is.
    pub used: u64,
    /// How much is left.
    pub remaining: u64,
    /// How much of the limit is used, with two decimals, rounded down.
    pub usage_percent: f64,
    /// Whether nothing is left.
    pub exceeded: bool,
    /// When this was so.
    pub retrieved_at: Timestamp,
}

/// How much of a policy's limit was used in a period, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodUsage {
    /// Which period.
    pub span: Span,
    /// The limit at the last change.
    pub limit: u64,
    /// How much was used.
    pub used: u64,
    /// When the period was closed; `None` while it runs.
    pub closed_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl QuotaUsage {
    /// How `used` of `limit` stand in `span`, where `limit` is the policy's or was once.
    pub fn new(
        policy: &QuotaPolicy,
        span: Span,
        (used, limit): (u64, u64),
        retrieved_at: Timestamp,
    ) -> Self {
        Self {
            quota_id: policy.id.clone(),
            subject: policy.spec.subject.clone(),
            period: policy.spec.period,
            span,
            limit,
            used,
            remaining: limit.saturating_sub(used),
            usage_percent: QuotaDomainService::usage_percent(used, limit),
            exceeded: QuotaDomainService::is_exceeded(used, limit),
            retrieved_at,
        }
    }
}
