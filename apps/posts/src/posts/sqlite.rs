//! Posts in a SQLite file.

use std::{fs, path::Path, time::Duration};

use async_trait::async_trait;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use uuid::Uuid;

use super::{PostRepository, RepositoryError};
use crate::post::Post;

/// Posts in a SQLite file.
#[derive(Debug)]
pub struct SqlitePosts(SqlitePool);

/// Timeout of waiting for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
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
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await;
        let pool = pool.map_err(RepositoryError::failed)?;
        sqlx::query(SCHEMA).execute(&pool).await.map_err(RepositoryError::failed)?;
        Ok(Self(pool))
    }
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
