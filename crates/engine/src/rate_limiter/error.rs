use thiserror::Error;

use crate::{BatchError, CostError, InvalidCheck, KeyError, StoreError};

/// Error of a [`RateLimiter`](crate::RateLimiter) that could not decide. A denial is a decision,
/// not an error.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// The key is invalid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The cost is invalid.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The limits can never admit the request.
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    /// The limits cannot be checked together.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store did not answer. Stores in memory always do.
    #[error(transparent)]
    Store(#[from] StoreError),
}
