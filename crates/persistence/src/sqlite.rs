//! How SQLite is connected to.

mod file;

use std::{path::Path, time::Duration};

use sqlx::{
    Connection, SqlSafeStr, Sqlite, SqliteConnection, SqlitePool, Transaction,
    pool::PoolConnectionMetadata,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::time::sleep;

pub(crate) use self::file::DatabaseFile;
use crate::{
    config::DatabaseConfig,
    cutoff::Cutoff,
    outage::{Outage, is_busy},
    session::{STATEMENT_TIMEOUT, answered},
};

/// Pause before a lock that another process holds is asked for again.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// A pool that opens the file at `path` when it is needed. [`DatabaseFile::create`] makes the file,
/// and [`switch_to_wal`] its journal.
pub(crate) fn open(path: &Path, config: &DatabaseConfig, cutoff: &Cutoff) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(path);
    healthy(SqlitePoolOptions::new(), cutoff)
        .acquire_timeout(config.connect_timeout)
        .max_connections(config.max_connections)
        .max_lifetime(config.max_lifetime)
        .connect_lazy_with(usual(options))
}

/// A database that lives as long as its only connection.
pub(crate) fn open_in_memory(config: &DatabaseConfig) -> SqlitePool {
    let options = SqliteConnectOptions::new().in_memory(true);
    SqlitePoolOptions::new()
        .acquire_timeout(config.connect_timeout)
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(usual(options))
}

/// Keeps broken connections out of the pool. On a full disk SQLite rolls a transaction back by
/// itself; the driver's own rollback then fails, and it takes the connection to be in a
/// transaction for ever.
fn healthy(options: SqlitePoolOptions, cutoff: &Cutoff) -> SqlitePoolOptions {
    let cutoff = cutoff.clone();
    options
        .before_acquire(move |connection, PoolConnectionMetadata { age, .. }| {
            let is_usable = !connection.is_in_transaction() && cutoff.admits(age);
            Box::pin(async move { Ok(is_usable) })
        })
        .after_release(|connection, _| {
            Box::pin(async move {
                // A rollback may still be under way: the ping comes after it.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

/// Begins a transaction with `statement` on the file that is still in its place.
pub(crate) async fn begin(
    pool: &SqlitePool,
    file: Option<&DatabaseFile>,
    statement: &'static str,
) -> Result<Transaction<'static, Sqlite>, Outage> {
    file.map_or(Ok(()), DatabaseFile::check)?;
    let connection = pool.acquire().await?;
    answered(Transaction::begin(connection, Some(statement.into_sql_str()))).await
}

/// Makes writers and readers stop waiting for each other. The file remembers it, so that only the
/// migration asks: for this lock SQLite may give up at once, whatever the busy time-out says.
/// The caller bounds how long it may take.
pub(crate) async fn switch_to_wal(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    loop {
        let switch = sqlx::raw_sql("PRAGMA journal_mode = WAL").execute(&mut *connection);
        match switch.await {
            Err(error) if is_busy(&error) => sleep(BUSY_PAUSE).await,
            switched => return switched.map(drop),
        }
    }
}

/// Begins to write once no other process does. The caller bounds how long it may take.
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

fn usual(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options.busy_timeout(STATEMENT_TIMEOUT).foreign_keys(true)
}
