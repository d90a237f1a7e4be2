//! Decides increments, one after the other: what a ledger does between reading and writing.

use std::collections::HashMap;

use super::{Entry, Increment, Verdict};
use crate::{EventKind, QuotaDomainService, QuotaEvent, QuotaId, QuotaPeriod, Span, Subject};

/// The page of the ledger that some increments are about. A ledger fills it in while nobody else
/// can change it, lets it decide, and writes down what has changed.
#[derive(Debug, Default)]
pub struct Book {
    balances: HashMap<Account, Balance>,
    charges: HashMap<(Account, String), Charge>,
    events: Vec<QuotaEvent>,
}

/// A policy in one of its periods.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// The policy.
    pub policy: QuotaId,
    /// The name of the period.
    pub period_name: String,
}

/// How a policy stands in a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// What the policy says now; `None` if there is none any more.
    pub terms: Option<Terms>,
    /// How much is used.
    pub used: u64,
    /// Whether it was told that the threshold is reached.
    pub threshold_told: bool,
    /// Whether it was told that the quota is exceeded.
    pub exceeded_told: bool,
    /// Whether anything of this is new.
    pub changed: bool,
}

/// What a policy says, as far as decisions are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whom it is about.
    pub subject: Subject,
    /// In which kind of period.
    pub period: QuotaPeriod,
    /// How much may be used.
    pub limit: u64,
    /// Whether it is applied.
    pub enabled: bool,
    /// From which percentage on an alert is raised, if one is.
    pub alert_threshold_percent: Option<u8>,
}

/// What was taken under a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// How much.
    pub amount: u64,
    /// How much was used after it.
    pub used: u64,
    /// The limit by which that was decided.
    pub limit: u64,
    /// Whether it is new.
    pub is_new: bool,
}

// === impl Book ===

impl Book {
    /// Fills in how a policy stands.
    pub fn stand(&mut self, account: Account, balance: Balance) {
        self.balances.insert(account, balance);
    }

    /// Fills in what was taken under a request id.
    pub fn charged(&mut self, account: Account, request_id: String, charge: Charge) {
        self.charges.insert((account, request_id), charge);
    }

    /// Decides the next increment.
    pub fn decide(&mut self, increment: &Increment) -> Entry {
        let account = Account::of(increment);
        let Some(balance) = self.balances.get_mut(&account) else {
            return Entry { verdict: Verdict::NotFound, used: 0, limit: 0 };
        };
        let Some(terms) = balance.terms.clone() else {
            return Entry { verdict: Verdict::NotFound, used: balance.used, limit: 0 };
        };
        let (amount, limit) = (increment.amount, terms.limit);
        let entry = |verdict, used| Entry { verdict, used, limit };
        let key = increment.request_id.clone().map(|id| (account, id));
        // What was admitted before stays so, whatever the policy says by now.
        match key.as_ref().and_then(|key| self.charges.get(key)) {
            Some(charge) if charge.amount != amount => {
                return entry(Verdict::Conflict, balance.used);
            }
            Some(charge) => {
                let (used, limit) = (charge.used, charge.limit);
                return Entry { verdict: Verdict::Replayed, used, limit };
            }
            None => {}
        }
        if !terms.enabled {
            return entry(Verdict::Disabled, balance.used);
        }
        if amount > limit {
            return entry(Verdict::Impossible, balance.used);
        }
        if let Some(key) = key
            && QuotaDomainService::admits(balance.used, amount, limit)
        {
            let used = balance.used + amount;
            self.charges.insert(key, Charge { amount, used, limit, is_new: true });
        }
        let taken = balance.take(amount, limit);
        balance.tell(&terms, taken, increment, &mut self.events);
        entry(if taken { Verdict::Taken } else { Verdict::Refused }, balance.used)
    }

    /// What was filled in.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.balances.keys()
    }

    /// How policies stand now that did not stand so before.
    pub fn changed(&self) -> impl Iterator<Item = (&Account, &Balance)> {
        self.balances.iter().filter(|(_, balance)| balance.changed)
    }

    /// What was taken under request ids that were new.
    pub fn new_charges(&self) -> impl Iterator<Item = (&Account, &str, &Charge)> {
        let all = self.charges.iter().filter(|(_, charge)| charge.is_new);
        all.map(|((account, id), charge)| (account, &**id, charge))
    }

    /// What has to be told, in the order in which it happened.
    pub fn events(&self) -> &[QuotaEvent] {
        &self.events
    }
}

// === impl Account ===

impl Account {
    /// The one that an increment is about.
    pub fn of(increment: &Increment) -> Self {
        Self { policy: increment.policy.clone(), period_name: increment.span.name.clone() }
    }
}

// === impl Balance ===

impl Balance {
    /// How a policy stands of which nothing was told yet.
    pub const fn new(terms: Option<Terms>, used: u64) -> Self {
        Self { terms, used, threshold_told: false, exceeded_told: false, changed: false }
    }

    /// Takes `amount` if it fits.
    fn take(&mut self, amount: u64, limit: u64) -> bool {
        let fits = QuotaDomainService::admits(self.used, amount, limit);
        if fits {
            self.used += amount;
            self.changed = true;
        }
        fits
    }

    /// Tells what has come about and was not told before in this period.
    fn tell(
        &mut self,
        terms: &Terms,
        taken: bool,
        increment: &Increment,
        events: &mut Vec<QuotaEvent>,
    ) {
        let (used, limit, percent) = (self.used, terms.limit, terms.alert_threshold_percent);
        let reached = taken && QuotaDomainService::is_threshold_reached(used, limit, percent);
        if reached && !self.threshold_told {
            self.threshold_told = true;
            events.push(event(EventKind::ThresholdReached, terms, used, increment));
        }
        let exceeded = !taken || QuotaDomainService::is_exceeded(used, limit);
        if exceeded && !self.exceeded_told {
            self.exceeded_told = true;
            self.changed = true;
            events.push(event(EventKind::Exceeded, terms, used, increment));
        }
    }
}

fn event(kind: EventKind, terms: &Terms, used: u64, increment: &Increment) -> QuotaEvent {
    let span: &Span = &increment.span;
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
