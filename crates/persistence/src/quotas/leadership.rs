//! Leader election: the leader holds an advisory lock, which is released with its connection.

use async_trait::async_trait;
use headgate_quota::{Leadership, RepositoryError};
use sqlx::{PgConnection, PgPool};
use tokio::time::timeout;

use crate::{
    Database,
    database::Pool,
    outage::Outage,
    session::{RESPONSE_TIMEOUT, with_timeout},
};

/// Does not wait for the lock.
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('headgate.lead.' || $1, 0))";

/// With SQLite, every process leads: the file is on one machine, and tasks may run twice.
struct AlwaysLeader;

/// The connection that holds the lock.
struct LockHolder(PgConnection);

/// Returns the leadership for `task`, unless another process has it.
pub(super) async fn lead(
    database: &Database,
    task: &str,
) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
    match database.pool() {
        Pool::Sqlite { .. } => Ok(Some(Box::new(AlwaysLeader))),
        // In a task of its own: if the caller is aborted, the response still decides whether the
        // connection holds the lock, and only one without it returns to the pool.
        Pool::Postgres { pool, .. } => {
            let attempt = tokio::spawn(lock(pool.clone(), task.to_owned()));
            Ok(attempt.await.map_err(|_| Outage::Sql(sqlx::Error::WorkerCrashed))??)
        }
    }
}

async fn lock(pool: PgPool, task: String) -> Result<Option<Box<dyn Leadership>>, Outage> {
    let mut connection = with_timeout(pool.acquire()).await?;
    let locked = sqlx::query_scalar(LOCK).bind(task).fetch_one(&mut *connection);
    match with_timeout(locked).await {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(outage) => {
            // The connection may hold the lock: it must not return to the pool.
            connection.close_on_drop();
            return Err(outage);
        }
    }
    // Detached from the pool: dropping the connection releases the lock.
    Ok(Some(Box::new(LockHolder(connection.detach()))))
}

#[async_trait]
impl Leadership for AlwaysLeader {
    async fn holds(&mut self) -> bool {
        true
    }
}

#[async_trait]
impl Leadership for LockHolder {
    async fn holds(&mut self) -> bool {
        let ping = sqlx::query("SELECT 1").execute(&mut self.0);
        timeout(RESPONSE_TIMEOUT, ping).await.is_ok_and(|answer| answer.is_ok())
    }
}
