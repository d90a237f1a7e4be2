//! Decisions on increments, between a ledger's reads and writes.

use std::collections::HashMap;

use super::{Increment, IncrementOutcome, IncrementResult};
use crate::{EventKind, PeriodSpan, QuotaEvent, QuotaId, QuotaPeriod, QuotaUsage, Subject};

/// The part of the ledger that a batch of increments needs. A ledger fills it under row locks, lets
/// it decide, and writes the changes. It does no I/O.
#[derive(Debug, Default)]
pub struct Book {
    balances: HashMap<Account, Balance>,
    charges: HashMap<(Account, String), Charge>,
    events: Vec<QuotaEvent>,
}

/// A policy in one period.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The policy.
    pub policy: QuotaId,
    /// Name of the period.
    pub period_name: String,
}

/// The state of a policy in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The current policy; `None` if it was deleted.
    pub terms: Option<Terms>,
    /// Usage.
    pub used: u64,
    /// `true` if the threshold event was recorded.
    pub threshold_recorded: bool,
    /// `true` if the exceeded event was recorded.
    pub exceeded_recorded: bool,
    /// `true` if it must be written.
    pub changed: bool,
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

/// The charge of a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Units.
    pub amount: u64,
    /// Usage after it.
    pub used: u64,
    /// Limit by which it was decided.
    pub limit: u64,
    /// `true` if it must be written.
    pub is_new: bool,
}

// === impl Book ===

impl Book {
    /// Adds the state of a policy, as read from the database.
    pub fn add_balance(&mut self, account: Account, balance: Balance) {
        self.balances.insert(account, balance);
    }

    /// Adds the charge of a request id, as read from the database.
    pub fn add_charge(&mut self, account: Account, request_id: String, charge: Charge) {
        self.charges.insert((account, request_id), charge);
    }

    /// Decides the next increment.
    pub fn decide(&mut self, increment: &Increment) -> IncrementResult {
        let account = Account::of(increment);
        let Some(balance) = self.balances.get_mut(&account) else {
            return IncrementResult { outcome: IncrementOutcome::NotFound, used: 0, limit: 0 };
        };
        let Some(terms) = balance.terms.clone() else {
            let used = balance.used;
            return IncrementResult { outcome: IncrementOutcome::NotFound, used, limit: 0 };
        };
        let (amount, limit) = (increment.amount, terms.limit);
        let result = |outcome, used| IncrementResult { outcome, used, limit };
        let key = increment.request_id.clone().map(|id| (account, id));
        // A charge is replayed even if the policy has changed since.
        match key.as_ref().and_then(|key| self.charges.get(key)) {
            Some(charge) if charge.amount != amount => {
                return result(IncrementOutcome::Conflict, balance.used);
            }
            Some(charge) => {
                let (used, limit) = (charge.used, charge.limit);
                return IncrementResult { outcome: IncrementOutcome::Replayed, used, limit };
            }
            None => {}
        }
        if !terms.enabled {
            return result(IncrementOutcome::Disabled, balance.used);
        }
        if amount > limit {
            return result(IncrementOutcome::ExceedsLimit, balance.used);
        }
        if let Some(key) = key
            && QuotaUsage::admits(balance.used, amount, limit)
        {
            let used = balance.used + amount;
            self.charges.insert(key, Charge { amount, used, limit, is_new: true });
        }
        let charged = balance.charge(amount, limit);
        balance.record_events(&terms, charged, increment, &mut self.events);
        let outcome = if charged { IncrementOutcome::Charged } else { IncrementOutcome::Denied };
        result(outcome, balance.used)
    }

    /// Returns all accounts.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.balances.keys()
    }

    /// Returns the balances that must be written.
    pub fn changed(&self) -> impl Iterator<Item = (&Account, &Balance)> {
        self.balances.iter().filter(|(_, balance)| balance.changed)
    }

    /// Returns the charges that must be written.
    pub fn new_charges(&self) -> impl Iterator<Item = (&Account, &str, &Charge)> {
        let all = self.charges.iter().filter(|(_, charge)| charge.is_new);
        all.map(|((account, id), charge)| (account, &**id, charge))
    }

    /// Returns the events that must be written, in order.
    pub fn events(&self) -> &[QuotaEvent] {
        &self.events
    }
}

// === impl Account ===

impl Account {
    /// Returns the account of an increment.
    pub fn of(increment: &Increment) -> Self {
        Self { policy: increment.policy.clone(), period_name: increment.span.name.clone() }
    }
}

// === impl Balance ===

impl Balance {
    /// Creates the state of a policy without recorded events.
    pub const fn new(terms: Option<Terms>, used: u64) -> Self {
        Self { terms, used, threshold_recorded: false, exceeded_recorded: false, changed: false }
    }

    /// Charges `amount` if the limit admits it.
    fn charge(&mut self, amount: u64, limit: u64) -> bool {
        let admitted = QuotaUsage::admits(self.used, amount, limit);
        if admitted {
            self.used += amount;
            self.changed = true;
        }
        admitted
    }

    /// Adds the events that occurred and were not recorded before in this period.
    fn record_events(
        &mut self,
        terms: &Terms,
        charged: bool,
        increment: &Increment,
        events: &mut Vec<QuotaEvent>,
    ) {
        let (used, limit, percent) = (self.used, terms.limit, terms.alert_threshold_percent);
        let reached = charged && QuotaUsage::is_threshold_reached(used, limit, percent);
        if reached && !self.threshold_recorded {
            self.threshold_recorded = true;
            events.push(event(EventKind::ThresholdReached, terms, used, increment));
        }
        let exceeded = !charged || QuotaUsage::is_exceeded(used, limit);
        if exceeded && !self.exceeded_recorded {
            self.exceeded_recorded = true;
            self.changed = true;
            events.push(event(EventKind::Exceeded, terms, used, increment));
        }
    }
}

fn event(kind: EventKind, terms: &Terms, used: u64, increment: &Increment) -> QuotaEvent {
    let span: &PeriodSpan = &increment.span;
    QuotaEvent {
        event_id: QuotaEvent::id(&increment.policy, &span.name, kind),
        kind,
        quota_id: increment.policy.clone(),
        subject: terms.subject.clone(),
        period: terms.period,
        limit: terms.limit,
        used,
        alert_threshold_percent: terms.alert_threshold_percent,
        at: increment.at,
        reset_at: span.end,
    }
}

#[cfg(test)]
mod tests;
