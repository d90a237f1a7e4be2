//! The database: opened without waiting, migrated, asked whether it is there.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use headgate_ratelimit::RepositoryError;
use sqlx::{PgPool, SqlitePool};
use tokio::time::timeout;

use crate::{
    config::{DatabaseConfig, Place},
    migrations,
    outage::Outage,
    postgres,
    query::QueryObserver,
    session::{ANSWER_TIMEOUT, Observed, Observer, Session},
    sqlite,
    statement::Statement,
};

/// Keeps rules and the audit log. Clones share its connections.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    pool: Pool,
    connect_timeout: Duration,
    observer: Observer,
}

/// The connections to either database.
pub(crate) enum Pool {
    Postgres { pool: PgPool, listening: PgPool, schema: String },
    Sqlite { pool: SqlitePool, file: Option<PathBuf> },
}

// === impl Database ===

impl Database {
    /// The database that `config` names. It connects when it is needed, so that this neither
    /// waits nor fails.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn open(config: &DatabaseConfig) -> Self {
        Self::connect(config, None)
    }

    /// The same, and `observer` is told how long each statement takes.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn open_observed(config: &DatabaseConfig, observer: Arc<dyn QueryObserver>) -> Self {
        Self::connect(config, Some(observer))
    }

    fn connect(config: &DatabaseConfig, observer: Observer) -> Self {
        let pool = match &config.place {
            Place::Postgres(options) => Pool::Postgres {
                pool: postgres::open(options, config),
                listening: postgres::open_listening(options, config),
                schema: config.schema.clone(),
            },
            Place::File(path) => {
                Pool::Sqlite { pool: sqlite::open(path, config), file: Some(path.clone()) }
            }
            Place::Memory => Pool::Sqlite { pool: sqlite::open_in_memory(config), file: None },
        };
        Self(Arc::new(Inner { pool, connect_timeout: config.connect_timeout, observer }))
    }

    /// Makes what is missing of schemas and tables. Must have succeeded once before anything is
    /// read; replicas may do it at the same time.
    pub async fn migrate(&self) -> Result<(), RepositoryError> {
        let migrated = match self.pool() {
            Pool::Postgres { pool, schema, .. } => migrations::run_on_postgres(pool, schema).await,
            Pool::Sqlite { pool, file } => match file.as_deref().map_or(Ok(()), sqlite::create) {
                Ok(()) => migrations::run_on_sqlite(pool).await,
                Err(error) => Err(error.into()),
            },
        };
        migrated.map_err(|outage| self.explained(outage).into())
    }

    /// Asks whether the database answers.
    pub async fn ping(&self) -> Result<(), RepositoryError> {
        let mut session = self.reading().await?;
        session.execute(Statement::new("SELECT 1")).await?;
        Ok(session.commit().await?)
    }

    /// Waits for what is under way and closes all connections; nothing is answered any more.
    pub async fn close(&self) {
        match self.pool() {
            Pool::Postgres { pool, listening, .. } => {
                listening.close().await;
                pool.close().await;
            }
            Pool::Sqlite { pool, .. } => pool.close().await,
        }
    }

    /// A transaction that sees one moment of the database.
    pub(crate) async fn reading(&self) -> Result<Session, Outage> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN").await
    }

    /// A transaction that writes.
    pub(crate) async fn writing(&self) -> Result<Session, Outage> {
        // A SQLite transaction that begins to read cannot always go on to write.
        self.begin("BEGIN", "BEGIN IMMEDIATE").await
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    async fn begin(
        &self,
        on_postgres: &'static str,
        on_sqlite: &'static str,
    ) -> Result<Session, Outage> {
        let observer = self.0.observer.clone();
        let begun = async {
            Ok(match self.pool() {
                Pool::Postgres { pool, .. } => {
                    Session::Postgres(Observed::new(pool.begin_with(on_postgres).await?, observer))
                }
                Pool::Sqlite { pool, .. } => {
                    Session::Sqlite(Observed::new(pool.begin_with(on_sqlite).await?, observer))
                }
            })
        };
        // The pool bounds how long it takes to connect.
        let begun = timeout(self.0.connect_timeout + ANSWER_TIMEOUT, begun).await;
        let begun = begun.map_err(|_| Outage::NoAnswer(ANSWER_TIMEOUT))?;
        begun.map_err(|error: sqlx::Error| self.explained(error.into()))
    }

    /// The pool only says that it waited too long.
    fn explained(&self, outage: Outage) -> Outage {
        match outage {
            Outage::Sql(sqlx::Error::PoolTimedOut) => Outage::NoConnection(self.0.connect_timeout),
            Outage::Migration(sqlx::migrate::MigrateError::Execute(sqlx::Error::PoolTimedOut)) => {
                Outage::NoConnection(self.0.connect_timeout)
            }
            other => other,
        }
    }
}

impl fmt::Debug for Database {
    /// Says nothing of the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.pool() {
            Pool::Postgres { .. } => "postgresql",
            Pool::Sqlite { .. } => "sqlite",
        };
        f.debug_struct("Database").field("kind", &kind).finish_non_exhaustive()
    }
}
