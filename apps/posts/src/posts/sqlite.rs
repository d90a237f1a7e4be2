//! Posts in a SQLite file.

use std::{fs, path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{
    SqlitePool,
    error::DatabaseError,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{PostRepository, RepositoryError};
use crate::post::Post;

/// Posts in a SQLite file.
#[derive(Debug)]
pub struct SqlitePosts(SqlitePool);

/// Timeout of waiting for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of preparing the file at the start.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause before a retry while another process holds the lock.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Primary result codes of SQLite.
const SQLITE_BUSY: u32 = 5;
const SQLITE_LOCKED: u32 = 6;

const PREPARE: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS posts (
        id TEXT PRIMARY KEY NOT NULL,
        nickname TEXT NOT NULL,
        body TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT";

impl SqlitePosts {
    /// Opens the file at `path`; creates it, and its folder, if it is missing.
    pub async fn open(path: &Path) -> Result<Self, RepositoryError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(RepositoryError::failed)?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await;
        let pool = pool.map_err(RepositoryError::failed)?;
        let prepared = timeout(PREPARE_TIMEOUT, prepare(&pool)).await;
        prepared
            .map_err(|_| RepositoryError::Timeout(PREPARE_TIMEOUT))?
            .map_err(RepositoryError::failed)?;
        Ok(Self(pool))
    }
}

/// Switches to WAL, in which readers and writers do not block each other, and creates the table.
/// The mode is stored in the file, so that only the start sets it. SQLite ignores the busy timeout
/// for this lock, which processes that start together compete for; that is why it is retried here.
async fn prepare(pool: &SqlitePool) -> Result<(), sqlx::Error> {
    loop {
        // Both again: that is simple, and either may already be done.
        match sqlx::raw_sql(PREPARE).execute(pool).await {
            Err(error) if is_busy(&error) => sleep(BUSY_PAUSE).await,
            prepared => return prepared.map(drop),
        }
    }
}

/// Returns true if another connection holds the lock that a statement needs.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    let code = code.and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| [SQLITE_BUSY, SQLITE_LOCKED].contains(&(code & 0xff)))
}

#[async_trait]
impl PostRepository for SqlitePosts {
    async fn save(&self, post: &Post) -> Result<(), RepositoryError> {
        let insert =
            "INSERT INTO posts (id, nickname, body, status, created_at) VALUES (?, ?, ?, ?, ?)";
        let insert = sqlx::query(insert)
            .bind(post.id.to_string())
            .bind(&post.nickname)
            .bind(&post.body)
            .bind(&post.status)
            .bind(post.created_at as i64);
        insert.execute(&self.0).await.map(drop).map_err(RepositoryError::failed)
    }

    async fn find(&self, id: Uuid) -> Result<Option<Post>, RepositoryError> {
        let select = "SELECT nickname, body, status, created_at FROM posts WHERE id = ?";
        let select = sqlx::query_as::<_, (String, String, String, i64)>(select);
        let row = select.bind(id.to_string()).fetch_optional(&self.0).await;
        Ok(row.map_err(RepositoryError::failed)?.map(|(nickname, body, status, created_at)| Post {
            id,
            nickname,
            body,
            status,
            created_at: created_at as u64,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use sqlx::{Connection as _, Executor as _, SqliteConnection};
    use tokio::task::JoinSet;

    use super::*;

    /// A reader keeps others from changing the journal mode.
    #[tokio::test]
    async fn opening_waits_for_readers_for_longer_than_the_busy_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("posts.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut reader = SqliteConnection::connect_with(&options).await.unwrap();
        let read = "CREATE TABLE other (id); BEGIN; SELECT * FROM other";
        reader.execute(sqlx::raw_sql(read)).await.unwrap();
        let mut opening = pin!(SqlitePosts::open(&path));
        let waited = timeout(BUSY_TIMEOUT + Duration::from_secs(1), &mut opening).await;
        assert!(waited.is_err(), "{waited:?}");
        reader.execute("COMMIT").await.unwrap();
        opening.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_that_open_a_new_file_at_once_all_succeed() {
        for round in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("data/posts.db");
            let mut opening = JoinSet::new();
            for _ in 0..16 {
                let path = path.clone();
                opening.spawn(async move { SqlitePosts::open(&path).await });
            }
            while let Some(opened) = opening.join_next().await {
                let posts = opened.unwrap().unwrap_or_else(|error| panic!("{round}: {error}"));
                let mode: String =
                    sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&posts.0).await.unwrap();
                assert_eq!(mode, "wal");
            }
        }
    }
}
