//! One decision over several limits, penalties included.

mod address;
mod rejection;

use std::time::Duration;

use headgate::{Batch, Check, Decision, Key, Limit, Outcome, Verb};
use smallvec::SmallVec;

pub(crate) use self::{
    address::{AddressCheck, FastLimit, FastResult},
    rejection::Rejection,
};
use crate::{Allowance, Backend, Escalation, Penalties, Reason, backend::Counters};

/// Decides by the counters of a backend, and keeps the penalties of denied clients.
#[derive(Debug)]
pub(crate) struct Decider {
    backend: Backend,
    penalties: Penalties,
}

/// One limit to check.
#[derive(Clone, Copy)]
pub(crate) struct LimitCheck<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) allowance: &'a Allowance,
    /// Reason of the denial, if this limit denies.
    pub(crate) reason: Reason,
}

/// Limits that are decided together.
pub(crate) type LimitChecks<'a> = SmallVec<[LimitCheck<'a>; 2]>;

/// A decision; `None` if there was no limit to check.
pub(crate) type CheckResult = Result<Option<Decision>, Rejection>;

impl Decider {
    pub(crate) fn new(backend: Backend) -> Self {
        let penalties = Penalties::new(Penalties::CAPACITY, backend.time().clone());
        Self { backend, penalties }
    }

    pub(crate) const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The limit of an address in the form that is checked fastest: counted in memory, without
    /// penalties.
    #[inline]
    pub(crate) fn fast<'a>(
        &'a self,
        allowance: &'a Allowance,
        escalation: Option<&Escalation>,
    ) -> Option<FastLimit<'a>> {
        match (self.backend.counters(), allowance.limit(), escalation) {
            (Counters::Memory(memory), Some(limit), None) => Some(FastLimit { memory, limit }),
            _ => None,
        }
    }

    /// Checks the limit of an address, if the answer is available without waiting. In memory it
    /// always is.
    pub(crate) fn decide_address_now(
        &self,
        check: &AddressCheck<'_>,
        escalation: Option<&Escalation>,
    ) -> Option<CheckResult> {
        let text = check.text();
        let checks = [check.with_key(Key::new(&text).ok()?)];
        if let Err(rejection) = self.reject_early(&checks, escalation) {
            return Some(Err(rejection));
        }
        let Counters::Memory(memory) = self.backend.counters() else {
            return None;
        };
        let outcome = check.acquire(memory, checks[0].allowance.limit()?)?;
        Some(self.conclude(&checks, &[outcome], escalation))
    }

    /// Checks the limit of an address.
    pub(crate) async fn decide_address(
        &self,
        check: &AddressCheck<'_>,
        escalation: Option<&Escalation>,
    ) -> CheckResult {
        if let Some(result) = self.decide_address_now(check, escalation) {
            return result;
        }
        let text = check.text();
        // Always a valid key: a prefix of plain words, and an address.
        let Ok(key) = Key::new(&text) else {
            return Ok(None);
        };
        self.decide(&[check.with_key(key)], escalation).await
    }

    /// Takes one unit from every limit, all or nothing.
    pub(crate) async fn decide(
        &self,
        checks: &[LimitCheck<'_>],
        escalation: Option<&Escalation>,
    ) -> CheckResult {
        if let Some(result) = self.decide_now(checks, escalation) {
            return result;
        }
        let Counters::Store(store) = self.backend.counters() else {
            return Ok(None);
        };
        let Some(batch) = self.batch(checks) else {
            return Ok(None);
        };
        match store.apply(Verb::Acquire, &batch).await {
            Ok(outcomes) => self.conclude(checks, &outcomes, escalation),
            Err(error) => self.backend.store_failed(&error),
        }
    }

    /// Does the same, if the answer is available without waiting. In memory it always is.
    #[inline]
    pub(crate) fn decide_now(
        &self,
        checks: &[LimitCheck<'_>],
        escalation: Option<&Escalation>,
    ) -> Option<CheckResult> {
        if let Err(rejection) = self.reject_early(checks, escalation) {
            return Some(Err(rejection));
        }
        let Counters::Memory(memory) = self.backend.counters() else {
            return None;
        };
        let result = self.batch(checks).map_or(Ok(None), |batch| {
            self.conclude(checks, &memory.apply_now(Verb::Acquire, &batch), escalation)
        });
        Some(result)
    }

    /// Denies requests that need no counter: those with an allowance of 0 or a key under a penalty.
    #[inline]
    fn reject_early(
        &self,
        checks: &[LimitCheck<'_>],
        escalation: Option<&Escalation>,
    ) -> Result<(), Rejection> {
        for (index, check) in checks.iter().enumerate() {
            if let Err(window) = check.allowance.get() {
                return Err(self.reject(check.reason, window, index, check.allowance));
            }
        }
        if escalation.is_none() || self.penalties.is_empty() {
            return Ok(());
        }
        let penalties = checks.iter().enumerate().filter_map(|(index, check)| {
            Some((self.penalties.remaining(check.key)?, index, check))
        });
        penalties.max_by_key(|(left, ..)| *left).map_or(Ok(()), |(left, index, check)| {
            Err(self.reject(Reason::Penalty, left, index, check.allowance))
        })
    }

    /// A denial by the limit at `index`, without reading its counter.
    #[cold]
    fn reject(
        &self,
        reason: Reason,
        retry_after: Duration,
        index: usize,
        allowance: &Allowance,
    ) -> Rejection {
        let limit = allowance.limit().map_or(0, Limit::capacity);
        let now = self.backend.time().now();
        let mut decision = Decision::from(Outcome::denial(limit, 0, retry_after, retry_after, now));
        decision.decided_by = index;
        let window_secs = allowance.window_secs();
        Rejection { reason, retry_after, decision: Some(decision), window_secs }
    }

    fn batch<'a>(&self, checks: &[LimitCheck<'a>]) -> Option<Batch<'a>> {
        let check = |check: &LimitCheck<'a>| -> Option<Check<'a>> {
            let extra = check.allowance.extra();
            let check = self.backend.check(check.key, check.allowance.limit()?)?;
            Some(check.with_optional_extra(extra))
        };
        // Prefixes make all keys distinct, so the only possible error is an empty batch.
        Batch::new(checks.iter().filter_map(check)).ok()
    }

    fn conclude(
        &self,
        checks: &[LimitCheck<'_>],
        outcomes: &[Outcome],
        escalation: Option<&Escalation>,
    ) -> CheckResult {
        if outcomes.is_empty() {
            return Ok(None);
        }
        let mut decision = Decision::fold(outcomes);
        self.backend.report(&decision);
        if decision.allowed {
            return Ok(Some(decision));
        }
        if let Some(escalation) = escalation {
            // A limit that all clients share penalises none of them.
            let penalised = |(check, outcome): &(&LimitCheck<'_>, &Outcome)| {
                !outcome.allowed && check.reason != Reason::Global
            };
            for (check, outcome) in checks.iter().zip(outcomes).filter(penalised) {
                let wait = self.penalties.offend(check.key, outcome.retry_after, escalation);
                decision.retry_after = decision.retry_after.max(wait);
            }
            // Nothing is admitted during the penalty, even if the limit has units left by then.
            decision.reset_after = decision.reset_after.max(decision.retry_after);
        }
        let decider = checks.get(decision.decided_by);
        Err(Rejection {
            reason: decider.map_or(Reason::Global, |check| check.reason),
            retry_after: decision.retry_after,
            decision: Some(decision),
            window_secs: decider.map_or(0, |check| check.allowance.window_secs()),
        })
    }
}
