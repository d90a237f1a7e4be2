//! The rows of a batch as they are sent to the database.

use headgate_quota::{
    Operation, QuotaEvent,
    ledger::book::{Account, Balance, Charge},
};
use serde::Serialize;

use crate::moment::Moment;

/// A period whose usage row is locked.
#[derive(Serialize)]
pub(super) struct PeriodRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    /// Bounds with which a missing row is created; `None` if it need not exist.
    pub(super) period_start: Option<u64>,
    pub(super) period_end: Option<u64>,
    /// True if even a disabled policy needs a row.
    pub(super) reserving: bool,
}

/// The charge of a request id.
#[derive(Serialize)]
pub(super) struct ChargeRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    pub(super) request_id: &'a str,
    pub(super) amount: u64,
    pub(super) used: u64,
    pub(super) reserved: u64,
    pub(super) quota_limit: u64,
    pub(super) resets: u64,
    pub(super) refunded: Option<u64>,
}

/// What identifies the charge of a request id.
#[derive(Serialize)]
pub(super) struct ChargeKey<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    pub(super) request_id: &'a str,
}

/// The usage of a policy in a period.
#[derive(Serialize)]
pub(super) struct UsageRow<'a> {
    pub(super) policy_id: &'a str,
    pub(super) period_name: &'a str,
    /// Used and reserved units.
    pub(super) used: u64,
    pub(super) reserved: u64,
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
    /// Returns the period of an operation.
    pub(super) fn of(operation: &'a Operation) -> Self {
        let span = match operation {
            Operation::Increment(_) | Operation::Reserve(_) => operation.span(),
            Operation::Change(_) | Operation::Refund(_) => None,
        };
        Self {
            policy_id: operation.policy().as_str(),
            period_name: operation.period_name(),
            period_start: span.map(|span| span.start.as_micros()),
            period_end: span.map(|span| span.end.as_micros()),
            reserving: matches!(operation, Operation::Reserve(_)),
        }
    }

    /// Adds what another operation needs of the same row.
    pub(super) fn merge(&mut self, other: &Self) {
        self.period_start = self.period_start.or(other.period_start);
        self.period_end = self.period_end.or(other.period_end);
        self.reserving |= other.reserving;
    }

    /// Returns its primary key.
    pub(super) const fn key(&self) -> (&'a str, &'a str) {
        (self.policy_id, self.period_name)
    }
}

/// Returns the key of the charge that an operation needs; `None` if it needs none.
pub(super) fn charge_key(operation: &Operation) -> Option<ChargeKey<'_>> {
    let request_id = match operation {
        Operation::Increment(increment) => increment.request_id.as_deref()?,
        Operation::Refund(refund) => &refund.request_id,
        Operation::Reserve(_) | Operation::Change(_) => return None,
    };
    let (policy_id, period_name) = (operation.policy().as_str(), operation.period_name());
    Some(ChargeKey { policy_id, period_name, request_id })
}

pub(super) fn charge_row<'a>(
    (account, request_id, charge): (&'a Account, &'a str, &Charge),
) -> ChargeRow<'a> {
    ChargeRow {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        request_id,
        amount: charge.amount,
        used: charge.units.used,
        reserved: charge.units.reserved,
        quota_limit: charge.units.limit,
        resets: charge.resets,
        refunded: charge.refunded,
    }
}

pub(super) fn usage_row<'a>((account, balance): (&'a Account, &Balance)) -> UsageRow<'a> {
    UsageRow {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        used: balance.used + balance.reserved,
        reserved: balance.reserved,
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
