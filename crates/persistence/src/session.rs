//! A transaction on either database, every statement bounded in time.

use std::{sync::Arc, time::Duration};

use sqlx::{Postgres, Sqlite, Transaction};
use tokio::time::{Instant, timeout};

use crate::{
    outage::Outage,
    query::{Query, QueryObserver},
    row::Row,
    statement::Statement,
};

/// How long the database may work on a statement before it gives up by itself.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long we wait for an answer: longer, so that a database which is there says what is wrong.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);

/// A transaction. Unless committed, nothing of it happened.
pub(crate) enum Session {
    Postgres(Observed<Transaction<'static, Postgres>>),
    Sqlite(Observed<Transaction<'static, Sqlite>>),
}

/// A transaction, and who is told how long its statements take.
pub(crate) struct Observed<T> {
    transaction: T,
    observer: Observer,
}

/// Who is told how long statements take, if anybody is.
pub(crate) type Observer = Option<Arc<dyn QueryObserver>>;

// === impl Session ===

impl Session {
    /// Runs a statement and gives its rows.
    pub(crate) async fn rows(&mut self, statement: Statement) -> Result<Vec<Row>, Outage> {
        let (sql, began) = (statement.sql(), Instant::now());
        let answer = answered(async {
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
        if let Some(observer) = self.observer() {
            observer.answered(Query::of(sql), began.elapsed());
        }
        answer
    }

    /// Runs a statement and gives its first row.
    pub(crate) async fn row(&mut self, statement: Statement) -> Result<Option<Row>, Outage> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement that counts: its `total`.
    pub(crate) async fn count(&mut self, statement: Statement) -> Result<u64, Outage> {
        let row = self.row(statement).await?.ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.get::<i64>("total")?.try_into().unwrap_or_default())
    }

    /// Runs a statement that gives nothing.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<(), Outage> {
        self.rows(statement).await.map(drop)
    }

    /// Makes it all so.
    pub(crate) async fn commit(self) -> Result<(), Outage> {
        let (observer, began) = (self.observer().clone(), Instant::now());
        let answer = answered(async {
            match self {
                Self::Postgres(session) => session.transaction.commit().await,
                Self::Sqlite(session) => session.transaction.commit().await,
            }
        })
        .await;
        if let Some(observer) = observer {
            observer.answered(Query::COMMIT, began.elapsed());
        }
        answer
    }

    const fn observer(&self) -> &Observer {
        match self {
            Self::Postgres(session) => &session.observer,
            Self::Sqlite(session) => &session.observer,
        }
    }
}

// === impl Observed ===

impl<T> Observed<T> {
    pub(crate) const fn new(transaction: T, observer: Observer) -> Self {
        Self { transaction, observer }
    }
}

/// What the database answers, if it does.
pub(crate) async fn answered<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Outage> {
    let answer = timeout(ANSWER_TIMEOUT, answer).await;
    answer.map_err(|_| Outage::NoAnswer(ANSWER_TIMEOUT))?.map_err(Outage::Sql)
}
