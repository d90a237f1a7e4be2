//! The store: one call if all keys share a node, otherwise one for each slot.

use std::fmt;

use headgate::{
    Batch, Check, Clock, HoldersFuture, Outcomes, Store, StoreError, StoreFuture, Verb,
};

use crate::{
    Inspection, RedisConfig, Status, call, holders, inspection, multi_slot::MultiSlotBatch,
    runner::ScriptRunner,
};

/// A store on Redis or Valkey.
///
/// The key in Redis is the name of the subject. When a subject gets a limit with another algorithm,
/// give it another name: the state of the previous algorithm can be an error of that key, under the
/// failure policy, until it expires or is reset.
///
/// Each server has its own circuit breaker, so that the other nodes of a cluster keep working.
/// Errors of a single key, and of a server that is out of memory, do not open it.
pub struct RedisStore {
    runner: ScriptRunner,
}

impl RedisStore {
    /// Connects in the background, and reconnects whenever a connection is lost. Calls fail while
    /// there is no connection.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the store takes ownership of its configuration"
    )]
    pub fn connect(config: RedisConfig) -> Self {
        Self { runner: ScriptRunner::connect(&config) }
    }

    /// State of the servers: connection errors and memory use.
    pub fn status(&self) -> Status {
        self.runner.servers().status()
    }

    /// Asks every server for its version, memory, persistence and clock. A server that does not
    /// answer within the timeout of a call has an error.
    pub async fn inspect(&self, clock: &dyn Clock) -> Vec<Inspection> {
        inspection::inspect(self.runner.servers(), clock).await
    }

    /// Returns `true` if Redis has a key of this name.
    pub(crate) async fn has(&self, name: &str) -> Result<bool, StoreError> {
        self.runner.servers().has(name).await
    }

    /// Replaces the system clock. The clock decides nothing: a wrong one only costs a second round
    /// trip on calendar windows.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { runner: self.runner.with_clock(clock) }
    }

    async fn apply_to_batch(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        if !self.runner.servers().is_cluster() || batch.checks().len() == 1 {
            return self.runner.apply(verb, batch.checks()).await;
        }
        let multi_slot = MultiSlotBatch::new(&self.runner, batch.checks());
        if multi_slot.is_in_one_slot() {
            return self.runner.apply(verb, batch.checks()).await;
        }
        // Nothing is granted over several slots: what one of them grants would have to be taken back if
        // another one denies.
        let verb = if verb == Verb::Lease { Verb::Acquire } else { verb };
        match verb {
            Verb::Acquire if batch.checks().iter().any(|check| check.mode().can_be_blocked()) => {
                self.acquire_detached(batch).await
            }
            verb => multi_slot.apply(verb).await,
        }
    }

    /// Acquires in a task of its own, which finishes even if the caller is dropped: otherwise units
    /// that were taken on some nodes and denied on others would not be returned.
    async fn acquire_detached(&self, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        let (runner, batch) = (self.runner.clone(), batch.to_owned());
        let decided = tokio::spawn(async move {
            let spaces = batch.spaces();
            let batch = batch.as_batch(&spaces);
            let checks: Vec<Check<'_>> = batch.checks().iter().map(with_name).collect();
            MultiSlotBatch::new(&runner, &checks).apply(Verb::Acquire).await
        });
        decided.await.unwrap_or_else(|ended| Err(StoreError::unavailable(ended)))
    }
}

/// Names the lease of places, so that their acquisition can be undone.
fn with_name<'a>(check: &Check<'a>) -> Check<'a> {
    match check.limit().places() {
        Some(_) if check.place().is_none() => check.holding(call::nameless(check)),
        _ => *check,
    }
}

impl Store for RedisStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.apply_to_batch(verb, batch))
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        Box::pin(holders::list(self.runner.servers(), check, max))
    }

    fn has_breakers(&self) -> bool {
        true
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("status", &self.status()).finish_non_exhaustive()
    }
}
