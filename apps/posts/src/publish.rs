//! The flow of a post.

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

/// Why nothing was published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// Not now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Never like this.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It could not be saved.
    #[error(transparent)]
    Unsaved(#[from] RepositoryError),
}

/// How long saving may take.
const PATIENCE: Duration = Duration::from_secs(10);

// A turn must not come back while its post is being saved.
const _: () = assert!(PATIENCE.as_secs() * 2 <= LEASE.as_secs());

impl Publisher {
    /// Publishes `draft`, which came from `address`. Whatever goes wrong on the way costs its author nothing.
    pub async fn publish(&self, address: IpAddr, draft: Draft) -> Result<Post, PublishError> {
        let claim = Claim::new(&self.identifiers, address, &draft);
        let post = match draft.into_post(self.clock.now()) {
            Ok(post) => post,
            Err(invalid) => {
                // Who is limited hears of that first.
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
        let saved = timeout(PATIENCE, self.posts.save(post)).await;
        let saved = saved.unwrap_or(Err(RepositoryError::Timeout(PATIENCE)));
        saved.inspect_err(|error| error!(%error, "Cannot save a post"))
    }
}
