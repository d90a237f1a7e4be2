//! Connections to PostgreSQL.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, SqlSafeStr, Transaction,
    pool::PoolConnectionMetadata,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{
    config::DatabaseConfig,
    cutoff::Cutoff,
    migrations::home,
    outage::Outage,
    pool_size::PoolSize,
    session::{STATEMENT_TIMEOUT, with_timeout},
};

/// Schema of rules.
pub(crate) const RATELIMIT_SCHEMA: &str = "ratelimit";

/// Schema of quotas.
pub(crate) const QUOTA_SCHEMA: &str = "quota";

/// Schema of service documents.
pub(crate) const CN_ADMIN_SCHEMA: &str = "cn_admin";

/// Timeout of the health check of a connection.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates a pool that connects lazily.
pub(crate) fn open(
    options: &PgConnectOptions,
    config: &DatabaseConfig,
    size: PoolSize,
    cutoff: &Cutoff,
) -> PgPool {
    let cutoff = cutoff.clone();
    options_of_pool(config)
        .max_connections(size.max)
        .min_connections(size.min)
        .max_lifetime(config.max_lifetime)
        .test_before_acquire(false)
        .before_acquire(move |connection, PoolConnectionMetadata { age, .. }| {
            let is_admitted = cutoff.admits(age);
            Box::pin(async move { Ok(is_admitted && is_alive(connection).await?) })
        })
        .after_release(|connection, _| Box::pin(is_alive(connection)))
        .connect_lazy_with(named(options))
}

/// Begins a transaction with `statement`. If a `BEGIN` in flight is dropped, the driver loses track
/// of it, and the connection would carry that transaction into its next use. It therefore runs in a
/// task of its own, which continues if the caller is dropped.
pub(crate) async fn begin(
    pool: &PgPool,
    statement: &'static str,
    cutoff: &Cutoff,
) -> Result<Transaction<'static, Postgres>, Outage> {
    let (connection, cutoff) = (pool.acquire().await?, cutoff.clone());
    let begin = tokio::spawn(async move {
        let begun =
            with_timeout(Transaction::begin(connection, Some(statement.into_sql_str()))).await;
        if let Err(Outage::NoResponse(_)) = begun {
            cutoff.renew();
        }
        begun
    });
    begin.await.unwrap_or(Err(Outage::Sql(sqlx::Error::WorkerCrashed)))
}

/// Creates a pool for listeners: one connection each for rules, quotas and service documents.
pub(crate) fn open_listening(options: &PgConnectOptions, config: &DatabaseConfig) -> PgPool {
    options_of_pool(config)
        .max_connections(3)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(named(options))
}

fn options_of_pool(config: &DatabaseConfig) -> PgPoolOptions {
    let (settings, schema) = (settings(), config.schema.clone());
    PgPoolOptions::new().acquire_timeout(config.connect_timeout).after_connect(
        move |connection, _| {
            let (settings, schema) = (AssertSqlSafe(settings.clone()), schema.clone());
            Box::pin(async move {
                sqlx::raw_sql(settings).execute(&mut *connection).await?;
                let home = home::find(connection, &schema).await?;
                home::enter(connection, &home).await
            })
        },
    )
}

/// The settings of every connection: an abandoned transaction must not hold its locks for long.
fn settings() -> String {
    let timeout = STATEMENT_TIMEOUT.as_millis();
    format!(
        "SET statement_timeout = {timeout};
         SET idle_in_transaction_session_timeout = {timeout}"
    )
}

fn named(options: &PgConnectOptions) -> PgConnectOptions {
    match options.get_application_name() {
        Some(_) => options.clone(),
        None => options.clone().application_name("headgate"),
    }
}

/// Checks a connection when it leaves the pool and when it returns. The driver's own check has no
/// timeout: a connection whose server went silent would occupy the pool until TCP gives up.
async fn is_alive(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match timeout(PING_TIMEOUT, connection.ping()).await {
        Ok(pong) => pong.map(|()| !connection.is_in_transaction()),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}
