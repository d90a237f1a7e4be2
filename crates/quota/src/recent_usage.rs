//! Usage from the latest commits of this process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use headgate::Timestamp;

use crate::{Effect, PeriodSpan, QuotaId, QuotaPolicy, QuotaUsage, Units};

/// Usage from the latest commit of each policy, for its latest period only.
#[derive(Debug, Default)]
pub(crate) struct RecentUsage(Mutex<HashMap<QuotaId, Recent>>);

#[derive(Debug, Default)]
struct Recent {
    period_name: String,
    units: Units,
    /// `true` if the ledger has recorded the exceeded event of this period.
    exceeded: bool,
    at: Timestamp,
    /// Last comparison of the counter with the ledger because it may show too much.
    compared_at: Timestamp,
}

/// Maximum number of policies.
const MAX: usize = 100_000;

/// Lifetime of a denial in microseconds.
const DENIAL_TTL: u64 = 1_000_000;

/// Minimum interval between comparisons of a counter in microseconds.
const COMPARE_INTERVAL: u64 = 1_000_000;

// === impl RecentUsage ===

impl RecentUsage {
    /// Records a result of the ledger.
    pub(crate) fn record(
        &self,
        policy: &QuotaId,
        span: &PeriodSpan,
        &Effect { units, exceeded, .. }: &Effect,
        at: Timestamp,
    ) {
        let mut policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match policies.get_mut(policy) {
            Some(recent) if recent.period_name == span.name => {
                *recent = Recent { units, exceeded, at, ..std::mem::take(recent) };
            }
            // Increments of the period that just ended may still be in flight.
            Some(recent) if recent.period_name.as_str() > span.name.as_str() => {}
            _ => {
                if policies.len() >= MAX {
                    policies.clear();
                }
                let period_name = span.name.clone();
                let recent = Recent { period_name, units, exceeded, at, ..Recent::default() };
                policies.insert(policy.clone(), recent);
            }
        }
    }

    /// Returns the latest known units; `None` if there are none for this period.
    pub(crate) fn units(&self, policy: &QuotaId, span: &PeriodSpan) -> Option<Units> {
        let policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = policies.get(policy).filter(|recent| recent.period_name == span.name);
        recent.map(|recent| recent.units)
    }

    /// Returns `true` if the counter of a policy is due for a comparison; if so, it is not due
    /// again for a second.
    pub(crate) fn comparison_is_due(&self, policy: &QuotaId, now: Timestamp) -> bool {
        let mut policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recent) = policies.get_mut(policy) else {
            return true;
        };
        let last = recent.compared_at;
        let due = now < last || now.since(last) >= COMPARE_INTERVAL;
        if due {
            recent.compared_at = now;
        }
        due
    }

    /// Returns the units if the ledger recently proved that `amount` exceeds the limit and has
    /// recorded the exceeded event. Only used units count: reserved ones may come back at any time.
    pub(crate) fn recent_denial(
        &self,
        policy: &QuotaPolicy,
        span: &PeriodSpan,
        amount: u64,
        now: Timestamp,
    ) -> Option<Units> {
        let policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = policies.get(&policy.id)?;
        let units = recent.units;
        let same = recent.period_name == span.name && units.limit == policy.spec.limit;
        let fresh = now >= recent.at && now.since(recent.at) < DENIAL_TTL;
        let fits = QuotaUsage::admits(units.used, amount, units.limit);
        (same && fresh && recent.exceeded && !fits).then_some(units)
    }

    /// Removes a policy that changed.
    pub(crate) fn remove(&self, policy: &QuotaId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(policy);
    }
}
