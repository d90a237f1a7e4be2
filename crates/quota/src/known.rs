//! What this process heard from the ledger lately.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use headgate::Timestamp;

use crate::{QuotaDomainService, QuotaId, QuotaPolicy, Span};

/// What this process heard from the ledger lately, for each policy: its latest period only.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<QuotaId, Standing>>);

#[derive(Debug)]
struct Standing {
    period_name: String,
    used: u64,
    limit: u64,
    at: Timestamp,
}

/// How many policies are remembered.
const MAX: usize = 100_000;

/// For how long a refusal is believed without asking again, in microseconds.
const BELIEVED: u64 = 1_000_000;

// === impl Known ===

impl Known {
    /// Notes what the ledger said at `at`.
    pub(crate) fn hear(
        &self,
        policy: &QuotaId,
        span: &Span,
        (used, limit): (u64, u64),
        at: Timestamp,
    ) {
        let mut standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = standings.get_mut(policy) {
            // Requests of a period that just ended may still be on their way.
            if standing.period_name.as_str() <= span.name.as_str() {
                *standing = Standing { period_name: span.name.clone(), used, limit, at };
            }
            return;
        }
        if standings.len() >= MAX {
            standings.clear();
        }
        let standing = Standing { period_name: span.name.clone(), used, limit, at };
        standings.insert(policy.clone(), standing);
    }

    /// How much is used at least, unless somebody reset it; `None` where nothing was heard.
    pub(crate) fn used(&self, policy: &QuotaId, span: &Span) -> Option<u64> {
        let standings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = standings.get(policy).filter(|standing| standing.period_name == span.name);
        standing.map(|standing| standing.used)
    }

    /// How much is used, if the ledger said a moment ago that `amount` does not fit.
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
        (same && fresh && !fits).then_some(standing.used)
    }

    /// Forgets what was heard of a policy that changed.
    pub(crate) fn forget(&self, policy: &QuotaId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(policy);
    }
}
