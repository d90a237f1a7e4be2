//! How PostgreSQL is connected to.

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

use crate::{config::DatabaseConfig, session::STATEMENT_TIMEOUT};

/// The schema of the rules.
pub(crate) const RATELIMIT_SCHEMA: &str = "ratelimit";

/// The schema of the quotas.
pub(crate) const QUOTA_SCHEMA: &str = "quota";

/// The schema of service documents.
pub(crate) const CN_ADMIN_SCHEMA: &str = "cn_admin";

/// How long a connection may take to show that it works.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// A pool that connects when somebody needs it.
pub(crate) fn open(options: &PgConnectOptions, config: &DatabaseConfig) -> PgPool {
    options_of_pool(config)
        .max_connections(config.max_connections)
        .min_connections(config.min_connections.min(config.max_connections))
        .max_lifetime(config.max_lifetime)
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(still_works(connection)))
        .after_release(|connection, _| Box::pin(still_works(connection)))
        .connect_lazy_with(named(options))
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
    let settings = settings(&config.schema);
    PgPoolOptions::new().acquire_timeout(config.connect_timeout).after_connect(
        move |connection, _| {
            let settings = AssertSqlSafe(settings.clone());
            Box::pin(async move { sqlx::raw_sql(settings).execute(connection).await.map(drop) })
        },
    )
}

/// What every connection is told first. The search path lets statements name tables alone, as
/// SQLite has them; a transaction that we lost sight of must not hold its locks for long.
fn settings(schema: &str) -> String {
    let timeout = STATEMENT_TIMEOUT.as_millis();
    format!(
        "SET search_path = \"{schema}\", {RATELIMIT_SCHEMA}, {QUOTA_SCHEMA}, {CN_ADMIN_SCHEMA};
         SET statement_timeout = {timeout};
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
        Ok(pong) => pong.map(|()| true),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}
