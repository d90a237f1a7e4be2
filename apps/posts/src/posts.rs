//! Databases of posts.

mod dynamodb;
mod sqlite;

use std::{error::Error as StdError, time::Duration};

use async_trait::async_trait;
use thiserror::Error;
use uuid::Uuid;

use crate::post::Post;

pub use self::{dynamodb::DynamoDbPosts, sqlite::SqlitePosts};

/// A database of posts.
#[async_trait]
pub trait PostRepository: Send + Sync {
    /// Saves a new post.
    async fn save(&self, post: &Post) -> Result<(), RepositoryError>;

    /// Returns the post with this id.
    async fn find(&self, id: Uuid) -> Result<Option<Post>, RepositoryError>;
}

/// Error of a database of posts.
#[derive(Debug, Error)]
pub enum RepositoryError {
    /// The database failed.
    #[error("the database of posts failed: {0}")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
    /// It timed out.
    #[error("the database of posts timed out after {0:?}")]
    Timeout(Duration),
    /// It holds an invalid post.
    #[error("invalid post in the database: attribute {0}")]
    NoPost(&'static str),
}

impl RepositoryError {
    fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}
