//! Why the database does not answer.

use std::{io, time::Duration};

use headgate_ratelimit::RepositoryError;
use sqlx::migrate::MigrateError;
use thiserror::Error;

/// Why the database does not answer. No message tells how we log in.
#[derive(Debug, Error)]
pub(crate) enum Outage {
    /// It is away, or all connections are in use.
    #[error("no connection within {} s", .0.as_secs_f32())]
    NoConnection(Duration),
    /// It took a statement and says nothing.
    #[error("no answer within {} s", .0.as_secs_f32())]
    NoAnswer(Duration),
    /// It refused, or the connection broke.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    /// The tables are not as they must be.
    #[error(transparent)]
    Migration(#[from] MigrateError),
    /// SQLite's file cannot be made.
    #[error("cannot create the database file: {0}")]
    File(#[from] io::Error),
    /// Changes cannot be heard any more.
    #[error("the connection that listens for changes was lost")]
    NotHeard,
}

/// `SQLITE_CONSTRAINT_UNIQUE`: it names no constraint, and a primary key has a code of its own.
const SQLITE_UNIQUE: &str = "2067";

// === impl Outage ===

impl Outage {
    /// Whether it is none at all, but something like another that `identity` asks to differ.
    pub(crate) fn is_twin(&self, identity: &str) -> bool {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        match error.constraint() {
            Some(constraint) => constraint == identity,
            None => error.code().is_some_and(|code| code == SQLITE_UNIQUE),
        }
    }
}

impl From<Outage> for headgate_service_config::ConfigError {
    fn from(outage: Outage) -> Self {
        Self::unavailable(outage)
    }
}

impl From<Outage> for headgate_quota::RepositoryError {
    fn from(outage: Outage) -> Self {
        Self::unavailable(outage)
    }
}

impl From<Outage> for RepositoryError {
    fn from(outage: Outage) -> Self {
        Self::unavailable(outage)
    }
}
