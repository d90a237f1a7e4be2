//! Who keeps posts.

mod dynamodb;
mod sqlite;

use std::{error::Error as StdError, time::Duration};

use async_trait::async_trait;
use thiserror::Error;
use uuid::Uuid;

use crate::post::Post;

pub use self::{dynamodb::DynamoDbPosts, sqlite::SqlitePosts};

/// Keeps posts.
#[async_trait]
pub trait PostRepository: Send + Sync {
    /// Keeps a new post.
    async fn save(&self, post: &Post) -> Result<(), RepositoryError>;

    /// The post of this id, if there is one.
    async fn find(&self, id: Uuid) -> Result<Option<Post>, RepositoryError>;
}

/// Why a repository did not do what it was asked.
#[derive(Debug, Error)]
pub enum RepositoryError {
    /// The database failed.
    #[error("the database of posts failed: {0}")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
    /// It did not answer.
    #[error("the database of posts did not answer within {0:?}")]
    Timeout(Duration),
    /// What it holds is no post.
    #[error("the database holds something else in place of a post: {0}")]
    NoPost(&'static str),
}

impl RepositoryError {
    fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}
