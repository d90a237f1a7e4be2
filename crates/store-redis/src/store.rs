//! One call where keys share a node, one for each slot where they do not.

use std::fmt;

use headgate::{Batch, Clock, Outcomes, Store, StoreError, StoreFuture, Verb};

use crate::{RedisConfig, Status, caller::Caller, spread::Spread};

/// Keeps subjects' states in Redis or Valkey.
///
/// A key in Redis is the subject's name and nothing else, so that others find it. A subject that gets a limit of another
/// algorithm should get another name, too: what the one before left there may be an error of that key, under the
/// failure policy, until it expires or is reset.
///
/// Each server has a circuit breaker: one that keeps failing is left alone, and the others of a cluster go on.
/// Errors of a key, or of a server that is full, open none.
pub struct RedisStore {
    caller: Caller,
}

impl RedisStore {
    /// Connects in the background, and again whenever the connection is lost:
    /// calls fail until Redis is there.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    #[expect(clippy::needless_pass_by_value, reason = "a store takes its configuration over")]
    pub fn connect(config: RedisConfig) -> Self {
        Self { caller: Caller::connect(&config) }
    }

    /// How the servers are: which do not answer, and what they say about their memory.
    pub fn status(&self) -> Status {
        self.caller.servers().status()
    }

    /// Whether Redis has a subject of this name.
    pub(crate) async fn has(&self, name: &str) -> Result<bool, StoreError> {
        self.caller.servers().has(name).await
    }

    /// With another clock than the machine's. It decides nothing: a wrong one
    /// only costs a second round trip on calendar windows.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { caller: self.caller.with_clock(clock) }
    }

    async fn apply_to_batch(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        if !self.caller.servers().is_cluster() || batch.checks().len() == 1 {
            return self.caller.apply(verb, batch.checks()).await;
        }
        let spread = Spread::new(&self.caller, batch.checks());
        if spread.is_in_one_slot() {
            return self.caller.apply(verb, batch.checks()).await;
        }
        match verb {
            Verb::Acquire if batch.checks().iter().any(|check| check.mode().can_be_blocked()) => {
                self.acquire_to_the_end(batch).await
            }
            verb => spread.apply(verb).await,
        }
    }

    /// Acquires also when nobody waits for the answer any more: what was taken in vain must be given
    /// back, or clients who hang up in time would use up what they share with others.
    async fn acquire_to_the_end(&self, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        let (caller, batch) = (self.caller.clone(), batch.to_owned());
        let decided = tokio::spawn(async move {
            let spaces = batch.spaces();
            Spread::new(&caller, batch.as_batch(&spaces).checks()).apply(Verb::Acquire).await
        });
        decided.await.unwrap_or_else(|ended| Err(StoreError::unavailable(ended)))
    }
}

impl Store for RedisStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.apply_to_batch(verb, batch))
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
