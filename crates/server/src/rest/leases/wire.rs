//! Leases as they are shown.

use std::time::Duration;

use headgate::Timestamp;
use headgate_ratelimit::{
    PlaceLeaseId,
    usecase::{
        Verdict,
        check::places::{Acquired, Renewed},
    },
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::{check::WireDetailed, time};

/// A lease, or a denial.
#[derive(Serialize, ToSchema)]
#[schema(as = Acquired)]
pub(in crate::rest) struct WireAcquired<'a> {
    /// True if all are admitted; otherwise nothing was taken.
    allowed: bool,
    /// The lease's id; left out of a denial, as the next one. It contains the identifiers, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "lease_wX0b…")]
    lease_id: Option<&'a str>,
    /// Time at which the lease ends unless it is renewed, by the store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    expires_at: Option<String>,
    /// Milliseconds for which the lease lasts: `lease_seconds`, or less if a rule's `window_seconds` is. Left out of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lease_ms: Option<u64>,
    /// True in a denial by a concurrency rule: holders may renew or release their leases before, so that a retry may
    /// succeed earlier or later. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retry_after_estimated: Option<bool>,
    /// The decision of each check, in their order.
    results: Vec<WireDetailed<'a>>,
}

/// A renewed lease.
#[derive(Serialize, ToSchema)]
#[schema(as = Renewed)]
pub(in crate::rest) struct WireRenewed<'a> {
    lease_id: &'a str,
    /// Time at which the lease ends unless it is renewed again, by the store's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// Milliseconds for which the lease lasts.
    lease_ms: u64,
    /// The `fail_mode` that renewed it while the store did not answer; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<&'static str>,
}

/// A released lease.
#[derive(Serialize, ToSchema)]
#[schema(as = Released)]
pub(in crate::rest) struct WireReleased<'a> {
    lease_id: &'a str,
    /// False if the lease had ended before.
    released: bool,
}

impl<'a> WireAcquired<'a> {
    pub(super) fn new(done: &'a Acquired, names: &'a [Option<String>]) -> Self {
        let results = done.verdicts.iter().zip(names);
        let lease = done.lease.as_ref();
        let is_full = |verdict: &Verdict| !verdict.decision.allowed && verdict.rule.holds_places();
        Self {
            allowed: lease.is_some(),
            lease_id: lease.map(|lease| lease.id.as_str()),
            expires_at: lease.map(|lease| time::text(lease.expires_at)),
            lease_ms: lease.map(|lease| millis(lease.length)),
            retry_after_estimated: done.verdicts.iter().flatten().any(is_full).then_some(true),
            results: results
                .map(|(verdict, name)| {
                    WireDetailed::of(verdict.as_ref(), name.as_deref().unwrap_or_default(), false)
                })
                .collect(),
        }
    }
}

impl<'a> WireRenewed<'a> {
    pub(super) fn new(id: &'a PlaceLeaseId, renewed: &Renewed) -> Self {
        Self {
            lease_id: id.as_str(),
            expires_at: renewed.expires_at,
            lease_ms: millis(renewed.length),
            degraded: renewed.degraded.map(headgate::Degraded::name),
        }
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

impl<'a> WireReleased<'a> {
    pub(super) fn new(id: &'a PlaceLeaseId, released: bool) -> Self {
        Self { lease_id: id.as_str(), released }
    }
}
