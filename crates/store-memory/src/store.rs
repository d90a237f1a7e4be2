//! The store: finds the shards of a batch and decides.

use std::{fmt, future::ready};

use headgate::{
    Batch, Check, Clock, Cost, HoldersFuture, InvalidCheck, Key, Limit, Outcome, Outcomes, Store,
    StoreFuture, SyncStore, SystemClock, Timestamp, Verb, algorithm::Meter, limit::Parameters,
};
use smallvec::SmallVec;

use crate::{
    Builder,
    fast_path::{Decided, NewSubject},
    fingerprint::{Fingerprint, Fingerprints, Shape},
    holders::Holders,
    lock::{CacheAligned, Mutex, lock},
    locked::LockedShards,
    overflow::Overflow,
    shard::Shard,
    slot::Compact,
    subject::Subject,
};

/// Keeps the state of every subject in this process.
pub struct MemoryStore<C = SystemClock> {
    pub(crate) clock: C,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) shards: Box<[CacheAligned<Mutex<Shard>>]>,
    pub(crate) overflow: Overflow,
    pub(crate) holders: Holders,
}

impl MemoryStore {
    /// Default of [`Builder::capacity`].
    pub const CAPACITY: usize = 1_000_000;

    /// Default of [`Builder::overflow_bytes`].
    pub const OVERFLOW_BYTES: usize = 32 << 20;

    /// A builder for a store with another capacity or clock.
    ///
    /// ```
    /// use headgate::{ManualClock, Timestamp};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// let clock = ManualClock::new(Timestamp::from_micros(0));
    /// let store = MemoryStore::builder().capacity(10_000).clock(clock).build();
    /// assert!(store.is_empty());
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl<C: Clock> MemoryStore<C> {
    /// Takes `cost` units for `key` if `limit` admits them.
    ///
    /// For limits that differ from call to call; otherwise see
    /// [`RateLimiter`](headgate::RateLimiter).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Cost, Key, Limit};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryStore::default();
    /// let limit = Limit::token_bucket(10, Duration::from_secs(60))?;
    /// let key = Key::new("user:42")?;
    ///
    /// assert_eq!(store.acquire(key, &limit, Cost::new(7)?)?.remaining, 3);
    /// // 7 more are denied, and nothing is taken.
    /// let denied = store.acquire(key, &limit, Cost::new(7)?)?;
    /// assert!(!denied.allowed && denied.remaining == 3);
    /// // More than the limit can never be admitted.
    /// assert!(store.acquire(key, &limit, Cost::new(11)?).is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn acquire(
        &self,
        key: Key<'_>,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, InvalidCheck> {
        if let Some((bucket, shape)) = Shape::of_bucket(limit)
            && cost.get() <= bucket.capacity()
        {
            match self.take(bucket, self.fingerprints.of(key, shape), cost) {
                Ok(decided) => return Ok(decided.outcome(bucket, cost)),
                Err(new) => {
                    if let Some(outcome) = new.acquire(bucket, cost) {
                        return Ok(outcome);
                    }
                }
            }
        }
        // Unwrapped and wrapped again, so that the outcome of the fast path stays in registers.
        let outcome = self.acquire_slow(key, limit, cost)?;
        Ok(outcome)
    }

    /// Slow path, which also reports invalid checks.
    #[inline(never)]
    fn acquire_slow(
        &self,
        key: Key<'_>,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, InvalidCheck> {
        let check = Check::new(key, limit, cost)?;
        let fast = self.acquire_fast(&check);
        Ok(fast.unwrap_or_else(|| self.apply_now(Verb::Acquire, &check.into())[0]))
    }

    /// Fast path for limits whose states have a fixed size.
    #[inline]
    fn acquire_fast(&self, check: &Check<'_>) -> Option<Outcome> {
        if check.is_exact() {
            return None;
        }
        match check.limit().parameters() {
            Parameters::TokenBucket(meter) | Parameters::LeakyBucket(meter) => {
                self.acquire_by(meter, check)
            }
            Parameters::FixedWindow(meter) => self.acquire_by(meter, check),
            Parameters::SlidingWindowCounter(meter) => self.acquire_by(meter, check),
            Parameters::Calendar(meter) => self.acquire_by(meter, check),
            Parameters::SlidingWindow(_) | Parameters::Concurrency(_) => None,
        }
    }

    fn acquire_by<M: Compact>(&self, meter: &M, check: &Check<'_>) -> Option<Outcome> {
        let fingerprint = self.fingerprints.of(check.key(), Shape::of(check.limit()));
        match self.take(meter, fingerprint, check.cost()) {
            Ok(decided) => Some(decided.outcome(meter, check.cost())),
            Err(new) => new.acquire(meter, check.cost()),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "calls are a fifth of the cost of a decision")]
    pub(crate) fn take<M: Compact>(
        &self,
        meter: &M,
        fingerprint: Fingerprint,
        cost: Cost,
    ) -> Result<Decided<M::State>, NewSubject<'_>> {
        let clock = self.clock.now();
        let mut shard = lock(&self.shards[self.shard_of(fingerprint)].0);
        let now = shard.tick(clock);
        match shard.acquire(meter, fingerprint, cost, now) {
            Some((state, allowed)) => Ok(Decided { state, allowed, now }),
            None => Err(NewSubject { overflow: &self.overflow, shard, fingerprint, now }),
        }
    }

    /// Applies `verb` to every check of `batch`, all or nothing, without waiting.
    ///
    /// [`Batch`] has an example.
    pub fn apply_now(&self, verb: Verb, batch: &Batch<'_>) -> Outcomes {
        let checks = batch.checks();
        let fingerprints: SmallVec<[Fingerprint; 2]> = checks
            .iter()
            .map(|check| self.fingerprints.of(check.key(), Shape::of(check.limit())))
            .collect();
        if let ([check], [fingerprint]) = (checks, &fingerprints[..])
            && verb != Verb::Reset
            // Holders are counted for the whole store.
            && check.limit().places().is_none()
            && let Some(outcome) = self.decide_heavy(*fingerprint, check, verb)
        {
            return outcome.into();
        }
        self.apply_to(verb, checks, &fingerprints)
    }

    /// Fast path for a subject with reservations or grants.
    fn decide_heavy(
        &self,
        fingerprint: Fingerprint,
        check: &Check<'_>,
        verb: Verb,
    ) -> Option<Outcome> {
        let clock = self.clock.now();
        let mut shard = lock(&self.shards[self.shard_of(fingerprint)].0);
        let now = shard.tick(clock);
        shard.decide_heavy(fingerprint, check, verb, now)
    }

    /// Applies `verb` to `checks`, whose subjects have these fingerprints.
    pub(crate) fn apply_to(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
        fingerprints: &[Fingerprint],
    ) -> Outcomes {
        let clock = self.clock.now();
        let mut locked = LockedShards::lock(self, fingerprints);
        let now = locked.tick(clock);

        let mut subjects: SmallVec<[Subject; 2]> = SmallVec::with_capacity(checks.len());
        for (check, fingerprint) in checks.iter().zip(fingerprints) {
            subjects.push(locked.take(self, verb, check, *fingerprint, now));
        }
        let permits = |(check, subject): (&Check<'_>, &Subject)| subject.permits(check, verb, now);
        let allowed: SmallVec<[bool; 2]> = checks.iter().zip(&subjects).map(permits).collect();
        let all_allowed = checks
            .iter()
            .zip(&allowed)
            .all(|(check, allowed)| *allowed || !check.mode().can_block());

        let mut outcomes = Outcomes::new();
        for ((check, mut subject), allowed) in checks.iter().zip(subjects).zip(allowed) {
            let takes = check.mode().takes(allowed, all_allowed);
            let grant = subject.act(&self.overflow, check, verb, now, takes);
            outcomes.push(subject.outcome(check, verb, now, allowed).with_grant(grant));
            locked.put(self, subject, check.limit(), now);
        }
        outcomes
    }

    /// Number of slots in use, out of [`Builder::capacity`]. A subject takes one, or as many as its
    /// log has entries; a reservation takes one while it is pending or remembered.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    /// Returns `true` if no slot is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of decisions that were made by the sketch, because the store was full.
    pub fn overflowed(&self) -> u64 {
        self.overflow.decisions()
    }

    /// Frees places whose leases have ended, where no other call is deciding.
    pub(crate) fn sweep_places(&self, now: Timestamp) {
        if self.holders.sweep_is_due(now) {
            for shard in &self.shards {
                if let Some(mut shard) = shard.0.try_lock() {
                    shard.sweep_heavy(now);
                }
            }
        }
    }

    #[inline]
    pub(crate) fn shard_of(&self, fingerprint: Fingerprint) -> usize {
        fingerprint.get() as usize & (self.shards.len() - 1)
    }
}

impl<C: Clock> Store for MemoryStore<C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        let fast = match (verb, batch.checks()) {
            (Verb::Acquire, [check]) if !check.mode().is_read_only() => self.acquire_fast(check),
            _ => None,
        };
        let outcomes = fast.map(Outcomes::from);
        StoreFuture::ready(Ok(outcomes.unwrap_or_else(|| self.apply_now(verb, batch))))
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        Box::pin(ready(Ok(self.list_holders(&check, max))))
    }
}

impl<C: Clock> SyncStore for MemoryStore<C> {
    fn apply_now(&self, verb: Verb, batch: &Batch<'_>) -> Outcomes {
        MemoryStore::apply_now(self, verb, batch)
    }

    #[inline]
    fn apply_one(&self, verb: Verb, check: Check<'_>) -> Outcome {
        if verb == Verb::Acquire
            && !check.mode().is_read_only()
            && check.place().is_none()
            && !check.is_exact()
            && let Ok(outcome) = self.acquire(check.key(), check.limit(), check.cost())
        {
            return outcome;
        }
        MemoryStore::apply_now(self, verb, &check.into())[0]
    }
}

impl<C> fmt::Debug for MemoryStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}
