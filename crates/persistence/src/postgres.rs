//! How PostgreSQL is connected to.

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
    session::{STATEMENT_TIMEOUT, answered},
};

/// The schema of the rules.
pub(crate) const RATELIMIT_SCHEMA: &str = "ratelimit";

/// The schema of the quotas.
pub(crate) const QUOTA_SCHEMA: &str = "quota";

/// The schema of service documents.
pub(crate) const CN_ADMIN_SCHEMA: &str = "cn_admin";

/// How long a connection may take to show that it works.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// A pool that connects when somebody needs it.
pub(crate) fn open(options: &PgConnectOptions, config: &DatabaseConfig, cutoff: &Cutoff) -> PgPool {
    let cutoff = cutoff.clone();
    options_of_pool(config)
        .max_connections(config.max_connections)
        .min_connections(config.min_connections.min(config.max_connections))
        .max_lifetime(config.max_lifetime)
        .test_before_acquire(false)
        .before_acquire(move |connection, PoolConnectionMetadata { age, .. }| {
            let is_admitted = cutoff.admits(age);
            Box::pin(async move { Ok(is_admitted && still_works(connection).await?) })
        })
        .after_release(|connection, _| Box::pin(still_works(connection)))
        .connect_lazy_with(named(options))
}

/// Begins a transaction with `statement`. The driver forgets a `BEGIN` that is given up while it is
/// under way, and the connection would carry that transaction into its next use: so the statement
/// goes on when the caller does not wait any more.
pub(crate) async fn begin(
    pool: &PgPool,
    statement: &'static str,
    cutoff: &Cutoff,
) -> Result<Transaction<'static, Postgres>, Outage> {
    let (connection, cutoff) = (pool.acquire().await?, cutoff.clone());
    let begin = tokio::spawn(async move {
        let begun = answered(Transaction::begin(connection, Some(statement.into_sql_str()))).await;
        if let Err(Outage::NoAnswer(_)) = begun {
            cutoff.renew();
        }
        begun
    });
    begin.await.unwrap_or(Err(Outage::Sql(sqlx::Error::WorkerCrashed)))
}

/// A pool of the connections that listen, one each for rules, quotas and service documents, for as long as they last.
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

/// What every connection is told first: a transaction that we lost sight of must not hold its locks
/// for long.
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

/// Asked when a connection leaves the pool and when it comes back. The driver asks too, but without
/// a limit: a connection whose server went silent would keep its place until TCP gives up.
async fn still_works(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match timeout(PING_TIMEOUT, connection.ping()).await {
        Ok(pong) => pong.map(|()| !connection.is_in_transaction()),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}
