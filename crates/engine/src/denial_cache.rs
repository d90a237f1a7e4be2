//! The denials that a store gave, remembered until their time is up.

mod table;

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hash, Hasher},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::{Batch, Check, Cost, Key, Limit, Outcome, Verb, limit::Parameters};

use self::table::{Entry, Table};

/// The denials that a store gave, each until its `retry_after` has passed.
///
/// A denial of cost `c` means that nothing of cost `c` or more is admitted before then, so that it
/// can be repeated without asking the store. It says nothing about a smaller cost, or about another
/// limit under the same key. An admission, a reset, a refund or a cancelled reservation ends it.
///
/// Memory is bounded: at most [`CAPACITY`](Self::CAPACITY) denials, 3 MiB, of which an instance
/// that denies nothing takes none. Past that, the denials that end first are forgotten first.
/// Subjects are known by a hash under a secret of this instance.
///
/// Times are microseconds of [`Clock::steady`](crate::Clock::steady): the store's wait counts from
/// when its answer arrived, and setting the machine's clock does not change it.
pub struct DenialCache {
    secret: RandomState,
    table: Table,
    /// When the last of them ends; nothing is looked up after that.
    latest: AtomicU64,
}

/// A denial that still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// How long until the same cost may be admitted.
    pub retry_after: Duration,
    /// How long until the subject has all of its allowance again.
    pub reset_after: Duration,
}

impl DenialCache {
    /// How many are remembered at most.
    pub const CAPACITY: usize = Table::SLOTS;

    /// Remembers none yet.
    pub fn new() -> Self {
        Self { secret: RandomState::new(), table: Table::new(), latest: AtomicU64::new(0) }
    }

    /// Learns from the store's own answer to `verb`, which arrived at `now`.
    pub fn learn(&self, verb: Verb, batch: &Batch<'_>, outcomes: &[Outcome], now: u64) {
        for (check, outcome) in batch.checks().iter().zip(outcomes) {
            match verb {
                Verb::Commit(_) => {}
                Verb::Cancel(_) | Verb::Refund | Verb::Reset => self.forget(check.key()),
                Verb::Peek | Verb::Acquire | Verb::Reserve { .. } if outcome.allowed => {
                    self.disprove(check, outcome, now);
                }
                Verb::Peek | Verb::Acquire | Verb::Reserve { .. } => {
                    self.note(check, outcome, now);
                }
            }
        }
    }

    /// Returns the denial that answers `check` at `now`, the longest if there are several.
    pub fn find(&self, check: &Check<'_>, now: u64) -> Option<Denial> {
        if self.is_idle(now) {
            return None;
        }
        let (limit, cost) = (self.tag(check.limit()), check.cost().get());
        let entry = self.table.longest(self.fingerprint(check.key()), now, |entry| {
            entry.limit == limit && entry.cost <= cost
        })?;
        let left = |until: u64| Duration::from_micros(until.saturating_sub(now));
        Some(Denial { retry_after: left(entry.until), reset_after: left(entry.reset) })
    }

    /// Forgets what was denied to `key`, under every limit.
    pub fn forget(&self, key: Key<'_>) {
        if self.latest.load(Relaxed) != 0 {
            self.table.remove(self.fingerprint(key), |_| true);
        }
    }

    /// Whether none is remembered that still holds: then an admission has nothing to look up.
    #[inline]
    pub fn is_idle(&self, now: u64) -> bool {
        self.latest.load(Relaxed) <= now
    }

    fn note(&self, check: &Check<'_>, outcome: &Outcome, now: u64) {
        let cost = check.cost();
        if outcome.degraded.is_some() || !denies_cost(outcome, cost) {
            return;
        }
        let until = after(now, outcome.retry_after);
        let entry = Entry {
            fingerprint: self.fingerprint(check.key()),
            limit: self.tag(check.limit()),
            cost: cost.get(),
            until,
            reset: after(now, outcome.reset_after),
            at: outcome.at.as_micros(),
        };
        self.table.insert(entry, now);
        self.latest.fetch_max(until, Relaxed);
    }

    /// A store that admits a cost has room for it, whatever it said before.
    fn disprove(&self, check: &Check<'_>, outcome: &Outcome, now: u64) {
        if self.is_idle(now) || outcome.degraded.is_some() {
            return;
        }
        let (cost, at) = (check.cost().get(), outcome.at.as_micros());
        // Answers overtake each other: one that the store gave before the denial says nothing.
        let disproved = |entry: &Entry| entry.cost <= cost && entry.at <= at;
        self.table.remove(self.fingerprint(check.key()), disproved);
    }

    /// A key is its text, however that is divided into parts.
    fn fingerprint(&self, key: Key<'_>) -> u64 {
        let mut hasher = self.secret.build_hasher();
        key.parts().iter().for_each(|part| hasher.write(part.as_bytes()));
        hasher.finish()
    }

    /// Tells limits apart: what one denied, another may have room for.
    fn tag(&self, limit: &Limit) -> u64 {
        let mut hasher = self.secret.build_hasher();
        limit.algorithm().hash(&mut hasher);
        (limit.capacity(), limit.window()).hash(&mut hasher);
        match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                bucket.rate().hash(&mut hasher);
            }
            Parameters::Calendar(calendar) => {
                calendar.period().hash(&mut hasher);
                calendar.zone.name().hash(&mut hasher);
            }
            Parameters::SlidingWindow(_)
            | Parameters::SlidingWindowCounter(_)
            | Parameters::FixedWindow(_) => {}
        }
        hasher.finish()
    }
}

impl Default for DenialCache {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DenialCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenialCache").finish_non_exhaustive()
    }
}

/// Whether it is the limit that has no room: a reservation is also refused where too many are
/// pending, which says nothing about the cost.
const fn denies_cost(outcome: &Outcome, cost: Cost) -> bool {
    outcome.remaining < cost.get()
}

fn after(now: u64, wait: Duration) -> u64 {
    now.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
