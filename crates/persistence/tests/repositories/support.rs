//! Databases for tests, and rules to put into them.

use std::time::Duration;

use headgate::Timestamp;
use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::{
    AuditEntry, AuditFilter, AuditLog, Author, Draft, Page, RateLimitRule, RateLimitRuleRepository,
    RepositoryError, Revision, RuleChange, RuleFilter, RuleSpec,
};
use headgate_testkit::{Postgres, Skip};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Generous timeout: tests share two cores with the servers.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs each test on both databases.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test]
            fn $test() {
                let home = $crate::support::Home::sqlite();
                $crate::support::run(super::$test(&home));
            })+
        }

        mod on_postgres {
            $(#[test]
            fn $test() {
                let home = headgate_testkit::require!($crate::support::Home::postgres());
                $crate::support::run(super::$test(&home));
            })+
        }
    };
}

pub(crate) use on_both;

pub(crate) fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// An empty database that lasts as long as the test.
pub(crate) enum Home {
    Sqlite(TempDir),
    Postgres(headgate_testkit::Database),
}

/// A direct connection to the database, as an operator has.
pub(crate) enum Console {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

// === impl Home ===

impl Home {
    pub(crate) fn sqlite() -> Self {
        // In memory, if there is such a disk: while a busy one writes, writers wait for each other
        // for longer than the product does.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::Sqlite(folder.unwrap())
    }

    pub(crate) fn postgres() -> Result<Self, Skip> {
        Postgres::shared().map(Self::Postgres)
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite://{}/headgate.db", folder.path().display()),
            Self::Postgres(database) => database.url().to_owned(),
        }
    }

    /// Opens the database as a newly started program does.
    pub(crate) fn open(&self) -> Database {
        let config = DatabaseConfig::from_url(&self.url()).unwrap();
        Database::open(&config.max_connections(4).connect_timeout(TIMEOUT))
    }

    /// Opens the database with a maximum number of rules and of quota policies.
    pub(crate) fn open_bounded(&self, max: u64) -> Database {
        let config = DatabaseConfig::from_url(&self.url()).unwrap();
        Database::open(&config.connect_timeout(TIMEOUT).max_rules(max).max_policies(max))
    }

    pub(crate) async fn migrated(&self) -> Database {
        let database = self.open();
        database.migrate().await.unwrap();
        database
    }

    pub(crate) async fn console(&self) -> Console {
        let url = self.url();
        match self {
            Self::Sqlite(_) => Console::Sqlite(SqliteConnection::connect(&url).await.unwrap()),
            Self::Postgres(_) => {
                let mut console = Console::Postgres(PgConnection::connect(&url).await.unwrap());
                console.run("SET search_path = headgate, ratelimit, quota, cn_admin").await;
                console
            }
        }
    }
}

// === impl Console ===

impl Console {
    /// Runs statements; returns the number of changed rows.
    pub(crate) async fn run(&mut self, sql: &str) -> u64 {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(connection) => sql.execute(connection).await.unwrap().rows_affected(),
            Self::Postgres(connection) => sql.execute(connection).await.unwrap().rows_affected(),
        }
    }
}

/// 2026-02-23T10:00:00Z plus milliseconds.
pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_micros(1_771_840_800_000_000 + millis * 1_000)
}

pub(crate) fn author(millis: u64) -> Author {
    Author { actor: "ada".to_owned(), request_id: format!("req_{millis}"), at: at(millis) }
}

/// A limit of 100 requests per `window` seconds.
pub(crate) fn spec(pattern: &str, window: i64) -> RuleSpec {
    draft(pattern, window).validate(None).unwrap()
}

pub(crate) fn draft(pattern: &str, window: i64) -> Draft {
    Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: pattern.to_owned().into(),
        limit: 100.into(),
        window_seconds: window.into(),
        ..Draft::default()
    }
}

pub(crate) async fn create(database: &Database, spec: RuleSpec, millis: u64) -> RateLimitRule {
    try_write(database, RuleChange::Create(spec), millis).await.unwrap()
}

pub(crate) async fn try_write(
    database: &Database,
    change: RuleChange,
    millis: u64,
) -> Result<RateLimitRule, RepositoryError> {
    let rules = database.write(&[change], &author(millis)).await?;
    let [rule] = rules.try_into().unwrap();
    Ok(rule)
}

/// Returns all rules.
pub(crate) async fn revision(database: &Database) -> Revision {
    database.load().await.unwrap().0
}

/// Returns everything that a write could change.
pub(crate) async fn everything(database: &Database) -> (i64, Vec<RateLimitRule>, Vec<AuditEntry>) {
    let all = Page::new(1, Page::MAX_SIZE).unwrap();
    let (revision, loaded) = database.load().await.unwrap();
    let (_, listed) = database.list(&RuleFilter::default(), all).await.unwrap();
    assert_eq!(listed.items.len(), loaded.len());
    let audit = database.entries(&AuditFilter::default(), all).await.unwrap();
    (revision.0, listed.items, audit.items)
}
