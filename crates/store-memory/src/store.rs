//! Picks shards and locks them in order.

use std::{fmt, hint, thread, time::Duration};

use headgate::{
    Batch, Check, Clock, Cost, InvalidCheck, Key, Limit, Outcome, Outcomes, Store, StoreFuture,
    SyncStore, SystemClock, Timestamp, Verb, algorithm::Meter, limit::Parameters,
};
use smallvec::SmallVec;
use spin::{
    mutex::spin::{SpinMutex, SpinMutexGuard},
    relax::Yield,
};

use crate::{
    fingerprint::{Fingerprint, Fingerprints, Shape},
    locked::{Locked, Subject},
    overflow::Overflow,
    shard::Shard,
    slot::Compact,
};

/// Keeps subjects' states in this process.
pub struct MemoryStore<C = SystemClock> {
    clock: C,
    pub(crate) fingerprints: Fingerprints,
    pub(crate) shards: Box<[Line<Mutex<Shard>>]>,
    pub(crate) overflow: Overflow,
}

/// Makes a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<C = SystemClock> {
    capacity: usize,
    overflow_bytes: usize,
    clock: C,
}

/// A lock is held for some tens of nanoseconds, less than it takes to put a waiting
/// thread to sleep. Releasing this one is a plain store, and who waits yields.
pub(crate) type Mutex<T> = SpinMutex<T, Yield>;
pub(crate) type Guard<'a, T> = SpinMutexGuard<'a, T, Yield>;

/// Keeps neighbours' locks out of each other's cache lines.
#[repr(align(128))]
pub(crate) struct Line<T>(pub(crate) T);

/// How a subject stands after a decision. What that means for the caller is nobody else's
/// business: it is worked out when the lock is free again.
pub(crate) struct Taken<S> {
    state: S,
    allowed: bool,
    now: Timestamp,
}

/// A subject that the table does not have, and its shard, which is locked.
pub(crate) struct Absent<'s> {
    overflow: &'s Overflow,
    shard: Guard<'s, Shard>,
    fingerprint: Fingerprint,
    now: Timestamp,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// The default capacity.
    pub const CAPACITY: usize = 1_000_000;

    /// The default of [`Builder::overflow_bytes`].
    pub const OVERFLOW_BYTES: usize = 32 << 20;

    /// Makes a store with another capacity or clock.
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
        Builder {
            capacity: Self::CAPACITY,
            overflow_bytes: Self::OVERFLOW_BYTES,
            clock: SystemClock::new(),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl<C: Clock> MemoryStore<C> {
    /// Takes `cost` from `key`'s allowance if it fits: the direct call for embedding.
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
    /// // 7 more do not fit, and nothing is taken.
    /// let denied = store.acquire(key, &limit, Cost::new(7)?)?;
    /// assert!(!denied.allowed && denied.remaining == 3);
    /// // More than the limit never fits.
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
                Ok(taken) => return Ok(taken.outcome(bucket, cost)),
                Err(absent) => {
                    if let Some(outcome) = absent.take_first(bucket, cost) {
                        return Ok(outcome);
                    }
                }
            }
        }
        // Taken apart and put together again, so that the short way's answer stays in registers.
        let outcome = self.acquire_slowly(key, limit, cost)?;
        Ok(outcome)
    }

    /// The long way, which also says what is wrong with a check.
    #[inline(never)]
    fn acquire_slowly(
        &self,
        key: Key<'_>,
        limit: &Limit,
        cost: Cost,
    ) -> Result<Outcome, InvalidCheck> {
        let check = Check::new(key, limit, cost)?;
        let known = self.acquire_quickly(&check);
        Ok(known.unwrap_or_else(|| self.apply_now(Verb::Acquire, &check.into())[0]))
    }

    /// The short way, for limits whose states have a fixed size.
    #[inline]
    fn acquire_quickly(&self, check: &Check<'_>) -> Option<Outcome> {
        match check.limit().parameters() {
            Parameters::TokenBucket(meter) | Parameters::LeakyBucket(meter) => {
                self.acquire_by(meter, check)
            }
            Parameters::FixedWindow(meter) => self.acquire_by(meter, check),
            Parameters::SlidingWindowCounter(meter) => self.acquire_by(meter, check),
            Parameters::Calendar(meter) => self.acquire_by(meter, check),
            Parameters::SlidingWindow(_) => None,
        }
    }

    fn acquire_by<M: Compact>(&self, meter: &M, check: &Check<'_>) -> Option<Outcome> {
        let fingerprint = self.fingerprints.of(check.key(), Shape::of(check.limit()));
        match self.take(meter, fingerprint, check.cost()) {
            Ok(taken) => Some(taken.outcome(meter, check.cost())),
            Err(absent) => absent.take_first(meter, check.cost()),
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a fifth of a decision is calling the parts of it")]
    pub(crate) fn take<M: Compact>(
        &self,
        meter: &M,
        fingerprint: Fingerprint,
        cost: Cost,
    ) -> Result<Taken<M::State>, Absent<'_>> {
        let clock = self.clock.now();
        let mut shard = lock(&self.shards[self.shard_of(fingerprint)].0);
        let now = shard.tick(clock);
        match shard.acquire(meter, fingerprint, cost, now) {
            Some((state, allowed)) => Ok(Taken { state, allowed, now }),
            None => Err(Absent { overflow: &self.overflow, shard, fingerprint, now }),
        }
    }

    /// Does `verb` to every check of `batch`, all or nothing, without waiting for anything.
    ///
    /// [`Batch`] has an example.
    pub fn apply_now(&self, verb: Verb, batch: &Batch<'_>) -> Outcomes {
        let checks = batch.checks();
        let fingerprints: SmallVec<[Fingerprint; 2]> = checks
            .iter()
            .map(|check| self.fingerprints.of(check.key(), Shape::of(check.limit())))
            .collect();
        self.apply_to(verb, checks, &fingerprints)
    }

    /// Does `verb` to every one of `checks`, whose subjects have these fingerprints.
    pub(crate) fn apply_to(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
        fingerprints: &[Fingerprint],
    ) -> Outcomes {
        let clock = self.clock.now();
        let mut locked = Locked::lock(self, fingerprints);
        let now = locked.tick(clock);

        let mut subjects: SmallVec<[Subject; 2]> = SmallVec::with_capacity(checks.len());
        for (check, fingerprint) in checks.iter().zip(fingerprints) {
            subjects.push(locked.take(self, verb, check.limit(), *fingerprint, now));
        }
        let permits = |(check, subject): (&Check<'_>, &Subject)| subject.permits(check, verb, now);
        let allowed: SmallVec<[bool; 2]> = checks.iter().zip(&subjects).map(permits).collect();
        let all_allowed =
            checks.iter().zip(&allowed).all(|(check, room)| *room || !check.mode().can_block());

        let mut outcomes = Outcomes::new();
        for ((check, mut subject), allowed) in checks.iter().zip(subjects).zip(allowed) {
            let takes = check.mode().takes(allowed, all_allowed);
            subject.act(&self.overflow, check, verb, now, takes);
            outcomes.push(subject.outcome(check, verb, now, allowed));
            locked.put(self, subject, check.limit(), now);
        }
        outcomes
    }

    /// How many slots are in use, of [`Builder::capacity`]. A subject takes one, or
    /// as many as its log has entries; a reservation takes one while it is pending.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many decisions were about new keys that had to share because the store was full.
    pub fn overflowed(&self) -> u64 {
        self.overflow.decisions()
    }

    #[inline]
    pub(crate) fn shard_of(&self, fingerprint: Fingerprint) -> usize {
        fingerprint.get() as usize & (self.shards.len() - 1)
    }
}

impl<C: Clock> Store for MemoryStore<C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        let known = match (verb, batch.checks()) {
            (Verb::Acquire, [check]) if !check.mode().is_read_only() => self.acquire_quickly(check),
            _ => None,
        };
        let outcomes = known.map(Outcomes::from);
        StoreFuture::ready(Ok(outcomes.unwrap_or_else(|| self.apply_now(verb, batch))))
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

// === impl Taken ===

impl<S> Taken<S> {
    #[inline]
    pub(crate) const fn is_allowed(&self) -> bool {
        self.allowed
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a fifth of a decision is calling the parts of it")]
    pub(crate) fn outcome<M: Meter<State = S>>(&self, meter: &M, cost: Cost) -> Outcome {
        let Self { state, allowed, now } = self;
        if *allowed || cost != Cost::ONE {
            return Outcome::of(meter, state, cost, *now, *allowed);
        }
        // If a single unit is denied, none is left: there is nothing to compute.
        let reset_after = Duration::from_micros(meter.reset_after(state, *now));
        let retry_after = Duration::from_micros(meter.retry_after(state, cost, *now));
        Outcome::denial(meter.capacity(), 0, reset_after, retry_after, *now)
    }
}

// === impl Absent ===

impl Absent<'_> {
    /// Decides for the subject, if there is room for it; `None` sends it the long way.
    #[inline(never)]
    pub(crate) fn take_first<M: Compact>(mut self, meter: &M, cost: Cost) -> Option<Outcome> {
        // It may have used something while there was no room for it.
        if self.overflow.is_live(self.now) {
            return None;
        }
        let first = self.shard.acquire_first(meter, self.fingerprint, cost, self.now);
        let (state, allowed) = first?;
        drop(self.shard);
        Some(Taken { state, allowed, now: self.now }.outcome(meter, cost))
    }
}

// === impl Builder ===

impl<C: Clock> Builder<C> {
    /// The fewest subjects worth a lock of their own.
    const MIN_PER_SHARD: usize = 1024;

    /// How many slots there are: see [`MemoryStore::len`]. From 1 to a billion.
    pub fn capacity(self, capacity: usize) -> Self {
        Self { capacity: capacity.clamp(1, 1_000_000_000), ..self }
    }

    /// Memory for telling new keys apart while the store is full: 4 KiB to 1 GiB. An eighth of it is
    /// allocated for each group of limits whose new keys find no room.
    ///
    /// A new key is denied by mistake with a probability of at most `(n / (limit * width))^4`, where
    /// `n` is what new keys took within the limit's window and `width` is the bytes over 256.
    pub fn overflow_bytes(self, bytes: usize) -> Self {
        Self { overflow_bytes: bytes.clamp(4 << 10, 1 << 30), ..self }
    }

    /// The clock to ask.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        let Self { capacity, overflow_bytes, .. } = self;
        Builder { capacity, overflow_bytes, clock }
    }

    /// Makes the store.
    pub fn build(self) -> MemoryStore<C> {
        let threads = thread::available_parallelism().map_or(8, usize::from);
        let wanted = (threads * 32).next_power_of_two();
        let most = (self.capacity / Self::MIN_PER_SHARD).max(1);
        let count = wanted.min((most + 1).next_power_of_two() / 2).max(1);
        let capacity = self.capacity.div_ceil(count);
        MemoryStore {
            clock: self.clock,
            fingerprints: Fingerprints::default(),
            shards: (0..count).map(|_| Line(Mutex::new(Shard::new(capacity)))).collect(),
            overflow: Overflow::new(self.overflow_bytes),
        }
    }
}

/// Whoever holds the lock is almost done: waiting a moment is cheaper than to yield.
#[inline]
fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    mutex.try_lock().unwrap_or_else(|| wait_for(mutex))
}

#[cold]
fn wait_for<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    const MOMENTS: usize = 1;
    for _ in 0..MOMENTS {
        hint::spin_loop();
        if !mutex.is_locked()
            && let Some(guard) = mutex.try_lock()
        {
            return guard;
        }
    }
    mutex.lock()
}
