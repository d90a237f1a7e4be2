//! Transactions on either database. Every statement has a timeout.

use std::time::Duration;

use sqlx::{Postgres, Sqlite, Transaction};
use tokio::time::{Instant, timeout};

use crate::{outage::Outage, query::Query, row::Row, statement::Statement, watch::Watch};

/// Timeout that the database enforces on a statement.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for a response: longer, so that a healthy database can report its own.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);

/// A transaction, which is rolled back unless committed.
pub(crate) enum Session {
    Postgres(Watched<Transaction<'static, Postgres>>),
    Sqlite(Watched<Transaction<'static, Sqlite>>),
}

/// A transaction whose results are observed.
pub(crate) struct Watched<T> {
    transaction: T,
    watch: Watch,
    is_writing: bool,
}

// === impl Session ===

impl Session {
    /// Runs a statement and returns its rows.
    pub(crate) async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, Outage> {
        let (sql, began) = (statement.sql(), Instant::now());
        let answer = with_timeout(async {
            match self {
                Self::Postgres(session) => {
                    let connection = &mut *session.transaction;
                    let rows = statement.for_postgres().fetch_all(connection).await?;
                    Ok(rows.into_iter().map(Row::Postgres).collect())
                }
                Self::Sqlite(session) => {
                    let connection = &mut *session.transaction;
                    let rows = statement.for_sqlite().fetch_all(connection).await?;
                    Ok(rows.into_iter().map(Row::Sqlite).collect())
                }
            }
        })
        .await;
        let (watch, is_writing) = self.watch();
        watch.took(Query::of(sql), began.elapsed(), answer.as_ref().err());
        answer.inspect_err(|outage| watch.failed(outage, is_writing))
    }

    /// Runs a statement and returns its first row.
    pub(crate) async fn row(&mut self, statement: Statement) -> Result<Option<Row>, Outage> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement and returns its column `total`.
    pub(crate) async fn count(&mut self, statement: Statement) -> Result<u64, Outage> {
        let row = self.row(statement).await?.ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.get::<i64>("total")?.try_into().unwrap_or_default())
    }

    /// Runs a statement without result.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<(), Outage> {
        self.rows(statement).await.map(drop)
    }

    /// Commits.
    pub(crate) async fn commit(self) -> Result<(), Outage> {
        let (watch, is_writing) = self.watch();
        let (watch, began) = (watch.clone(), Instant::now());
        let answer = with_timeout(async {
            match self {
                Self::Postgres(session) => session.transaction.commit().await,
                Self::Sqlite(session) => session.transaction.commit().await,
            }
        })
        .await;
        watch.took(Query::COMMIT, began.elapsed(), answer.as_ref().err());
        match &answer {
            Ok(()) if is_writing => watch.written(),
            Ok(()) => {}
            Err(outage) => watch.failed(outage, is_writing),
        }
        answer
    }

    const fn watch(&self) -> (&Watch, bool) {
        match self {
            Self::Postgres(session) => (&session.watch, session.is_writing),
            Self::Sqlite(session) => (&session.watch, session.is_writing),
        }
    }
}

// === impl Watched ===

impl<T> Watched<T> {
    pub(crate) const fn new(transaction: T, watch: Watch, is_writing: bool) -> Self {
        Self { transaction, watch, is_writing }
    }
}

/// Waits for a response of the database, with a timeout.
pub(crate) async fn with_timeout<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Outage> {
    let answer = timeout(RESPONSE_TIMEOUT, answer).await;
    answer.map_err(|_| Outage::NoResponse(RESPONSE_TIMEOUT))?.map_err(Outage::Sql)
}
