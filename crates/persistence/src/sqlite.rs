//! Connections to SQLite.

mod file;

use std::{path::Path, time::Duration};

use sqlx::{
    Connection, SqlSafeStr, Sqlite, SqliteConnection, SqlitePool, Transaction,
    pool::PoolConnectionMetadata,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::time::sleep;

pub(crate) use self::file::{DatabaseFile, create_folder};
use crate::{
    config::DatabaseConfig,
    cutoff::Cutoff,
    outage::{Outage, is_busy},
    pool_size::PoolSize,
    session::{STATEMENT_TIMEOUT, with_timeout},
};

/// Pause before a retry while another process holds the lock.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Creates a pool that opens the file at `path` lazily. [`DatabaseFile::create`] creates the file,
/// and [`switch_to_wal`] sets its journal mode.
pub(crate) fn open(
    path: &Path,
    config: &DatabaseConfig,
    size: PoolSize,
    cutoff: &Cutoff,
) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(path);
    healthy(SqlitePoolOptions::new(), cutoff)
        .acquire_timeout(config.connect_timeout)
        .max_connections(size.max)
        .max_lifetime(config.max_lifetime)
        .connect_lazy_with(with_defaults(options))
}

/// Creates a database in memory, which lasts as long as its only connection.
pub(crate) fn open_in_memory(config: &DatabaseConfig) -> SqlitePool {
    let options = SqliteConnectOptions::new().in_memory(true);
    SqlitePoolOptions::new()
        .acquire_timeout(config.connect_timeout)
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(with_defaults(options))
}

/// Keeps broken connections out of the pool. On a full disk SQLite rolls back a transaction by
/// itself; the driver's rollback then fails, and it believes the connection to be in a transaction
/// forever.
fn healthy(options: SqlitePoolOptions, cutoff: &Cutoff) -> SqlitePoolOptions {
    let cutoff = cutoff.clone();
    options
        .before_acquire(move |connection, PoolConnectionMetadata { age, .. }| {
            let is_usable = !connection.is_in_transaction() && cutoff.admits(age);
            Box::pin(async move { Ok(is_usable) })
        })
        .after_release(|connection, _| {
            Box::pin(async move {
                // A rollback may be in flight: the ping waits for it.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

/// Begins a transaction with `statement`, after checking that the file was not replaced.
pub(crate) async fn begin(
    pool: &SqlitePool,
    file: Option<&DatabaseFile>,
    statement: &'static str,
) -> Result<Transaction<'static, Sqlite>, Outage> {
    file.map_or(Ok(()), DatabaseFile::check)?;
    let connection = pool.acquire().await?;
    with_timeout(Transaction::begin(connection, Some(statement.into_sql_str()))).await
}

/// Switches to WAL, in which readers and writers do not block each other. The mode is stored in the
/// file, so only migrations set it. SQLite may ignore the busy timeout for this lock, which is why
/// it is retried here; the caller sets a timeout.
pub(crate) async fn switch_to_wal(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    loop {
        let switch = sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut *connection);
        match switch.await {
            Err(error) if is_busy(&error) => sleep(BUSY_PAUSE).await,
            switched => return switched.map(drop),
        }
    }
}

/// Begins a write transaction once no other process has one. The caller sets a timeout.
pub(crate) async fn begin_in_turn(
    pool: &SqlitePool,
) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    loop {
        match pool.begin_with("BEGIN IMMEDIATE").await {
            Err(error) if is_busy(&error) => sleep(BUSY_PAUSE).await,
            begun => return begun,
        }
    }
}

fn with_defaults(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.busy_timeout(STATEMENT_TIMEOUT).foreign_keys(true)
}
