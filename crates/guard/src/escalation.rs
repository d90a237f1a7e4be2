//! Penalties for clients that are denied repeatedly.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{Clock, Timestamp};
use thiserror::Error;

/// Exponential penalties for clients that are denied repeatedly.
///
/// A denial starts a penalty, during which every request of the client is denied. The first penalty
/// lasts `first`, and each further one twice as long as the one before, up to `max`; none ends
/// before the limit itself would admit. Requests during a penalty do not extend it: a client that
/// waits as long as `Retry-After` says is admitted. Every `forgiven_after` without an offence
/// undoes one doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    first: Duration,
    max: Duration,
    forgiven_after: Duration,
}

/// Invalid durations of an [`Escalation`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EscalationError {
    /// The first penalty is zero, or longer than the longest.
    #[error(
        "penalties must start above 0 and end at or above their start, got {first:?} to {max:?}"
    )]
    Range {
        /// The first penalty.
        first: Duration,
        /// The longest penalty.
        max: Duration,
    },
    /// Offences would be forgiven at once.
    #[error("forgiven_after must be longer than 0")]
    Forgiven,
}

/// Penalties of offending keys, in bounded memory.
///
/// When full, further offenders get no penalty beyond the limit itself; no penalty is evicted
/// early.
pub struct Penalties {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    per_shard: usize,
    len: AtomicUsize,
}

/// Offenders behind one lock.
#[derive(Debug, Default)]
struct Shard {
    records: HashMap<u64, Record>,
    /// Earliest time of the next eviction.
    next_eviction: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// Offences that are not forgiven.
    offences: u32,
    /// End of the last penalty.
    until: Timestamp,
    /// Time when all offences are forgiven.
    forgiven: Timestamp,
}

/// Minimum time between two evictions in a shard.
const EVICTION_INTERVAL: Duration = Duration::from_millis(100);

// === impl Escalation ===

impl Escalation {
    /// Penalties from `first` to `max`; every `forgiven_after` undoes one doubling.
    pub fn new(
        first: Duration,
        max: Duration,
        forgiven_after: Duration,
    ) -> Result<Self, EscalationError> {
        if first.is_zero() || max < first {
            return Err(EscalationError::Range { first, max });
        }
        if forgiven_after.is_zero() {
            return Err(EscalationError::Forgiven);
        }
        Ok(Self { first, max, forgiven_after })
    }

    /// Length of the penalty for this many offences.
    pub fn penalty(&self, offences: u32) -> Duration {
        let doublings = offences.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }

    /// Offences after which the penalty no longer grows. Counting more would only delay
    /// forgiveness.
    fn max_offences(&self) -> u32 {
        (1..=32).find(|offences| self.penalty(*offences) == self.max).unwrap_or(32)
    }
}

// === impl Penalties ===

impl Penalties {
    /// Default number of offenders.
    pub const CAPACITY: usize = 65_536;

    const SHARDS: usize = 16;

    /// Keeps the penalties of at most `capacity` offenders.
    pub fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            hasher: RandomState::new(),
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            per_shard: capacity.div_ceil(Self::SHARDS).max(1),
            len: AtomicUsize::new(0),
        }
    }

    /// Remaining time of the penalty of `key`.
    pub fn remaining(&self, key: impl std::hash::Hash) -> Option<Duration> {
        // Costs nothing while there are no penalties.
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        let fingerprint = self.hasher.hash_one(key);
        let record = self.shard(fingerprint).records.get(&fingerprint).copied()?;
        let left = record.until.since(self.clock.now());
        (left > 0).then(|| Duration::from_micros(left))
    }

    /// Records that `key` was denied and could be admitted after `retry_after`. Returns its wait,
    /// penalty included.
    pub fn offend(
        &self,
        key: impl std::hash::Hash,
        retry_after: Duration,
        escalation: &Escalation,
    ) -> Duration {
        let now = self.clock.now();
        let fingerprint = self.hasher.hash_one(key);
        let mut shard = self.shard(fingerprint);
        let known = shard.records.get(&fingerprint).copied();
        if known.is_none() && !self.has_room(&mut shard, now) {
            return retry_after;
        }
        let record = Record::after(known, retry_after, escalation, now);
        if shard.records.insert(fingerprint, record).is_none() {
            self.len.fetch_add(1, Relaxed);
        }
        Duration::from_micros(record.until.since(now))
    }

    /// Number of offenders.
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Returns `true` if there are no offenders.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if there is room for an offender. If not, evicts those whose offences are
    /// forgiven.
    fn has_room(&self, shard: &mut Shard, now: Timestamp) -> bool {
        if shard.records.len() < self.per_shard {
            return true;
        }
        // During a flood, not every offender may cause a scan.
        if now < shard.next_eviction {
            return false;
        }
        let before = shard.records.len();
        shard.records.retain(|_, record| record.forgiven > now);
        self.len.fetch_sub(before - shard.records.len(), Relaxed);
        shard.next_eviction = now + EVICTION_INTERVAL;
        shard.records.len() < self.per_shard
    }

    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[fingerprint as usize % Self::SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Penalties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Penalties").field("len", &self.len()).finish_non_exhaustive()
    }
}

// === impl Record ===

impl Record {
    fn after(
        known: Option<Self>,
        retry_after: Duration,
        escalation: &Escalation,
        now: Timestamp,
    ) -> Self {
        // Concurrent denials are one offence.
        if let Some(record) = known
            && record.until > now
        {
            return Self { until: record.until.max(now + retry_after), ..record };
        }
        let offences = known.map_or(0, |record| record.left(escalation, now));
        let offences = (offences + 1).min(escalation.max_offences());
        let until = now + escalation.penalty(offences).max(retry_after);
        let forgiven = until + escalation.forgiven_after.saturating_mul(offences);
        Self { offences, until, forgiven }
    }

    /// Offences that are not forgiven at `now`.
    fn left(&self, escalation: &Escalation, now: Timestamp) -> u32 {
        let forgiven_after = (escalation.forgiven_after.as_micros() as u64).max(1);
        let forgiven = now.since(self.until) / forgiven_after;
        self.offences.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}
