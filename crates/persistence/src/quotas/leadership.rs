//! Who does what only one process does: whoever holds a lock that goes with its connection.

use async_trait::async_trait;
use headgate_quota::{Leadership, RepositoryError};
use sqlx::{PgConnection, PgPool};
use tokio::time::timeout;

use crate::{
    Database,
    database::Pool,
    outage::Outage,
    session::{ANSWER_TIMEOUT, answered},
};

/// Nobody waits: who does not get it asks again.
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('headgate.lead.' || $1, 0))";

/// A SQLite file is one machine's, and its tasks can do no harm twice.
struct Alone;

/// A connection that holds the lock, and no other does.
struct Locked(PgConnection);

/// The right to do `task`, unless another process has it.
pub(super) async fn lead(
    database: &Database,
    task: &str,
) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
    match database.pool() {
        Pool::Sqlite { .. } => Ok(Some(Box::new(Alone))),
        Pool::Postgres { pool, .. } => Ok(lock(pool, task).await?),
    }
}

async fn lock(pool: &PgPool, task: &str) -> Result<Option<Box<dyn Leadership>>, Outage> {
    let mut connection = answered(pool.acquire()).await?;
    let locked = sqlx::query_scalar(LOCK).bind(task).fetch_one(&mut *connection);
    match answered(locked).await {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(outage) => {
            // It may hold the lock without anybody knowing: it must not live on in the pool.
            connection.close_on_drop();
            return Err(outage);
        }
    }
    // Not the pool's any more: the lock is given up with the connection.
    Ok(Some(Box::new(Locked(connection.detach()))))
}

#[async_trait]
impl Leadership for Alone {
    async fn holds(&mut self) -> bool {
        true
    }
}

#[async_trait]
impl Leadership for Locked {
    async fn holds(&mut self) -> bool {
        let ping = sqlx::query("SELECT 1").execute(&mut self.0);
        timeout(ANSWER_TIMEOUT, ping).await.is_ok_and(|answer| answer.is_ok())
    }
}
