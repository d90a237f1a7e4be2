//! A cache of denials, for outages of the store.

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

/// A cache of the denials by a store, each of which expires after its `retry_after`.
///
/// A denial of cost `c` means that nothing of cost `c` or more is admitted before then, so that it
/// can be repeated without asking the store. It says nothing about a smaller cost, or about another
/// limit under the same key. Denials by a concurrency limit are not cached. An admission, a reset, a refund or a cancelled reservation removes it.
///
/// Memory is bounded: at most [`CAPACITY`](Self::CAPACITY) denials in 3 MiB, which are allocated
/// with the first denials. Beyond that, the denials that expire first are evicted first. Subjects
/// are identified by a hash under a secret of this instance.
///
/// Times are microseconds of [`Clock::steady`](crate::Clock::steady): the store's wait counts from
/// the arrival of its answer, and setting the system's clock does not affect it.
pub struct DenialCache {
    secret: RandomState,
    table: Table,
    /// Time at which the last one expires; nothing is looked up after that.
    latest: AtomicU64,
}

/// A cached denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// Time until the same cost may be admitted.
    pub retry_after: Duration,
    /// Time until all units are available again.
    pub reset_after: Duration,
}

impl DenialCache {
    /// Maximum number of denials.
    pub const CAPACITY: usize = Table::SLOTS;

    /// An empty cache.
    pub fn new() -> Self {
        Self { secret: RandomState::new(), table: Table::new(), latest: AtomicU64::new(0) }
    }

    /// Updates the cache from the store's answer to `verb`, which arrived at `now`.
    pub fn learn(&self, verb: Verb, batch: &Batch<'_>, outcomes: &[Outcome], now: u64) {
        for (check, outcome) in batch.checks().iter().zip(outcomes) {
            match verb {
                Verb::Use { .. } => {}
                Verb::Commit(_) if check.was_spent().is_none() => {}
                Verb::Commit(_) | Verb::Cancel(_) | Verb::Refund | Verb::GiveBack | Verb::Reset => {
                    // Otherwise nothing has returned.
                    if outcome.allowed && !check.mode().is_read_only() {
                        self.forget(check.key());
                    }
                }
                Verb::Peek | Verb::Acquire | Verb::Lease | Verb::Reserve { .. } => {
                    if outcome.allowed {
                        self.disprove(check, outcome, now);
                    } else {
                        self.note(check, outcome, now);
                    }
                }
            }
        }
    }

    /// Returns the denial that applies to `check` at `now`, the longest if there are several.
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

    /// Removes the denials of `key`, under every limit.
    pub fn forget(&self, key: Key<'_>) {
        if self.latest.load(Relaxed) != 0 {
            self.table.remove(self.fingerprint(key), |_| true);
        }
    }

    /// Returns `true` if every denial has expired, so that admissions need no lookup.
    #[inline]
    pub fn is_idle(&self, now: u64) -> bool {
        self.latest.load(Relaxed) <= now
    }

    fn note(&self, check: &Check<'_>, outcome: &Outcome, now: u64) {
        let cost = check.cost();
        // A place may be released at any time, by any client.
        let may_end_early = check.limit().places().is_some();
        if may_end_early || outcome.degraded.is_some() || !denies_cost(outcome, cost) {
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
        self.table.insert(entry);
        self.latest.fetch_max(until, Relaxed);
    }

    /// An admission of a cost disproves earlier denials of it.
    fn disprove(&self, check: &Check<'_>, outcome: &Outcome, now: u64) {
        if self.is_idle(now) || outcome.degraded.is_some() {
            return;
        }
        let (cost, at) = (check.cost().get(), outcome.at.as_micros());
        // Answers may arrive out of order: an admission that is older than the denial disproves
        // nothing.
        let disproved = |entry: &Entry| entry.cost <= cost && entry.at <= at;
        self.table.remove(self.fingerprint(check.key()), disproved);
    }

    /// Hash of a key's text, which does not depend on its parts.
    fn fingerprint(&self, key: Key<'_>) -> u64 {
        let mut hasher = self.secret.build_hasher();
        key.parts().iter().for_each(|part| hasher.write(part.as_bytes()));
        hasher.finish()
    }

    /// Hash of the limit: a denial by one limit says nothing about another.
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
            | Parameters::FixedWindow(_)
            | Parameters::Concurrency(_) => {}
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

/// Returns `true` if the limit denied the cost. Reservations are also denied if too many are
/// pending, which says nothing about the cost.
const fn denies_cost(outcome: &Outcome, cost: Cost) -> bool {
    outcome.remaining < cost.get()
}

fn after(now: u64, wait: Duration) -> u64 {
    now.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
