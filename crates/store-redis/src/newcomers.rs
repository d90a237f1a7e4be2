//! A bound on how many new subjects a second one process adds to a Redis that others share.

mod rate;
mod seen;

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures_util::future::try_join_all;
use headgate::{
    Batch, Check, Clock, Key, Outcomes, Store, StoreError, StoreFuture, Verb, limit::Parameters,
};

use crate::RedisStore;
use rate::Rate;
use seen::Seen;

/// Adds at most so many new subjects a second to Redis; past that, newcomers share allowances.
///
/// A subject is new if this process has not seen it for as long as its state can live. Those within
/// the rate get a state of their own, as always and in one round trip. For one past the rate, Redis is asked
/// whether it has the subject (another round trip): if it does, it is decided by its own state. If
/// not, it is decided by one of [`SHARED`](Self::SHARED) states that newcomers of the same limit share, chosen by a
/// hash that differs from process to process.
///
/// So a subject that Redis has is always decided exactly; new keys are at most the rate and one
/// second's worth at once, and the shared ones; and newcomers are never admitted beyond what the
/// shared states allow together. What one of them may take is less if others share its state.
pub struct NewcomerBound {
    store: Arc<RedisStore>,
    clock: Arc<dyn Clock>,
    rate: Rate,
    seen: Seen,
    shared: AtomicU64,
}

// === impl NewcomerBound ===

impl NewcomerBound {
    /// How many states newcomers of one limit share.
    pub const SHARED: u64 = 1_024;

    /// Bounds the new subjects that go to `store`.
    pub fn new(store: Arc<RedisStore>, per_second: NonZeroU32, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            rate: Rate::new(per_second),
            seen: Seen::new(),
            shared: AtomicU64::new(0),
        }
    }

    /// How many checks were decided by a shared state.
    pub fn shared(&self) -> u64 {
        self.shared.load(Relaxed)
    }

    /// The places of checks that may not add a subject. Those that may are remembered.
    fn past_the_rate(&self, verb: Verb, batch: &Batch<'_>) -> Vec<usize> {
        let steady = self.clock.steady();
        let adds = matches!(verb, Verb::Acquire | Verb::Reserve { .. });
        let is_past = |check: &Check<'_>| {
            let subject = self.seen.hash(check.key());
            if check.mode().is_read_only() || self.seen.knows(subject, steady, life(check)) {
                return false;
            }
            let may_add = adds && self.rate.take(steady);
            !(may_add && self.seen.remember(subject, steady, life(check)))
        };
        let places = batch.checks().iter().enumerate();
        places.filter(|(_, check)| is_past(check)).map(|(place, _)| place).collect()
    }

    /// Does `verb` to a batch of which some may not add a subject.
    async fn apply_with_shared(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        past: Vec<usize>,
    ) -> Result<Outcomes, StoreError> {
        let checks = batch.checks();
        let names: Vec<Option<String>> = {
            let known = past.iter().map(|place| self.is_in_redis(&checks[*place]));
            let known = try_join_all(known).await?;
            let mut names = vec![None; checks.len()];
            for (place, _) in past.iter().zip(known).filter(|(_, known)| !known) {
                names[*place] = Some(self.shared_name(*place, &checks[*place]));
            }
            names
        };
        self.shared.fetch_add(names.iter().flatten().count() as u64, Relaxed);
        let replaced = checks.iter().zip(&names).map(|(check, name)| match name {
            None => Ok(*check),
            Some(name) => renamed(check, name),
        });
        let replaced: Vec<Check<'_>> = replaced.collect::<Result<_, _>>()?;
        let batch = Batch::new(replaced).map_err(odd)?;
        self.store.apply(verb, &batch).await
    }

    async fn is_in_redis(&self, check: &Check<'_>) -> Result<bool, StoreError> {
        let is_there = self.store.has(&check.key().to_string()).await?;
        if is_there {
            let subject = self.seen.hash(check.key());
            self.seen.remember(subject, self.clock.steady(), life(check));
        }
        Ok(is_there)
    }

    /// The place keeps two checks of a batch apart that share a limit.
    fn shared_name(&self, place: usize, check: &Check<'_>) -> String {
        let limit = check.limit();
        let bucket = self.seen.hash(check.key()) % Self::SHARED;
        let (algorithm, capacity, life) = (limit.algorithm(), limit.capacity(), life(check));
        format!("headgate:newcomers:{algorithm}:{capacity}:{life}:{place}:{bucket}")
    }
}

impl Store for NewcomerBound {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        // A look adds nothing, and a reset is about the subject's own state.
        if matches!(verb, Verb::Peek | Verb::Reset) {
            return self.store.apply(verb, batch);
        }
        let past = self.past_the_rate(verb, batch);
        if past.is_empty() {
            return self.store.apply(verb, batch);
        }
        StoreFuture::pending(self.apply_with_shared(verb, batch, past))
    }

    fn has_breakers(&self) -> bool {
        true
    }
}

/// `check` of another subject.
fn renamed<'a>(check: &Check<'a>, name: &'a str) -> Result<Check<'a>, StoreError> {
    let key = Key::new(name).map_err(odd)?;
    let renamed = Check::new(key, check.limit(), check.cost()).map_err(odd)?;
    Ok(renamed.with_mode(check.mode()).with_fail_mode(check.fail_mode()))
}

fn odd(error: impl fmt::Display) -> StoreError {
    StoreError::Refused(error.to_string())
}

/// How long a subject's state can live, in microseconds.
fn life(check: &Check<'_>) -> u64 {
    match check.limit().parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => bucket.fill_time(),
        Parameters::FixedWindow(window) => window.window(),
        Parameters::SlidingWindow(window) => window.window(),
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
