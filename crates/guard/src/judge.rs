//! One decision about several limits, penalties included.

mod refusal;

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use headgate::{Batch, Check, Cost, Decision, Key, Limit, Outcome, Verb};
use headgate_store_memory::{MemoryStore, Numbered};
use smallvec::SmallVec;

pub(crate) use self::refusal::Refusal;
use crate::{
    AddressKey, Allowance, Backend, Escalation, Ipv6Prefix, Penalties, Reason, backend::Counters,
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

/// One limit to consult about an address.
#[derive(Clone, Copy)]
pub(crate) struct AskOfAddress<'a> {
    pub(crate) prefix: &'a str,
    /// Stands for the prefix, where a number costs less than a text.
    pub(crate) space: u64,
    pub(crate) address: &'a IpAddr,
    pub(crate) ipv6: Ipv6Prefix,
    pub(crate) allowance: &'a Allowance,
}

/// A limit that is counted in memory, and whose offenders get no penalty.
pub(crate) struct QuickLimit<'a> {
    memory: &'a MemoryStore,
    limit: &'a Limit,
}

/// What becomes of somebody who need not be told more.
pub(crate) enum Quick {
    Admitted,
    Denied(Box<Refusal>),
    Unknown,
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

    /// Where one can be taken for an address as quickly as that can be done: without a key's text,
    /// without a word more than is asked for.
    #[inline]
    pub(crate) fn quick<'a>(
        &'a self,
        allowance: &'a Allowance,
        escalation: Option<&Escalation>,
    ) -> Option<QuickLimit<'a>> {
        match (self.backend.counters(), allowance.limit(), escalation) {
            (Counters::Memory(memory), Some(limit), None) => Some(QuickLimit { memory, limit }),
            _ => None,
        }
    }

    /// Takes one for an address, if that takes no waiting: always in memory.
    pub(crate) fn decide_now_of_address(
        &self,
        ask: &AskOfAddress<'_>,
        escalation: Option<&Escalation>,
    ) -> Option<Ruling> {
        let text = ask.text();
        let asks = [ask.with_key(Key::new(&text).ok()?)];
        if let Err(refusal) = self.refuse_early(&asks, escalation) {
            return Some(Err(refusal));
        }
        let Counters::Memory(memory) = self.backend.counters() else {
            return None;
        };
        let outcome = memory.acquire_numbered(ask.subject(), asks[0].allowance.limit()?, Cost::ONE);
        Some(self.conclude(&asks, &[outcome.ok()?], escalation))
    }

    /// Takes one for an address.
    pub(crate) async fn decide_of_address(
        &self,
        ask: &AskOfAddress<'_>,
        escalation: Option<&Escalation>,
    ) -> Ruling {
        if let Some(ruling) = self.decide_now_of_address(ask, escalation) {
            return ruling;
        }
        let text = ask.text();
        // A prefix of plain words before an address is a key.
        let Ok(key) = Key::new(&text) else {
            return Ok(None);
        };
        self.decide(&[ask.with_key(key)], escalation).await
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
        for (place, ask) in asks.iter().enumerate() {
            if let Err(window) = ask.allowance.get() {
                return Err(self.refuse(ask.reason, window, place, ask.allowance));
            }
        }
        if escalation.is_none() || self.penalties.is_empty() {
            return Ok(());
        }
        let penalties = asks.iter().enumerate();
        let penalties = penalties
            .filter_map(|(place, ask)| Some((self.penalties.remaining(ask.key)?, place, ask)));
        penalties.max_by_key(|(left, ..)| *left).map_or(Ok(()), |(left, place, ask)| {
            Err(self.refuse(Reason::Penalty, left, place, ask.allowance))
        })
    }

    /// What the limit that was asked at `place` would have said.
    #[cold]
    fn refuse(
        &self,
        reason: Reason,
        retry_after: Duration,
        place: usize,
        allowance: &Allowance,
    ) -> Refusal {
        let decision = Decision {
            allowed: false,
            limit: allowance.limit().map_or(0, Limit::capacity),
            remaining: 0,
            reset_after: retry_after,
            retry_after,
            at: self.backend.time().now(),
            degraded: None,
            rule: place,
        };
        let window_secs = allowance.window_secs();
        Refusal { reason, retry_after, decision: Some(decision), window_secs }
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
        let mut decision = Decision::fold(outcomes);
        if decision.allowed {
            return Ok(Some(decision));
        }
        if let Some(escalation) = escalation {
            // Nobody is punished for what everybody did together.
            let guilty = |(ask, outcome): &(&Ask<'_>, &Outcome)| {
                !outcome.allowed && ask.reason != Reason::Global
            };
            for (ask, outcome) in asks.iter().zip(outcomes).filter(guilty) {
                let wait = self.penalties.offend(ask.key, outcome.retry_after, escalation);
                decision.retry_after = decision.retry_after.max(wait);
            }
            // During the penalty nothing is admitted, whatever the limit has left by then.
            decision.reset_after = decision.reset_after.max(decision.retry_after);
        }
        let decider = asks.get(decision.rule);
        Err(Refusal {
            reason: decider.map_or(Reason::Global, |ask| ask.reason),
            retry_after: decision.retry_after,
            decision: Some(decision),
            window_secs: decider.map_or(0, |ask| ask.allowance.window_secs()),
        })
    }
}

// === impl QuickLimit ===

impl QuickLimit<'_> {
    #[inline]
    pub(crate) fn take(&self, ask: &AskOfAddress<'_>) -> Quick {
        match self.memory.admit_numbered(ask.subject(), self.limit, Cost::ONE) {
            Ok(None) => Quick::Admitted,
            Ok(Some(outcome)) => Quick::Denied(Box::new(ask.refusal(outcome))),
            Err(_) => Quick::Unknown,
        }
    }
}

// === impl AskOfAddress ===

impl<'a> AskOfAddress<'a> {
    /// The address as a number: IPv4 by itself, IPv6 by its network.
    #[inline]
    fn subject(&self) -> Numbered {
        let number_of_v4 = |v4: Ipv4Addr| u64::from(v4.to_bits());
        let (space, number) = match self.address {
            IpAddr::V4(v4) => (self.space, number_of_v4(*v4)),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => (self.space, number_of_v4(v4)),
                None => (!self.space, self.ipv6.network(*v6)),
            },
        };
        Numbered { space, number }
    }

    fn text(&self) -> AddressKey {
        AddressKey::grouped(self.prefix, *self.address, self.ipv6)
    }

    const fn with_key(&self, key: Key<'a>) -> Ask<'a> {
        Ask { key, allowance: self.allowance, reason: Reason::Address }
    }

    #[cold]
    fn refusal(&self, outcome: Outcome) -> Refusal {
        Refusal {
            reason: Reason::Address,
            retry_after: outcome.retry_after,
            decision: Some(outcome.into()),
            window_secs: self.allowance.window_secs(),
        }
    }
}
