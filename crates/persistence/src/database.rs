//! The database: opened without waiting, migrated, asked whether it is there.

use std::{fmt, sync::Arc, time::Duration};

use headgate_ratelimit::RepositoryError;
use sqlx::{PgPool, SqlitePool};

use crate::{
    config::{DatabaseConfig, Place},
    cutoff::Cutoff,
    migrations::{self, SchemaVersion},
    outage::Outage,
    postgres,
    query::QueryObserver,
    rules::KnownTotal,
    session::{Session, Watched},
    sqlite::{self, DatabaseFile},
    statement::Statement,
    watch::{Observer, Watch},
};

/// Keeps rules and the audit log. Clones share its connections.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    pool: Pool,
    connect_timeout: Duration,
    watch: Watch,
    rules: KnownTotal,
    max_rules: u64,
}

/// The connections to either database.
pub(crate) enum Pool {
    Postgres { pool: PgPool, listening: PgPool, schema: String },
    Sqlite { pool: SqlitePool, file: Option<DatabaseFile> },
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It sees one moment of the database.
    Read,
    Write,
}

/// Changes nothing that anybody reads, and yet writes: SQLite skips an update without a difference.
const PROBE: &str = "
    INSERT INTO revisions (name, revision) VALUES ('write_probe', 1)
    ON CONFLICT (name) DO UPDATE SET revision = revisions.revision + 1";

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
        let cutoff = Cutoff::default();
        let pool = match &config.place {
            Place::Postgres(options) => Pool::Postgres {
                pool: postgres::open(options, config, &cutoff),
                listening: postgres::open_listening(options, config),
                schema: config.schema.clone(),
            },
            Place::File(path) => Pool::Sqlite {
                pool: sqlite::open(path, config, &cutoff),
                file: Some(DatabaseFile::new(path)),
            },
            Place::Memory => Pool::Sqlite { pool: sqlite::open_in_memory(config), file: None },
        };
        Self(Arc::new(Inner {
            pool,
            connect_timeout: config.connect_timeout,
            watch: Watch::new(observer, cutoff),
            rules: KnownTotal::default(),
            max_rules: config.max_rules,
        }))
    }

    /// Makes what is missing of schemas and tables. Must have succeeded once before anything is
    /// read; replicas may do it at the same time.
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
            Pool::Sqlite { pool, file: Some(file) } => match file.create() {
                Ok(()) => migrations::run_on_sqlite_file(pool).await,
                Err(outage) => Err(outage),
            },
            Pool::Sqlite { pool, file: None } => migrations::run_on_sqlite(pool).await,
        };
        let version = migrated.map_err(|outage| self.explained(outage))?;
        watch.migrated(version);
        Ok(version)
    }

    /// Returns the version of the tables, once they were migrated.
    pub fn schema_version(&self) -> Option<SchemaVersion> {
        self.0.watch.schema_version()
    }

    /// Asks whether the database answers.
    pub async fn ping(&self) -> Result<(), RepositoryError> {
        let mut session = self.reading().await?;
        session.execute(Statement::new("SELECT 1")).await?;
        Ok(session.commit().await?)
    }

    /// Returns why the last write failed, if it did for a reason that is not its own: a full disk, a
    /// read-only file system, a database that is away. The next write that succeeds clears it.
    pub fn write_error(&self) -> Option<String> {
        self.0.watch.writes.error()
    }

    /// Writes without changing anything, to find out whether writes succeed again.
    pub async fn probe_writes(&self) -> Result<(), RepositoryError> {
        let mut session = self.writing().await?;
        session.execute(Statement::new(PROBE)).await?;
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
        self.begin(Purpose::Read).await
    }

    /// A transaction that writes.
    pub(crate) async fn writing(&self) -> Result<Session, Outage> {
        self.begin(Purpose::Write).await
    }

    /// What is known of the number of rules, and how many there may be.
    pub(crate) fn rule_bound(&self) -> (&KnownTotal, u64) {
        (&self.0.rules, self.0.max_rules)
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    async fn begin(&self, purpose: Purpose) -> Result<Session, Outage> {
        let (watch, is_writing) = (self.0.watch.clone(), purpose == Purpose::Write);
        let begun = match self.pool() {
            Pool::Postgres { pool, .. } => {
                let begun = postgres::begin(pool, purpose.on_postgres(), &watch.cutoff).await;
                begun.map(|begun| Session::Postgres(Watched::new(begun, watch, is_writing)))
            }
            Pool::Sqlite { pool, file } => {
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

// === impl Purpose ===

impl Purpose {
    const fn on_postgres(self) -> &'static str {
        match self {
            Self::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Write => "BEGIN",
        }
    }

    const fn on_sqlite(self) -> &'static str {
        match self {
            Self::Read => "BEGIN",
            // A SQLite transaction that begins to read cannot always go on to write.
            Self::Write => "BEGIN IMMEDIATE",
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
