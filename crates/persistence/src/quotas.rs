//! Quotas: policies, the ledger, and the outbox.

mod commit;
mod events;
mod leadership;
mod ledger;
mod policies;
mod prune;
mod record;
mod unused;
mod write;

use headgate_quota::RepositoryError;

use crate::{Database, outage::Outage, session::Session};

/// Keeps quotas on a [`Database`]: policies, what is used of them, and what is told of that.
#[derive(Clone, Debug)]
pub struct QuotaDatabase(Database);

impl Database {
    /// The quotas that it keeps.
    pub fn quotas(&self) -> QuotaDatabase {
        QuotaDatabase(self.clone())
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
