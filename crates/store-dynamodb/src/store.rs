//! Read, decide, write; again if others were first.

use std::fmt;

use crate::{
    DynamoDbConfig,
    backoff::Backoff,
    error::Failure,
    step::{Seen, Step},
    table::{Table, Write},
    time::Time,
    turns::{Turn, Turns},
};
use aws_sdk_dynamodb::Client;
use headgate::{
    Account, Algorithm, Batch, Check, Clock, Outcomes, Store, StoreError, StoreFuture, SystemClock,
    Verb,
};

/// Keeps subjects' states in a DynamoDB table.
pub struct DynamoDbStore {
    table: Table,
    config: DynamoDbConfig,
    clock: Box<dyn Clock>,
    turns: Turns,
}

/// What came of one try.
enum Try {
    Decided(Outcomes),
    /// Another call of this process is about to write: wait for a turn, and read again.
    Busy,
}

impl DynamoDbStore {
    /// The largest limit of a sliding window (the log): each unit of it may have to be remembered, and a hundred such
    /// items must fit into one transaction.
    pub const MAX_LOG: u64 = 2_000;

    /// The most keys in one batch: DynamoDB's bound for a transaction.
    pub const MAX_KEYS: usize = 100;

    /// The longest key, with what stands before and after the subject: DynamoDB's bound.
    pub const MAX_KEY_BYTES: usize = 2_048;

    /// Connects when it is first needed, and again whenever a connection is lost: calls
    /// fail until DynamoDB is there.
    pub fn connect(config: DynamoDbConfig) -> Self {
        let table = Table { client: config.client(), name: config.table.clone() };
        Self { table, config, clock: Box::new(SystemClock::new()), turns: Turns::new() }
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// The client it uses, for whatever else is kept in DynamoDB.
    pub fn client(&self) -> &Client {
        &self.table.client
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    async fn apply_to(&self, verb: Verb, checks: &[Check<'_>]) -> Result<Outcomes, StoreError> {
        let names: Vec<String> = checks.iter().map(|check| check.key().to_string()).collect();
        refuse_what_does_not_fit(checks, &names)?;
        let mut turn = None;
        let mut backoff = Backoff::default();
        let mut time = Time::new(self.config.timeout);
        loop {
            match time.spend(self.try_once(verb, checks, &names, turn.as_ref())).await? {
                Ok(Try::Decided(outcomes)) => return Ok(outcomes),
                // Waiting for our own process is not DynamoDB's time.
                Ok(Try::Busy) => turn = Some(self.turns.take(&names, self.config.timeout).await?),
                Err(failure) => time.spend(backoff.pause(failure)).await??,
            }
        }
    }

    async fn try_once(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
        names: &[String],
        turn: Option<&Turn<'_>>,
    ) -> Result<Try, Failure> {
        if verb == Verb::Reset && checks.iter().all(|check| !check.mode().is_read_only()) {
            return self.reset(checks, names).await;
        }
        let found = self.table.read(names).await?;
        let clock = self.clock.now();
        let seen = found.iter().zip(checks).map(|(item, check)| match item {
            None => Ok(Seen::nothing()),
            Some(item) => Seen::read(item, check.limit(), clock),
        });
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        let Step { outcomes, changes } = Step::decide(verb, checks, &seen, clock);
        // Most denials end here: who is over the limit waits for nobody.
        if changes.is_empty() {
            return Ok(Try::Decided(outcomes));
        }
        let taken = if turn.is_none() { self.turns.try_take(names) } else { None };
        if turn.is_none() && taken.is_none() {
            return Ok(Try::Busy);
        }
        let writes = changes.into_iter().map(|change| {
            let (name, expected) = (names[change.place].as_str(), Some(change.expected));
            Write { name, expected, item: change.item }
        });
        self.table.write(writes.collect()).await?;
        Ok(Try::Decided(outcomes))
    }

    /// Needs to know nothing of what it forgets, and so also clears away what does not read.
    async fn reset(&self, checks: &[Check<'_>], names: &[String]) -> Result<Try, Failure> {
        let delete = |name| Write { name, expected: None, item: None };
        self.table.write(names.iter().map(String::as_str).map(delete).collect()).await?;
        let now = self.clock.now();
        let outcome = |check: &Check<'_>| {
            Account::default().outcome(check.limit(), Verb::Reset, check.cost(), now, true)
        };
        Ok(Try::Decided(checks.iter().map(outcome).collect()))
    }
}

impl Store for DynamoDbStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.apply_to(verb, batch.checks()))
    }
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStore").field("config", &self.config).finish_non_exhaustive()
    }
}

fn refuse_what_does_not_fit(checks: &[Check<'_>], names: &[String]) -> Result<(), StoreError> {
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
    if checks.iter().any(is_long_log) {
        return Err(StoreError::Unsupported(
            "a sliding window in DynamoDB has a limit of at most 2,000; sliding_window_counter has no such bound",
        ));
    }
    Ok(())
}
