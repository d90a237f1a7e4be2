//! The rows of a batch as they are sent to the database.

use headgate_quota::{
    Increment, QuotaEvent,
    ledger::book::{Account, Balance, Charge},
};
use serde::Serialize;

use crate::moment::Moment;

/// A period that needs a usage row.
#[derive(Serialize)]
pub(super) struct PeriodRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    pub(super) period_start: u64,
    pub(super) period_end: u64,
}

/// The charge of a request id, or the key of one.
#[derive(Serialize)]
pub(super) struct ChargeRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    pub(super) request_id: &'a str,
    pub(super) amount: u64,
    pub(super) used: u64,
    pub(super) quota_limit: u64,
}

/// The usage of a policy in a period.
#[derive(Serialize)]
pub(super) struct UsageRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    pub(super) used: u64,
    pub(super) quota_limit: u64,
    pub(super) threshold_told: bool,
    pub(super) exceeded_told: bool,
}

/// An event.
#[derive(Serialize)]
pub(super) struct EventRow<'a> {
    pub(super) place: usize,
    pub(super) event_id: &'a str,
    pub(super) kind: &'static str,
    pub(super) policy_id: &'a str,
    pub(super) subject_type: &'static str,
    pub(super) subject_id: &'a str,
    pub(super) period: &'static str,
    pub(super) quota_limit: u64,
    pub(super) used: u64,
    pub(super) alert_threshold_percent: Option<u8>,
    pub(super) occurred_at: u64,
    pub(super) reset_at: u64,
}

// === impl PeriodRow ===

impl<'a> PeriodRow<'a> {
    /// Returns the period of an increment.
    pub(super) fn of(increment: &'a Increment) -> Self {
        let span = &increment.span;
        Self {
            policy_id: increment.policy.as_str(),
            period_name: &span.name,
            period_start: span.start.as_micros(),
            period_end: span.end.as_micros(),
        }
    }

    /// Returns its primary key.
    pub(super) const fn key(&self) -> (&'a str, &'a str) {
        (self.policy_id, self.period_name)
    }
}

pub(super) fn charge_key(increment: &Increment) -> Option<ChargeRow<'_>> {
    Some(ChargeRow {
        policy_id: increment.policy.as_str(),
        period_name: &increment.span.name,
        request_id: increment.request_id.as_deref()?,
        amount: increment.amount,
        used: 0,
        quota_limit: 0,
    })
}

pub(super) fn charge_row<'a>(
    (account, request_id, charge): (&'a Account, &'a str, &Charge),
) -> ChargeRow<'a> {
    ChargeRow {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        request_id,
        amount: charge.amount,
        used: charge.used,
        quota_limit: charge.limit,
    }
}

pub(super) fn usage_row<'a>((account, balance): (&'a Account, &Balance)) -> UsageRow<'a> {
    UsageRow {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        used: balance.used,
        quota_limit: balance.terms.as_ref().map_or(0, |terms| terms.limit),
        threshold_told: balance.threshold_recorded,
        exceeded_told: balance.exceeded_recorded,
    }
}

pub(super) fn event_row((place, event): (usize, &QuotaEvent)) -> EventRow<'_> {
    EventRow {
        place,
        event_id: &event.event_id,
        kind: event.kind.name(),
        policy_id: event.quota_id.as_str(),
        subject_type: event.subject.kind.name(),
        subject_id: &event.subject.id,
        period: event.period.name(),
        quota_limit: event.limit,
        used: event.used,
        alert_threshold_percent: event.alert_threshold_percent,
        occurred_at: Moment::shown(event.at).as_micros(),
        reset_at: event.reset_at.as_micros(),
    }
}
