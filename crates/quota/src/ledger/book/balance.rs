//! The state of a policy in a period, and its events.

use headgate::{Cost, Timestamp};

use super::{Account, Recorder};
use crate::{EventKind, QuotaEvent, QuotaPeriod, QuotaUsage, Subject, Units};

/// The state of a policy in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The current policy; `None` if it was deleted.
    pub terms: Option<Terms>,
    /// Units used.
    pub used: u64,
    /// Units that pending reservations hold besides.
    pub reserved: u64,
    /// Number of resets: a charge from before the last one is not refunded.
    pub resets: u64,
    /// End of the period.
    pub period_end: Timestamp,
    /// `true` if the threshold event was recorded.
    pub threshold_recorded: bool,
    /// `true` if the exceeded event was recorded.
    pub exceeded_recorded: bool,
    /// `true` if it must be written.
    pub changed: bool,
    /// Units of expired reservations that no effect includes yet.
    pub expired: u64,
}

/// The fields of a policy that decisions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Subject.
    pub subject: Subject,
    /// Period.
    pub period: QuotaPeriod,
    /// Limit.
    pub limit: u64,
    /// `true` if it is enforced.
    pub enabled: bool,
    /// Usage in percent of the limit at which the threshold event is recorded.
    pub alert_threshold_percent: Option<u8>,
}

// === impl Balance ===

impl Balance {
    /// Creates the state of a policy without reservations, resets and recorded events.
    pub const fn new(terms: Option<Terms>, used: u64, period_end: Timestamp) -> Self {
        Self {
            terms,
            used,
            reserved: 0,
            resets: 0,
            period_end,
            threshold_recorded: false,
            exceeded_recorded: false,
            changed: false,
            expired: 0,
        }
    }

    /// Takes out `held` units of reservations whose TTL is over.
    pub fn expire(&mut self, held: u64) {
        let held = held.min(self.reserved);
        self.reserved -= held;
        self.expired += held;
        self.changed = true;
    }

    /// Returns its units under the current limit.
    pub(super) fn units(&self) -> Units {
        let limit = self.terms.as_ref().map_or(0, |terms| terms.limit);
        Units { used: self.used, reserved: self.reserved, limit }
    }

    /// Charges `amount` if the limit admits it.
    pub(super) fn charge(&mut self, amount: u64, limit: u64) -> bool {
        let admitted = self.admits(amount, limit);
        if admitted {
            self.used += amount;
            self.changed = true;
        }
        admitted
    }

    /// Reserves `amount` if the limit admits it.
    pub(super) fn reserve(&mut self, amount: u64, limit: u64) -> bool {
        let admitted = self.admits(amount, limit);
        if admitted {
            self.reserved += amount;
            self.changed = true;
        }
        admitted
    }

    /// Returns `true` if the limit admits `amount` more.
    pub(super) const fn admits(&self, amount: u64, limit: u64) -> bool {
        QuotaUsage::admits(self.used.saturating_add(self.reserved), amount, limit)
    }

    /// Returns the units that are left under `limit`. An overdraft has none but the largest number.
    pub(super) fn available(&self, limit: u64, overdraft: bool) -> u64 {
        let most = if overdraft { Cost::MAX } else { limit };
        Units { limit: most, ..self.units() }.remaining()
    }

    /// Gives back up to `amount` used units; returns how many.
    pub(super) fn refund(&mut self, amount: u64) -> u64 {
        let back = amount.min(self.used);
        self.used -= back;
        self.changed |= back > 0;
        back
    }

    /// Adds the events that occurred and were not recorded before in this period. Used units reach
    /// a threshold or the limit; reserved units do not, but may cause a denial.
    pub(super) fn record_events(
        &mut self,
        account: &Account,
        charged: bool,
        denied: bool,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(terms) = self.terms.clone() else { return };
        let (used, limit, percent) = (self.used, terms.limit, terms.alert_threshold_percent);
        let event = |kind| self.event(kind, &terms, account, recorder.at);
        let reached = charged && QuotaUsage::is_threshold_reached(used, limit, percent);
        let reached =
            (reached && !self.threshold_recorded).then(|| event(EventKind::ThresholdReached));
        let exceeded = denied || (charged && QuotaUsage::is_exceeded(used, limit));
        let exceeded = (exceeded && !self.exceeded_recorded).then(|| event(EventKind::Exceeded));
        self.threshold_recorded |= reached.is_some();
        self.exceeded_recorded |= exceeded.is_some();
        self.changed |= reached.is_some() || exceeded.is_some();
        recorder.events.extend(reached.into_iter().chain(exceeded));
    }

    fn event(
        &self,
        kind: EventKind,
        terms: &Terms,
        account: &Account,
        at: Timestamp,
    ) -> QuotaEvent {
        QuotaEvent {
            event_id: QuotaEvent::id(&account.policy, &account.period_name, kind),
            kind,
            quota_id: account.policy.clone(),
            subject: terms.subject.clone(),
            period: terms.period,
            limit: terms.limit,
            used: self.used,
            alert_threshold_percent: terms.alert_threshold_percent,
            at,
            reset_at: self.period_end,
        }
    }
}
