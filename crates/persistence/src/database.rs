//! The database and its connections.

use std::{fmt, sync::Arc, time::Duration};

use headgate_quota::Patience;
use headgate_ratelimit::RepositoryError;
use sqlx::{PgPool, SqlitePool};

use crate::{
    config::{DatabaseConfig, Location},
    cutoff::Cutoff,
    migrations::{self, SchemaVersion},
    outage::Outage,
    pool_size::PoolSize,
    postgres,
    query::QueryObserver,
    session::{Session, Watched},
    sqlite::{self, DatabaseFile},
    statement::Statement,
    total::BoundedTotal,
    watch::{Observer, Watch},
};

/// A PostgreSQL or SQLite database. Clones share its connections.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    pool: Pool,
    connect_timeout: Duration,
    watch: Watch,
    rules: BoundedTotal,
    policies: BoundedTotal,
}

/// The connections. Reads by requests have a pool of their own, `requests`: clients decide how many
/// there are and how long they take, and would otherwise leave no connection to the ledger, to the
/// refresh of rules and policies and to the publishers of events.
pub(crate) enum Pool {
    Postgres { pool: PgPool, requests: PgPool, listening: PgPool, schema: String },
    Sqlite { pool: SqlitePool, requests: SqlitePool, file: Option<DatabaseFile> },
}

/// The purpose of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Sees a consistent snapshot.
    Read,
    /// The same, for a request.
    ReadForRequest,
    Write,
    /// Writes, and waits for locks only so long.
    WriteWithin(Patience),
}

/// Writes a row that is never read. It must change, because SQLite skips updates without a
/// difference.
const PROBE: &str = "
    INSERT INTO revisions (name, revision) VALUES ('write_probe', 1)
    ON CONFLICT (name) DO UPDATE SET revision = revisions.revision + 1";

// === impl Database ===

impl Database {
    /// Opens a database. It connects lazily, so this neither waits nor fails.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn open(config: &DatabaseConfig) -> Self {
        Self::connect(config, None)
    }

    /// Opens a database whose statements `observer` measures.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn open_observed(config: &DatabaseConfig, observer: Arc<dyn QueryObserver>) -> Self {
        Self::connect(config, Some(observer))
    }

    fn connect(config: &DatabaseConfig, observer: Observer) -> Self {
        let cutoff = Cutoff::default();
        let pool = match &config.location {
            Location::Postgres(options) => {
                let open = |size| postgres::open(options, config, size, &cutoff);
                let (pool, requests) = divided(config, open);
                let listening = postgres::open_listening(options, config);
                Pool::Postgres { pool, requests, listening, schema: config.schema.clone() }
            }
            Location::File(path) => {
                let open = |size| sqlite::open(path, config, size, &cutoff);
                let (pool, requests) = divided(config, open);
                Pool::Sqlite { pool, requests, file: Some(DatabaseFile::new(path)) }
            }
            Location::Memory => {
                let pool = sqlite::open_in_memory(config);
                Pool::Sqlite { requests: pool.clone(), pool, file: None }
            }
        };
        Self(Arc::new(Inner {
            pool,
            connect_timeout: config.connect_timeout,
            watch: Watch::new(observer, cutoff),
            rules: BoundedTotal::of_rules(config.max_rules),
            policies: BoundedTotal::of_policies(config.max_policies),
        }))
    }

    /// Creates and updates schemas and tables. Must succeed once before anything else; replicas may
    /// run it concurrently.
    ///
    /// # Errors
    ///
    /// Also if the tables are more than [`SchemaVersion::TOLERATED`] versions newer than this
    /// program: it must not touch them.
    pub async fn migrate(&self) -> Result<SchemaVersion, RepositoryError> {
        let watch = &self.0.watch;
        let migrated = match self.pool() {
            Pool::Postgres { pool, schema, .. } => {
                migrations::run_on_postgres(pool, schema, &watch.cutoff).await
            }
            Pool::Sqlite { pool, file: Some(file), .. } => match file.create() {
                Ok(()) => migrations::run_on_sqlite_file(pool).await,
                Err(outage) => Err(outage),
            },
            Pool::Sqlite { pool, file: None, .. } => migrations::run_on_sqlite(pool).await,
        };
        let version = migrated.map_err(|outage| self.explained(outage))?;
        watch.migrated(version);
        Ok(version)
    }

    /// Returns the version of the tables, once they were migrated.
    pub fn schema_version(&self) -> Option<SchemaVersion> {
        self.0.watch.schema_version()
    }

    /// Checks that the database responds.
    pub async fn ping(&self) -> Result<(), RepositoryError> {
        let mut session = self.reading_for_server().await?;
        session.execute(Statement::new("SELECT 1")).await?;
        Ok(session.commit().await?)
    }

    /// Returns the error of the last write, if the database cannot write: a full disk, a read-only
    /// file system, an outage. The next successful write clears it.
    pub fn write_error(&self) -> Option<String> {
        self.0.watch.writes.error()
    }

    /// Writes a probe row, to test if writes succeed again.
    pub async fn probe_writes(&self) -> Result<(), RepositoryError> {
        let mut session = self.writing().await?;
        session.execute(Statement::new(PROBE)).await?;
        Ok(session.commit().await?)
    }

    /// Waits for transactions in flight and closes all connections.
    pub async fn close(&self) {
        match self.pool() {
            Pool::Postgres { pool, requests, listening, .. } => {
                listening.close().await;
                requests.close().await;
                pool.close().await;
            }
            Pool::Sqlite { pool, requests, .. } => {
                requests.close().await;
                pool.close().await;
            }
        }
    }

    /// Begins a transaction that reads a consistent snapshot for a request. It waits for the reads
    /// of other requests, and for nothing else.
    pub(crate) async fn reading(&self) -> Result<Session, Outage> {
        self.begin(Purpose::ReadForRequest).await
    }

    /// Begins a transaction that reads a consistent snapshot for a task of the server, which must
    /// not wait for the reads of requests.
    pub(crate) async fn reading_for_server(&self) -> Result<Session, Outage> {
        self.begin(Purpose::Read).await
    }

    /// Begins a transaction that writes.
    pub(crate) async fn writing(&self) -> Result<Session, Outage> {
        self.begin(Purpose::Write).await
    }

    /// Begins a transaction that writes, and waits for a lock no longer than this.
    pub(crate) async fn writing_within(&self, patience: Patience) -> Result<Session, Outage> {
        self.begin(Purpose::WriteWithin(patience)).await
    }

    /// Returns the number of rules.
    pub(crate) fn rule_total(&self) -> &BoundedTotal {
        &self.0.rules
    }

    /// Returns the number of quota policies.
    pub(crate) fn policy_total(&self) -> &BoundedTotal {
        &self.0.policies
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    async fn begin(&self, purpose: Purpose) -> Result<Session, Outage> {
        let (watch, is_writing) = (self.0.watch.clone(), purpose.is_write());
        let begun = match self.pool() {
            Pool::Postgres { pool, requests, .. } => {
                let pool = if purpose.is_for_request() { requests } else { pool };
                let begun = postgres::begin(pool, purpose.on_postgres(), &watch.cutoff).await;
                begun.map(|begun| Session::Postgres(Watched::new(begun, watch, is_writing)))
            }
            Pool::Sqlite { pool, requests, file } => {
                let pool = if purpose.is_for_request() { requests } else { pool };
                let begun = sqlite::begin(pool, file.as_ref(), purpose.on_sqlite()).await;
                begun.map(|begun| Session::Sqlite(Watched::new(begun, watch, is_writing)))
            }
        };
        begun.map_err(|outage| {
            let outage = self.explained(outage);
            self.0.watch.failed(&outage, is_writing);
            outage
        })
    }

    /// Adds the timeout to an error of the pool, which does not have it.
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

// === impl Purpose ===

impl Purpose {
    const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteWithin(_))
    }

    const fn is_for_request(self) -> bool {
        matches!(self, Self::ReadForRequest)
    }

    const fn on_postgres(self) -> &'static str {
        match self {
            Self::Read | Self::ReadForRequest => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Write => "BEGIN",
            // One round trip, as without the setting. Both are shorter than the timeout of a
            // statement: a lock is in the way of some rows, a slow database in that of all.
            Self::WriteWithin(Patience::Short) => "BEGIN; SET LOCAL lock_timeout = '1s'",
            Self::WriteWithin(Patience::Long) => "BEGIN; SET LOCAL lock_timeout = '4s'",
        }
    }

    const fn on_sqlite(self) -> &'static str {
        match self {
            Self::Read | Self::ReadForRequest => "BEGIN",
            // A SQLite transaction that has read cannot always upgrade to a write lock.
            Self::Write | Self::WriteWithin(_) => "BEGIN IMMEDIATE",
        }
    }
}

/// Opens the server's own pool and that of requests.
fn divided<P: Clone>(config: &DatabaseConfig, open: impl Fn(PoolSize) -> P) -> (P, P) {
    let (own, requests) = PoolSize::divided(config);
    let pool = open(own);
    let requests = requests.map_or_else(|| pool.clone(), open);
    (pool, requests)
}

impl fmt::Debug for Database {
    /// Leaves out the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.pool() {
            Pool::Postgres { .. } => "postgresql",
            Pool::Sqlite { .. } => "sqlite",
        };
        f.debug_struct("Database").field("kind", &kind).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
