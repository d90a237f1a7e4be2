//! Publishes a post: peek, validate, reserve, save, commit.

use std::{net::IpAddr, sync::Arc, time::Duration};

use headgate::Clock;
use thiserror::Error;
use tokio::time::timeout;
use tracing::error;

use crate::{
    claim::Claim,
    cooldown::{Cooldown, LEASE, Refusal},
    identifier::Identifiers,
    post::{Draft, Invalid, Post},
    posts::{PostRepository, RepositoryError},
};

/// Publishes posts.
pub struct Publisher {
    pub(crate) identifiers: Identifiers,
    pub(crate) cooldown: Cooldown,
    pub(crate) posts: Arc<dyn PostRepository>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Reason for not publishing a post.
#[derive(Debug, Error)]
pub enum PublishError {
    /// A cooldown denies it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It could not be saved.
    #[error(transparent)]
    Unsaved(#[from] RepositoryError),
}

/// Timeout of saving a post.
const SAVE_TIMEOUT: Duration = Duration::from_secs(10);

// A reservation must not expire while its post is being saved.
const _: () = assert!(SAVE_TIMEOUT.as_secs() * 2 <= LEASE.as_secs());

impl Publisher {
    /// Publishes `draft`, which came from `address`. A failure starts no cooldown.
    pub async fn publish(&self, address: IpAddr, draft: Draft) -> Result<Post, PublishError> {
        let claim = Claim::new(&self.identifiers, address, &draft);
        let post = match draft.into_post(self.clock.now()) {
            Ok(post) => post,
            Err(invalid) => {
                // A denial comes before a validation error.
                self.cooldown.check(&claim).await?;
                return Err(invalid.into());
            }
        };
        let turn = self.cooldown.reserve(claim).await?;
        match self.save(&post).await {
            Ok(()) => self.cooldown.commit(turn).await,
            Err(error) => {
                self.cooldown.cancel(turn).await;
                return Err(error.into());
            }
        }
        Ok(post)
    }

    async fn save(&self, post: &Post) -> Result<(), RepositoryError> {
        let saved = timeout(SAVE_TIMEOUT, self.posts.save(post)).await;
        let saved = saved.unwrap_or(Err(RepositoryError::Timeout(SAVE_TIMEOUT)));
        saved.inspect_err(|error| error!(%error, "failed to save a post"))
    }
}
