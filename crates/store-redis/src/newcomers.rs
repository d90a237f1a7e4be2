//! A bound on the new keys that one process adds to Redis each second.

mod key_rate;
mod recent_keys;

use std::{
    collections::HashSet,
    fmt,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use headgate::{
    Batch, Check, CheckMode, Clock, HoldersFuture, Key, Outcome, Outcomes, Standing, Store,
    StoreError, StoreFuture, Verb, limit::Parameters,
};

use crate::RedisStore;
use key_rate::KeyRate;
use recent_keys::RecentKeys;

/// Bounds the new keys that this process adds to Redis each second; beyond that, new subjects share
/// keys.
///
/// A subject is new if this process has not seen it during the TTL of its state. New subjects
/// within the rate get a key of their own, in one round trip as usual. Beyond the rate, a second
/// round trip asks whether Redis has the key already. If it does, the subject is decided by it; if
/// not, by one of [`SHARED`](Self::SHARED) keys that new subjects of the same limit share, chosen
/// by a hash with a secret of this process.
///
/// Therefore a subject with a key in Redis is always decided exactly; the process adds at most the
/// rate, a burst of one second, and the shared keys; and new subjects together never get more than
/// the shared keys allow. A single new subject may get less than its limit.
///
/// What must be found again, by any process, is never in a shared key: nothing is granted from one.
/// Beyond the rate, reservations and [exact](Check::exact) checks of subjects without a key are
/// denied for a second.
/// Keys of concurrency limits are exempt: they last no longer than their leases.
pub struct NewcomerBound {
    store: Arc<RedisStore>,
    clock: Arc<dyn Clock>,
    rate: KeyRate,
    recent: RecentKeys,
    shared: AtomicU64,
}

// === impl NewcomerBound ===

impl NewcomerBound {
    /// Number of keys that new subjects of one limit share.
    pub const SHARED: u64 = 1_024;

    /// By then, the rate admits new keys again.
    const RETRY_AFTER: Duration = Duration::from_secs(1);

    /// Bounds the new keys of `store`.
    pub fn new(store: Arc<RedisStore>, per_second: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            rate: KeyRate::new(per_second),
            recent: RecentKeys::new(),
            shared: AtomicU64::new(0),
        }
    }

    /// Number of checks that were decided by a shared key.
    pub fn shared(&self) -> u64 {
        self.shared.load(Relaxed)
    }

    /// Positions of the checks that may not add a key. Those that may are recorded as recent.
    fn over_the_rate(&self, verb: Verb, batch: &Batch<'_>) -> Vec<usize> {
        let steady = self.clock.steady();
        let adds = matches!(verb, Verb::Acquire | Verb::Lease | Verb::Reserve { .. });
        let is_over = |check: &Check<'_>| {
            let subject = self.recent.hash(check.key());
            if is_exempt(check) || self.recent.contains(subject, steady, ttl(check)) {
                return false;
            }
            let may_add = adds && self.rate.take(steady);
            !(may_add && self.recent.insert(subject, steady, ttl(check)))
        };
        let positions = batch.checks().iter().enumerate();
        positions.filter(|(_, check)| is_over(check)).map(|(position, _)| position).collect()
    }

    /// Applies `verb` to a batch of which some checks may not add a key.
    async fn apply_over_the_rate(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        mut over: Vec<usize>,
    ) -> Result<Outcomes, StoreError> {
        let checks = batch.checks();
        let known = over.iter().map(|position| self.is_in_redis(&checks[*position]));
        let mut known = try_join_all(known).await?.into_iter();
        over.retain(|_| known.next() == Some(false));
        if over.is_empty() {
            return self.store.apply(verb, batch).await;
        }
        let is_found_again = matches!(verb, Verb::Reserve { .. } | Verb::Refund)
            || checks.iter().any(Check::is_exact);
        if is_found_again {
            self.apply_without(verb, batch, &over).await
        } else {
            self.apply_with_shared(verb, checks, &over).await
        }
    }

    /// Applies `verb`, with shared keys for the checks at the positions `over`.
    async fn apply_with_shared(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
        over: &[usize],
    ) -> Result<Outcomes, StoreError> {
        let names = self.shared_names(over.iter().map(|position| &checks[*position]));
        self.shared.fetch_add(over.len() as u64, Relaxed);
        let mut replaced = checks.to_vec();
        for (position, name) in over.iter().zip(&names) {
            replaced[*position] = shared(&checks[*position], name)?;
        }
        let batch = Batch::new(replaced).map_err(rejected)?;
        self.store.apply(verb, &batch).await
    }

    /// Applies `verb`, which adds no key for the checks at the positions `over`. If the batch
    /// depends on one of them, it is denied. A refund has nothing to return to them.
    async fn apply_without(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        over: &[usize],
    ) -> Result<Outcomes, StoreError> {
        let checks = batch.checks();
        if verb != Verb::Refund && over.iter().any(|i| checks[*i].mode().can_block()) {
            return self.deny(verb, batch, over).await;
        }
        let mut counted = checks.to_vec();
        for position in over {
            counted[*position] = counted[*position].with_mode(CheckMode::Report);
        }
        self.store.apply(verb, &Batch::new(counted).map_err(rejected)?).await
    }

    /// Takes nothing, and denies the checks at the positions `over` and the exact ones.
    async fn deny(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        over: &[usize],
    ) -> Result<Outcomes, StoreError> {
        let seen = self.store.apply(Verb::Peek, batch).await?;
        let standing = verb.reservation().map(|_| Standing::Ended);
        let answer = |(i, seen): (usize, Outcome)| {
            let is_denied = over.contains(&i) || batch.checks()[i].is_exact();
            let Outcome { limit, remaining, reset_after, at, .. } = seen;
            let outcome = if seen.allowed && is_denied {
                Outcome::denial(limit, remaining, reset_after, Self::RETRY_AFTER, at)
            } else {
                seen
            };
            outcome.with_reservation(standing)
        };
        Ok(seen.into_iter().enumerate().map(answer).collect())
    }

    async fn is_in_redis(&self, check: &Check<'_>) -> Result<bool, StoreError> {
        let is_there = self.store.has(&check.key().to_string()).await?;
        if is_there {
            let subject = self.recent.hash(check.key());
            self.recent.insert(subject, self.clock.steady(), ttl(check));
        }
        Ok(is_there)
    }

    /// The shared keys of checks of one batch, all different. A subject has the same key in every
    /// batch, unless it meets another with that key, which is rare: then the later one has the
    /// next.
    fn shared_names<'a>(&self, checks: impl Iterator<Item = &'a Check<'a>>) -> Vec<String> {
        let mut names = Vec::new();
        let mut taken = HashSet::new();
        for check in checks {
            let limit = check.limit();
            let (algorithm, capacity, ttl) = (limit.algorithm(), limit.capacity(), ttl(check));
            let first = self.recent.hash(check.key()) % Self::SHARED;
            let buckets = (first..Self::SHARED).chain(0..first);
            let name = buckets
                .map(|it| format!("headgate:newcomers:{algorithm}:{capacity}:{ttl}:{it}"))
                .find(|name| !taken.contains(name))
                .unwrap_or_default();
            taken.insert(name.clone());
            names.push(name);
        }
        names
    }
}

impl Store for NewcomerBound {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        // These add nothing, and are about the subject's own key: no reservation and no grant is in
        // another.
        if matches!(
            verb,
            Verb::Peek
                | Verb::Reset
                | Verb::Use { .. }
                | Verb::Commit(_)
                | Verb::Cancel(_)
                | Verb::GiveBack
        ) {
            return self.store.apply(verb, batch);
        }
        let over = self.over_the_rate(verb, batch);
        if over.is_empty() {
            return self.store.apply(verb, batch);
        }
        StoreFuture::pending(self.apply_over_the_rate(verb, batch, over))
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        self.store.holders(check, max)
    }

    fn has_breakers(&self) -> bool {
        true
    }
}

/// `check` with a shared key. Nothing is granted in advance: it would have to be given back to the
/// same key.
fn shared<'a>(check: &Check<'a>, name: &'a str) -> Result<Check<'a>, StoreError> {
    let key = Key::new(name).map_err(rejected)?;
    Ok(check.with_key(key).without_extra())
}

fn rejected(error: impl fmt::Display) -> StoreError {
    StoreError::Refused(error.to_string())
}

/// Returns `true` if the check adds nothing, or what it adds is not shared.
fn is_exempt(check: &Check<'_>) -> bool {
    check.mode().is_read_only() || check.limit().places().is_some()
}

/// TTL of the state of a check, in microseconds.
fn ttl(check: &Check<'_>) -> u64 {
    match check.limit().parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => bucket.fill_time(),
        Parameters::FixedWindow(window) => window.window(),
        Parameters::SlidingWindow(window) => window.window(),
        Parameters::Concurrency(places) => places.window(),
        Parameters::SlidingWindowCounter(window) => window.window() * 2,
        Parameters::Calendar(calendar) => {
            let (start, end) = calendar.bounds(headgate::Timestamp::from_micros(0));
            end - start
        }
    }
}

impl fmt::Debug for NewcomerBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewcomerBound").field("rate", &self.rate).finish_non_exhaustive()
    }
}
