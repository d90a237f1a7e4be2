//! Why the database does not answer.

use std::{io, time::Duration};

use headgate_ratelimit::RepositoryError;
use sqlx::{
    error::{DatabaseError, ErrorKind},
    migrate::MigrateError,
};
use thiserror::Error;

use crate::migrations::SchemaVersion;

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
    /// A newer program has changed the tables too much.
    #[error(
        "the database's tables are of version {}, this program knows version {} and works with one \
         version more: use a newer program",
        .0.applied, .0.known
    )]
    TooNew(SchemaVersion),
    /// SQLite's file cannot be made.
    #[error("cannot create the database file: {0}")]
    File(#[from] io::Error),
    /// SQLite would go on with a file that nobody can find any more.
    #[error(
        "the database file was deleted or replaced while the server runs: \
         put the same file back, or restart the server"
    )]
    FileReplaced,
    /// Changes cannot be heard any more.
    #[error("the connection that listens for changes was lost")]
    NotHeard,
}

/// `SQLITE_CONSTRAINT_UNIQUE`: it names no constraint, and a primary key has a code of its own.
const SQLITE_UNIQUE: &str = "2067";

/// Primary result codes of SQLite.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;

/// `read_only_sql_transaction`, for example on a primary that became a standby.
const POSTGRES_READ_ONLY: &str = "25006";

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

    /// Returns whether the database is well and refused what it was asked: a constraint, a
    /// conflict with another transaction, a value that cannot be read.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => {
                error.kind() != ErrorKind::Other
                    || sqlstate(&**error).is_some_and(|state| state.starts_with("40"))
            }
            Self::Sql(error) => matches!(
                error,
                sqlx::Error::RowNotFound
                    | sqlx::Error::ColumnDecode { .. }
                    | sqlx::Error::Decode(_)
                    | sqlx::Error::Encode(_)
            ),
            _ => false,
        }
    }

    /// Returns whether connections that are open now may never be able to write again: SQLite
    /// opens a file read-only where it can do no better, and a standby never becomes a primary for
    /// those who are connected to it.
    pub(crate) fn condemns_connections(&self) -> bool {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        match sqlstate(&**error) {
            Some(state) => state == POSTGRES_READ_ONLY,
            None => matches!(primary_code(&**error), Some(SQLITE_READONLY | SQLITE_IOERR)),
        }
    }
}

/// Returns whether another connection holds SQLite's lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    matches!(primary_code(&**error), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// PostgreSQL's code of an error, which is the only one with five characters.
fn sqlstate(error: &dyn DatabaseError) -> Option<String> {
    error.code().filter(|code| code.len() == 5).map(Into::into)
}

/// SQLite's code of an error, without what extends it.
fn primary_code(error: &dyn DatabaseError) -> Option<i32> {
    let code = error.code().filter(|code| code.len() < 5)?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
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
