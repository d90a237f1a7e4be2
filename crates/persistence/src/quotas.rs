//! Quotas: policies, ledger and outbox.

mod clock;
mod commit;
mod deletions;
mod events;
mod leadership;
mod ledger;
mod locked;
mod period_keys;
mod policies;
mod prune;
mod record;
mod unused;
mod write;

use std::sync::Arc;

use headgate::{Clock, SystemClock};
use headgate_quota::{Patience, RepositoryError};

use self::clock::BeginTime;
pub use self::clock::LedgerClock;
use crate::{Database, database::Pool, outage::Outage, session::Session};

/// Stores policies, usage and events of quotas on a [`Database`]. Clones share its clock.
#[derive(Clone, Debug)]
pub struct QuotaDatabase {
    database: Database,
    clock: Arc<LedgerClock>,
}

impl Database {
    /// Returns the storage of quotas.
    pub fn quotas(&self) -> QuotaDatabase {
        self.quotas_on(Arc::new(SystemClock::new()))
    }

    /// Returns the storage of quotas on a machine with this clock. PostgreSQL's own clock decides
    /// the period; with SQLite, the machine's does.
    pub fn quotas_on(&self, machine: Arc<dyn Clock>) -> QuotaDatabase {
        let own = matches!(self.pool(), Pool::Sqlite { .. });
        QuotaDatabase { database: self.clone(), clock: Arc::new(LedgerClock::new(machine, own)) }
    }

    /// Returns the storage of quotas with `clock` in place of the database's, for tests that move
    /// the time.
    pub fn quotas_at(&self, clock: Arc<dyn Clock>) -> QuotaDatabase {
        QuotaDatabase { database: self.clone(), clock: Arc::new(LedgerClock::new(clock, true)) }
    }
}

impl QuotaDatabase {
    /// Returns the clock that decides the period.
    pub const fn clock(&self) -> &Arc<LedgerClock> {
        &self.clock
    }

    /// Begins a read transaction of the server, and returns the time at which it began.
    async fn reading_for_server(&self) -> Result<(Session, BeginTime), Outage> {
        let earliest = self.clock.steady();
        let session = self.database.reading_for_server().await?;
        Ok((session, BeginTime { earliest, latest: self.clock.steady() }))
    }

    /// Begins a write transaction, and returns the time at which it began.
    async fn writing(&self) -> Result<(Session, BeginTime), Outage> {
        let earliest = self.clock.steady();
        Ok((self.database.writing().await?, BeginTime { earliest, latest: self.clock.steady() }))
    }

    /// Begins a write transaction that waits for locks only so long, and returns the time at which
    /// it began.
    async fn writing_within(&self, patience: Patience) -> Result<(Session, BeginTime), Outage> {
        let earliest = self.clock.steady();
        let session = self.database.writing_within(patience).await?;
        Ok((session, BeginTime { earliest, latest: self.clock.steady() }))
    }
}

/// Commits. If this fails, the transaction may have been committed.
async fn commit(session: Session) -> Result<(), RepositoryError> {
    session.commit().await.map_err(RepositoryError::unconfirmed)
}

/// Converts an error of an invalid row.
fn corrupt(what: impl std::fmt::Display) -> impl FnOnce(sqlx::Error) -> RepositoryError {
    move |error| RepositoryError::Corrupt(format!("{what}: {error}"))
}

/// Converts a number that is never negative.
fn unsigned(number: i64) -> u64 {
    number.try_into().unwrap_or_default()
}

/// Serializes rows to JSON, so that many can be bound as one value.
fn to_json(rows: &[impl serde::Serialize]) -> Result<String, Outage> {
    serde_json::to_string(rows).map_err(|error| Outage::Sql(sqlx::Error::Encode(error.into())))
}
