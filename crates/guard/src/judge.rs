//! One decision about several limits, penalties included.

use std::time::Duration;

use headgate::{Batch, Check, Cost, Decision, Key, Outcome, Verb};
use smallvec::SmallVec;

use crate::{
    Allowance, Backend, Denied, Escalation, Penalties, Reason, Surface, backend::Counters,
};

/// Asks the backend, and remembers who was denied.
#[derive(Debug)]
pub(crate) struct Judge {
    backend: Backend,
    penalties: Penalties,
}

/// One limit to consult.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) allowance: &'a Allowance,
    /// What is said if this limit denies.
    pub(crate) reason: Reason,
}

/// Limits that are decided together.
pub(crate) type Asks<'a> = SmallVec<[Ask<'a>; 2]>;

/// A denial that does not know yet where it happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    reason: Reason,
    retry_after: Duration,
    decision: Option<Decision>,
    window_secs: u64,
}

/// What was decided; nothing if there was nothing to decide.
pub(crate) type Ruling = Result<Option<Decision>, Refusal>;

// === impl Judge ===

impl Judge {
    pub(crate) fn new(backend: Backend) -> Self {
        let penalties = Penalties::new(Penalties::CAPACITY, backend.time().clone());
        Self { backend, penalties }
    }

    pub(crate) const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Takes one of everything that is asked for, or nothing.
    pub(crate) async fn decide(&self, asks: &[Ask<'_>], escalation: Option<&Escalation>) -> Ruling {
        if let Some(ruling) = self.decide_now(asks, escalation) {
            return ruling;
        }
        let Counters::Store(store) = self.backend.counters() else {
            return Ok(None);
        };
        let Some(batch) = self.batch(asks) else {
            return Ok(None);
        };
        match store.apply(Verb::Acquire, &batch).await {
            Ok(outcomes) => self.conclude(asks, &outcomes, escalation),
            Err(error) => self.backend.without_answer(&error),
        }
    }

    /// The same, if it takes no waiting: always in memory.
    #[inline]
    pub(crate) fn decide_now(
        &self,
        asks: &[Ask<'_>],
        escalation: Option<&Escalation>,
    ) -> Option<Ruling> {
        if let Err(refusal) = self.refuse_early(asks, escalation) {
            return Some(Err(refusal));
        }
        let Counters::Memory(memory) = self.backend.counters() else {
            return None;
        };
        if let [ask] = asks
            && let Some(limit) = ask.allowance.limit()
            && let Ok(outcome) = memory.acquire(ask.key, limit, Cost::ONE)
        {
            if outcome.allowed {
                return Some(Ok(Some(outcome.into())));
            }
            return Some(self.conclude(asks, &[outcome], escalation));
        }
        let ruling = self.batch(asks).map_or(Ok(None), |batch| {
            self.conclude(asks, &memory.apply_now(Verb::Acquire, &batch), escalation)
        });
        Some(ruling)
    }

    /// Denies what no store has to be asked about.
    #[inline]
    fn refuse_early(
        &self,
        asks: &[Ask<'_>],
        escalation: Option<&Escalation>,
    ) -> Result<(), Refusal> {
        for ask in asks {
            if let Err(window) = ask.allowance.get() {
                return Err(Refusal::new(ask.reason, window));
            }
        }
        if escalation.is_none() || self.penalties.is_empty() {
            return Ok(());
        }
        let left = asks.iter().filter_map(|ask| self.penalties.remaining(ask.key)).max();
        left.map_or(Ok(()), |left| Err(Refusal::new(Reason::Penalty, left)))
    }

    fn batch<'a>(&self, asks: &[Ask<'a>]) -> Option<Batch<'a>> {
        let check = |ask: &Ask<'a>| -> Option<Check<'a>> {
            self.backend.check(ask.key, ask.allowance.limit()?)
        };
        // The program's own words keep the keys apart, so that it can only be empty.
        Batch::new(asks.iter().filter_map(check)).ok()
    }

    fn conclude(
        &self,
        asks: &[Ask<'_>],
        outcomes: &[Outcome],
        escalation: Option<&Escalation>,
    ) -> Ruling {
        if outcomes.is_empty() {
            return Ok(None);
        }
        let decision = Decision::fold(outcomes);
        if decision.allowed {
            return Ok(Some(decision));
        }
        let mut retry_after = decision.retry_after;
        if let Some(escalation) = escalation {
            // Nobody is punished for what everybody did together.
            let guilty = |(ask, outcome): &(&Ask<'_>, &Outcome)| {
                !outcome.allowed && ask.reason != Reason::Global
            };
            for (ask, outcome) in asks.iter().zip(outcomes).filter(guilty) {
                let wait = self.penalties.offend(ask.key, outcome.retry_after, escalation);
                retry_after = retry_after.max(wait);
            }
        }
        let decider = asks.get(decision.rule);
        Err(Refusal {
            reason: decider.map_or(Reason::Global, |ask| ask.reason),
            retry_after,
            decision: Some(decision),
            window_secs: decider.map_or(0, |ask| ask.allowance.window_secs()),
        })
    }
}

// === impl Refusal ===

impl Refusal {
    pub(crate) const fn new(reason: Reason, retry_after: Duration) -> Self {
        Self { reason, retry_after, decision: None, window_secs: 0 }
    }

    /// The denial at `surface`.
    pub(crate) const fn at(self, surface: Surface) -> Denied {
        let Self { reason, retry_after, decision, window_secs } = self;
        Denied { surface, reason, retry_after, decision, window_secs }
    }
}
