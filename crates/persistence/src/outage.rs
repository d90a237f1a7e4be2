//! Errors of the database.

use std::{io, time::Duration};

use headgate_ratelimit::RepositoryError;
use sqlx::{
    error::{DatabaseError, ErrorKind},
    migrate::MigrateError,
};
use thiserror::Error;

use crate::migrations::SchemaVersion;

/// An error of the database. Messages contain no credentials.
#[derive(Debug, Error)]
pub(crate) enum Outage {
    /// The database is unreachable, or all connections are in use.
    #[error("no connection within {} s", .0.as_secs_f32())]
    NoConnection(Duration),
    /// A statement got no response.
    #[error("no response within {} s", .0.as_secs_f32())]
    NoResponse(Duration),
    /// The database returned an error, or the connection failed.
    #[error("{}", describe(.0))]
    Sql(#[from] sqlx::Error),
    /// A migration failed.
    #[error(transparent)]
    Migration(#[from] MigrateError),
    /// The tables are too new for this program.
    #[error(
        "the database has schema version {}, but this program knows version {} and tolerates one \
         version more; use a newer program",
        .0.applied, .0.known
    )]
    TooNew(SchemaVersion),
    /// The encoding of a new PostgreSQL database lacks characters.
    #[error(
        "the database has the encoding {0}, which lacks characters; create it with ENCODING 'UTF8'"
    )]
    Encoding(String),
    /// The SQLite file cannot be created.
    #[error("cannot create the database file: {0}")]
    File(#[from] io::Error),
    /// The SQLite file was deleted or replaced, which SQLite does not notice.
    #[error(
        "the database file was deleted or replaced while the server is running; \
         put the same file back, or restart the server"
    )]
    FileReplaced,
    /// Notifications cannot be received any more.
    #[error("the connection that listens for changes was lost")]
    ListenerLost,
}

/// `SQLITE_CONSTRAINT_UNIQUE`. SQLite does not name the constraint; primary keys have another code.
const SQLITE_UNIQUE: &str = "2067";

/// Primary result codes of SQLite.
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
const SQLITE_TOOBIG: i32 = 18;
const SQLITE_CONSTRAINT: i32 = 19;
const SQLITE_MISMATCH: i32 = 20;

/// `read_only_sql_transaction`, for example on a primary that became a standby.
const POSTGRES_READ_ONLY: &str = "25006";

/// `lock_not_available`: another transaction held it for longer than `lock_timeout`.
const POSTGRES_LOCKED: &str = "55P03";

/// `raise_exception`: a trigger of the operator's refused a row.
const POSTGRES_RAISED: &str = "P0001";

/// Classes of PostgreSQL for a value that is refused: data exceptions such as a character that the
/// encoding lacks, constraints, and limits such as the size of an index row.
const POSTGRES_REFUSALS: [&str; 3] = ["22", "23", "54"];

// === impl Outage ===

impl Outage {
    /// Returns the class of the error, for traces.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::NoConnection(_) => "no_connection",
            Self::NoResponse(_) => "timeout",
            Self::FileReplaced => "file_replaced",
            _ if self.is_rejection() => "rejected",
            _ => "unavailable",
        }
    }

    /// Returns true if a row violates the unique constraint of this name.
    pub(crate) fn is_duplicate(&self, unique_constraint: &str) -> bool {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        match error.constraint() {
            Some(constraint) => constraint == unique_constraint,
            None => error.code().is_some_and(|code| code == SQLITE_UNIQUE),
        }
    }

    /// Returns true if the database is healthy and rejected a statement: a constraint, a conflict
    /// with another transaction, an invalid value.
    pub(crate) fn is_rejection(&self) -> bool {
        match self {
            Self::Sql(sqlx::Error::Database(error)) => {
                error.kind() != ErrorKind::Other || self.is_conflict() || is_refusal(&**error)
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

    /// Returns true if another transaction was in the way, on PostgreSQL: SQLite has one lock for
    /// all writers.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        let state = sqlstate(&**error);
        state.is_some_and(|state| state == POSTGRES_LOCKED || state.starts_with("40"))
    }

    /// Returns true if open connections may never be able to write again: SQLite falls back to
    /// opening a file read-only, and a connection to a standby stays read-only after a failover.
    pub(crate) fn requires_new_connections(&self) -> bool {
        let Self::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        match sqlstate(&**error) {
            Some(state) => state == POSTGRES_READ_ONLY,
            None => matches!(primary_code(&**error), Some(SQLITE_READONLY | SQLITE_IOERR)),
        }
    }
}

/// Explains errors of TLS.
fn describe(error: &sqlx::Error) -> String {
    match headgate_tls_client::explain(error, "PostgreSQL", "database") {
        Some(text) => format!("TLS: {text}"),
        None => error.to_string(),
    }
}

/// Returns true if another connection holds SQLite's lock.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    matches!(primary_code(&**error), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// Returns true if the database refused a value.
fn is_refusal(error: &dyn DatabaseError) -> bool {
    match sqlstate(error) {
        Some(state) => {
            state == POSTGRES_RAISED
                || POSTGRES_REFUSALS.iter().any(|class| state.starts_with(class))
        }
        None => {
            matches!(primary_code(error), Some(SQLITE_TOOBIG | SQLITE_CONSTRAINT | SQLITE_MISMATCH))
        }
    }
}

/// Returns the SQLSTATE of PostgreSQL, the only code with five characters.
fn sqlstate(error: &dyn DatabaseError) -> Option<String> {
    error.code().filter(|code| code.len() == 5).map(Into::into)
}

/// Returns SQLite's primary result code.
fn primary_code(error: &dyn DatabaseError) -> Option<i32> {
    let code = error.code().filter(|code| code.len() < 5)?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<Outage> for headgate_service_config::DocumentStoreError {
    fn from(outage: Outage) -> Self {
        Self::unavailable(outage)
    }
}

impl From<Outage> for headgate_quota::RepositoryError {
    fn from(outage: Outage) -> Self {
        if outage.is_conflict() {
            Self::busy(outage)
        } else if outage.is_rejection() {
            Self::refused(outage)
        } else {
            Self::unavailable(outage)
        }
    }
}

impl From<Outage> for RepositoryError {
    fn from(outage: Outage) -> Self {
        Self::unavailable(outage)
    }
}
