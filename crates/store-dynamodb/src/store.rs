//! The store: read, decide, write; retry if another client was first.

use std::fmt;

use crate::{
    DynamoDbConfig,
    backoff::Backoff,
    error::AttemptError,
    key_locks::{KeyGuards, KeyLocks},
    table::{Table, Write},
    time_budget::TimeBudget,
    transition::{ReadState, Transition},
};
use aws_sdk_dynamodb::Client;
use headgate::{
    Account, Algorithm, Batch, Check, Clock, Holders, HoldersFuture, Outcomes, Store, StoreError,
    StoreFuture, SystemClock, Verb,
};

/// A store on a DynamoDB table.
pub struct DynamoDbStore {
    table: Table,
    config: DynamoDbConfig,
    clock: Box<dyn Clock>,
    key_locks: KeyLocks,
}

/// Result of one attempt.
enum Attempt {
    Decided(Outcomes),
    /// Another call of this process is writing: wait for the locks, and read again.
    Busy,
}

impl DynamoDbStore {
    /// Largest limit of a sliding window (the log): each unit may take an entry, and a hundred such
    /// items must fit into one transaction.
    pub const MAX_LOG: u64 = 2_000;

    /// Largest concurrency limit: each place may have a holder, and a hundred such items must fit
    /// into one transaction.
    pub const MAX_PLACES: u64 = 1_500;

    /// Maximum number of keys in a batch: the limit of a DynamoDB transaction.
    pub const MAX_KEYS: usize = 100;

    /// Maximum length of a key with its prefix and suffix: the limit of DynamoDB.
    pub const MAX_KEY_BYTES: usize = 2_048;

    /// Connects on first use, and reconnects whenever the connection is lost.
    pub fn connect(config: DynamoDbConfig) -> Self {
        let table = Table { client: config.client(), name: config.table.clone() };
        Self { table, config, clock: Box::new(SystemClock::new()), key_locks: KeyLocks::new() }
    }

    /// Replaces the system clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// The client, for other tables of the program.
    pub fn client(&self) -> &Client {
        &self.table.client
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    async fn apply_to(&self, verb: Verb, checks: &[Check<'_>]) -> Result<Outcomes, StoreError> {
        let names: Vec<String> = checks.iter().map(|check| check.key().to_string()).collect();
        validate(checks, &names)?;
        let mut guards = None;
        let mut backoff = Backoff::default();
        let mut budget = TimeBudget::new(self.config.timeout);
        loop {
            match budget.spend(self.attempt(verb, checks, &names, guards.as_ref())).await? {
                Ok(Attempt::Decided(outcomes)) => return Ok(outcomes),
                // Waiting for this process does not count against the timeout of DynamoDB.
                Ok(Attempt::Busy) => {
                    guards = Some(self.key_locks.lock_all(&names, self.config.timeout).await?);
                }
                Err(error) => budget.spend(backoff.pause(error)).await??,
            }
        }
    }

    async fn attempt(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
        names: &[String],
        guards: Option<&KeyGuards<'_>>,
    ) -> Result<Attempt, AttemptError> {
        if verb == Verb::Reset && checks.iter().all(|check| !check.mode().is_read_only()) {
            return self.reset(checks, names).await;
        }
        let found = self.table.read(names).await?;
        let clock = self.clock.now();
        let seen = found.iter().zip(checks).map(|(item, check)| match item {
            None => Ok(ReadState::nothing()),
            Some(item) => ReadState::read(item, check.limit(), clock),
        });
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        let Transition { outcomes, changes } = Transition::decide(verb, checks, &seen, clock);
        // Most denials end here, without waiting for a lock.
        if changes.is_empty() {
            return Ok(Attempt::Decided(outcomes));
        }
        let taken = if guards.is_none() { self.key_locks.try_lock_all(names) } else { None };
        if guards.is_none() && taken.is_none() {
            return Ok(Attempt::Busy);
        }
        let writes = changes.into_iter().map(|change| {
            let (name, expected) = (names[change.position].as_str(), Some(change.expected));
            Write { name, expected, item: change.item }
        });
        self.table.write(writes.collect()).await?;
        Ok(Attempt::Decided(outcomes))
    }

    async fn list_holders(&self, check: Check<'_>, max: usize) -> Result<Holders, StoreError> {
        let names = [check.key().to_string()];
        validate(&[check], &names)?;
        let mut backoff = Backoff::default();
        let mut budget = TimeBudget::new(self.config.timeout);
        loop {
            match budget.spend(self.table.read(&names)).await? {
                Ok(found) => {
                    let clock = self.clock.now();
                    let seen = match found.into_iter().flatten().next() {
                        None => ReadState::nothing(),
                        Some(item) => ReadState::read(&item, check.limit(), clock)?,
                    };
                    return Ok(Holders::of(&seen.account.state, max, seen.at.max(clock)));
                }
                Err(error) => budget.spend(backoff.pause(error)).await??,
            }
        }
    }

    /// Deletes without reading, and so also deletes invalid items.
    async fn reset(&self, checks: &[Check<'_>], names: &[String]) -> Result<Attempt, AttemptError> {
        let delete = |name| Write { name, expected: None, item: None };
        self.table.write(names.iter().map(String::as_str).map(delete).collect()).await?;
        let now = self.clock.now();
        let outcome = |check: &Check<'_>| {
            Account::default().outcome(check.limit(), Verb::Reset, check.cost(), now, true)
        };
        Ok(Attempt::Decided(checks.iter().map(outcome).collect()))
    }
}

impl Store for DynamoDbStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.apply_to(verb, batch.checks()))
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        Box::pin(self.list_holders(check, max))
    }
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStore").field("config", &self.config).finish_non_exhaustive()
    }
}

fn validate(checks: &[Check<'_>], names: &[String]) -> Result<(), StoreError> {
    let is_long_log = |check: &Check<'_>| {
        let limit = check.limit();
        limit.algorithm() == Algorithm::SlidingWindow && limit.capacity() > DynamoDbStore::MAX_LOG
    };
    if checks.len() > DynamoDbStore::MAX_KEYS {
        return Err(StoreError::Unsupported("a DynamoDB transaction has at most 100 keys"));
    }
    if names.iter().any(|name| name.len() > DynamoDbStore::MAX_KEY_BYTES) {
        return Err(StoreError::Unsupported("a key in DynamoDB has at most 2,048 bytes"));
    }
    let has_many_places = |check: &Check<'_>| {
        let places = check.limit().places();
        places.is_some_and(|places| u64::from(places.limit()) > DynamoDbStore::MAX_PLACES)
    };
    if checks.iter().any(has_many_places) {
        return Err(StoreError::Unsupported(
            "a concurrency limit in DynamoDB is at most 1,500: use Redis",
        ));
    }
    if checks.iter().any(is_long_log) {
        return Err(StoreError::Unsupported(
            "a sliding window in DynamoDB has a limit of at most 2,000: use sliding_window_counter",
        ));
    }
    Ok(())
}
