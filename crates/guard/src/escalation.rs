//! Those who are denied again and again wait longer.

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

/// How much longer those wait who are denied again and again.
///
/// A denial opens a penalty, in which everything is denied. It lasts for the first time as long as
/// `first`, twice as long at each further offence, at most `max`, and never ends before the limit
/// itself would admit. What is denied during a penalty does not make it longer: whoever waits as
/// long as they were told is admitted. Every `forgiven_after` without an offence takes one
/// doubling back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escalation {
    first: Duration,
    max: Duration,
    forgiven_after: Duration,
}

/// Why durations are no escalation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum EscalationError {
    /// A penalty that nobody notices, or that shrinks.
    #[error(
        "penalties must start above 0 and end at or above their start, got {first:?} to {max:?}"
    )]
    Range {
        /// The first penalty.
        first: Duration,
        /// The longest penalty.
        max: Duration,
    },
    /// Nobody would be punished twice.
    #[error("penalties must be remembered for longer than 0")]
    Forgiven,
}

/// Who is being punished, within bounds.
///
/// Once as many are remembered as fit, nobody new is punished beyond the limit itself; nobody's
/// penalty is forgotten for the sake of another's.
pub struct Penalties {
    clock: Arc<dyn Clock>,
    hasher: RandomState,
    shards: Box<[Mutex<HashMap<u64, Record>>]>,
    per_shard: usize,
    len: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// How many offences are not forgiven.
    offences: u32,
    /// When the last penalty ends.
    until: Timestamp,
    /// When nothing is left of it.
    spent: Timestamp,
}

// === impl Escalation ===

impl Escalation {
    /// Penalties from `first` to `max`; one doubling is taken back every `forgiven_after`.
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

    /// How long the penalty for this many offences is.
    pub fn penalty(&self, offences: u32) -> Duration {
        let doublings = offences.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }

    /// As many as double anything; more would only take longer to be forgiven.
    fn most_offences(&self) -> u32 {
        (1..=32).find(|offences| self.penalty(*offences) == self.max).unwrap_or(32)
    }
}

// === impl Penalties ===

impl Penalties {
    /// How many offenders are remembered unless said.
    pub const CAPACITY: usize = 65_536;

    const SHARDS: usize = 16;

    /// Remembers at most `capacity` offenders, by this clock.
    pub fn new(capacity: usize, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            hasher: RandomState::new(),
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            per_shard: capacity.div_ceil(Self::SHARDS).max(1),
            len: AtomicUsize::new(0),
        }
    }

    /// How much longer the penalty of `key` lasts.
    pub fn remaining(&self, key: impl std::hash::Hash) -> Option<Duration> {
        // Where nobody is being punished, nobody pays for it.
        if self.len.load(Relaxed) == 0 {
            return None;
        }
        let fingerprint = self.hasher.hash_one(key);
        let record = self.shard(fingerprint).get(&fingerprint).copied()?;
        let left = record.until.since(self.clock.now());
        (left > 0).then(|| Duration::from_micros(left))
    }

    /// Notes that `key` was denied and would be admitted after `retry_after`; says how long it waits now.
    pub fn offend(
        &self,
        key: impl std::hash::Hash,
        retry_after: Duration,
        escalation: &Escalation,
    ) -> Duration {
        let now = self.clock.now();
        let fingerprint = self.hasher.hash_one(key);
        let mut shard = self.shard(fingerprint);
        let known = shard.get(&fingerprint).copied();
        if known.is_none() && !self.has_room(&mut shard, now) {
            return retry_after;
        }
        let record = Record::after(known, retry_after, escalation, now);
        if shard.insert(fingerprint, record).is_none() {
            self.len.fetch_add(1, Relaxed);
        }
        Duration::from_micros(record.until.since(now))
    }

    /// How many offenders are remembered.
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Whether nobody is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets whoever has nothing left to forgive, if there is no room otherwise.
    fn has_room(&self, shard: &mut HashMap<u64, Record>, now: Timestamp) -> bool {
        if shard.len() < self.per_shard {
            return true;
        }
        let before = shard.len();
        shard.retain(|_, record| record.spent > now);
        self.len.fetch_sub(before - shard.len(), Relaxed);
        shard.len() < self.per_shard
    }

    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, HashMap<u64, Record>> {
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
        // Two who were denied at the same moment offended once.
        if let Some(record) = known
            && record.until > now
        {
            return Self { until: record.until.max(now + retry_after), ..record };
        }
        let offences = known.map_or(0, |record| record.left(escalation, now));
        let offences = (offences + 1).min(escalation.most_offences());
        let until = now + escalation.penalty(offences).max(retry_after);
        let spent = until + escalation.forgiven_after.saturating_mul(offences);
        Self { offences, until, spent }
    }

    /// The offences that are not forgiven yet.
    fn left(&self, escalation: &Escalation, now: Timestamp) -> u32 {
        let forgiven_after = (escalation.forgiven_after.as_micros() as u64).max(1);
        let forgiven = now.since(self.until) / forgiven_after;
        self.offences.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}
