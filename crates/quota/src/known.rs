//! What this process heard from the ledger lately.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use headgate::Timestamp;

use crate::{Entry, QuotaDomainService, QuotaId, QuotaPolicy, Span, Verdict};

/// What this process heard from the ledger lately, for each policy: its latest period only.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<QuotaId, Standing>>);

#[derive(Debug, Default)]
struct Standing {
    period_name: String,
    used: u64,
    limit: u64,
    /// Whether the ledger knows that somebody was refused, or nothing was left: it tells that, once.
    exceeded: bool,
    at: Timestamp,
    /// When the counter was last compared because it may show too much.
    compared_at: Timestamp,
}

/// How many policies are remembered.
const MAX: usize = 100_000;

/// For how long a refusal is believed without asking again, in microseconds.
const BELIEVED: u64 = 1_000_000;

/// How often a counter is compared because it may show too much, in microseconds.
const COMPARED: u64 = 1_000_000;

// === impl Known ===

impl Known {
    /// Notes what the ledger said at `at`.
    pub(crate) fn hear(&self, policy: &QuotaId, span: &Span, entry: Entry, at: Timestamp) {
        let (used, limit) = (entry.used, entry.limit);
        let refused = entry.verdict == Verdict::Refused;
        let exceeded = refused || QuotaDomainService::is_exceeded(used, limit);
        let mut standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match standings.get_mut(policy) {
            Some(standing) if standing.period_name == span.name => {
                let exceeded = standing.exceeded || exceeded;
                *standing = Standing { used, limit, exceeded, at, ..std::mem::take(standing) };
            }
            // Requests of a period that just ended may still be on their way.
            Some(standing) if standing.period_name.as_str() > span.name.as_str() => {}
            _ => {
                if standings.len() >= MAX {
                    standings.clear();
                }
                let period_name = span.name.clone();
                let standing =
                    Standing { period_name, used, limit, exceeded, at, ..Standing::default() };
                standings.insert(policy.clone(), standing);
            }
        }
    }

    /// How much is used at least, unless somebody reset it; `None` where nothing was heard.
    pub(crate) fn used(&self, policy: &QuotaId, span: &Span) -> Option<u64> {
        let standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = standings.get(policy).filter(|standing| standing.period_name == span.name);
        standing.map(|standing| standing.used)
    }

    /// Whether the counter of a policy is to be compared now; if so, not again for a second.
    pub(crate) fn is_due(&self, policy: &QuotaId, now: Timestamp) -> bool {
        let mut standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(standing) = standings.get_mut(policy) else {
            return true;
        };
        let last = standing.compared_at;
        let due = now < last || now.since(last) >= COMPARED;
        if due {
            standing.compared_at = now;
        }
        due
    }

    /// How much is used, if the ledger said a moment ago that `amount` does not fit, and has told
    /// whoever wants to know.
    pub(crate) fn refusal(
        &self,
        policy: &QuotaPolicy,
        span: &Span,
        amount: u64,
        now: Timestamp,
    ) -> Option<u64> {
        let standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = standings.get(&policy.id)?;
        let same = standing.period_name == span.name && standing.limit == policy.spec.limit;
        let fresh = now >= standing.at && now.since(standing.at) < BELIEVED;
        let fits = QuotaDomainService::admits(standing.used, amount, standing.limit);
        (same && fresh && standing.exceeded && !fits).then_some(standing.used)
    }

    /// Forgets what was heard of a policy that changed.
    pub(crate) fn forget(&self, policy: &QuotaId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(policy);
    }
}
