//! Quotas: policies, the ledger, and the outbox.

mod clock;
mod commit;
mod deletions;
mod events;
mod leadership;
mod ledger;
mod policies;
mod prune;
mod record;
mod unused;
mod write;

use std::sync::Arc;

use headgate::{Clock, SystemClock};
use headgate_quota::RepositoryError;

use self::clock::Began;
pub use self::clock::LedgerClock;
use crate::{Database, database::Pool, outage::Outage, session::Session};

/// Keeps quotas on a [`Database`]: policies, what is used of them, and what is told of that. Clones
/// share its clock.
#[derive(Clone, Debug)]
pub struct QuotaDatabase {
    database: Database,
    clock: Arc<LedgerClock>,
}

impl Database {
    /// The quotas that it keeps.
    pub fn quotas(&self) -> QuotaDatabase {
        self.quotas_on(Arc::new(SystemClock::new()))
    }

    /// The quotas that it keeps, on a machine with this clock. PostgreSQL has a clock of its own, which
    /// decides; SQLite goes by the machine's.
    pub fn quotas_on(&self, machine: Arc<dyn Clock>) -> QuotaDatabase {
        let own = matches!(self.pool(), Pool::Sqlite { .. });
        QuotaDatabase { database: self.clone(), clock: Arc::new(LedgerClock::new(machine, own)) }
    }

    /// The quotas that it keeps, with `clock` in the place of the database's: for tests that move the
    /// time.
    pub fn quotas_at(&self, clock: Arc<dyn Clock>) -> QuotaDatabase {
        QuotaDatabase { database: self.clone(), clock: Arc::new(LedgerClock::new(clock, true)) }
    }
}

impl QuotaDatabase {
    /// The clock that decides in which period something is counted.
    pub const fn clock(&self) -> &Arc<LedgerClock> {
        &self.clock
    }

    /// A transaction that reads, and when it began.
    async fn reading(&self) -> Result<(Session, Began), Outage> {
        let asked = self.clock.steady();
        Ok((self.database.reading().await?, Began { asked, answered: self.clock.steady() }))
    }

    /// A transaction that writes, and when it began.
    async fn writing(&self) -> Result<(Session, Began), Outage> {
        let asked = self.clock.steady();
        Ok((self.database.writing().await?, Began { asked, answered: self.clock.steady() }))
    }
}

/// Makes it all so. Whoever is not answered here does not know whether it is.
async fn commit(session: Session) -> Result<(), RepositoryError> {
    session.commit().await.map_err(RepositoryError::unconfirmed)
}

/// A row that makes no sense.
fn corrupt(what: impl std::fmt::Display) -> impl FnOnce(sqlx::Error) -> RepositoryError {
    move |error| RepositoryError::Corrupt(format!("{what}: {error}"))
}

/// A number that is never negative.
fn unsigned(number: i64) -> u64 {
    number.try_into().unwrap_or_default()
}

/// As JSON, in which many rows travel as one value.
fn to_json(rows: &[impl serde::Serialize]) -> Result<String, Outage> {
    serde_json::to_string(rows).map_err(|error| Outage::Sql(sqlx::Error::Encode(error.into())))
}
