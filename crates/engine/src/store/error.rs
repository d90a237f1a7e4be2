//! The errors of stores.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use thiserror::Error;

/// Error of a store that could not answer.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or the connection was lost during the call.
    #[error("store unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
    /// The store did not answer in time. The call may still have been applied.
    #[error("store did not answer within {0:?}")]
    Timeout(Duration),
    /// The circuit breaker is open after repeated failures: the call was not sent.
    #[error("circuit breaker open: the store failed repeatedly")]
    BreakerOpen,
    /// Too many calls are in flight: this one was not sent.
    #[error("too many calls to the store are in flight: not sent")]
    Overloaded,
    /// The store rejected this call, though it may accept others: it is out of memory for new
    /// subjects, or its access rules forbid the key.
    #[error("store rejected the call: {0}")]
    Refused(String),
    /// Concurrent updates of the same subject won every time, in this many attempts.
    #[error("too much contention on one key: gave up after {0} attempts")]
    Contended(u32),
    /// The stored state was not written by this store.
    #[error("unexpected value stored under this key: {0}")]
    Corrupt(String),
    /// This store does not implement the operation.
    #[error("not supported by this store: {0}")]
    Unsupported(&'static str),
}

impl StoreError {
    /// An outage with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// Returns `true` if the store as a whole is affected, not just one key or this process.
    /// Circuit breakers count these errors.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Timeout(_) | Self::BreakerOpen)
    }

    /// Returns `true` if a retry may succeed.
    pub const fn is_temporary(&self) -> bool {
        !matches!(self, Self::Corrupt(_) | Self::Unsupported(_))
    }

    /// Returns `true` if the call certainly did not reach the store.
    pub const fn is_unsent(&self) -> bool {
        matches!(self, Self::BreakerOpen | Self::Overloaded | Self::Unsupported(_))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn outages_differ_from_errors_of_one_call() {
        let cases = [
            // error, is_outage, is_temporary, is_unsent
            (StoreError::unavailable(io::Error::other("gone")), true, true, false),
            (StoreError::Timeout(Duration::from_secs(1)), true, true, false),
            (StoreError::BreakerOpen, true, true, true),
            (StoreError::Overloaded, false, true, true),
            (StoreError::Contended(20), false, true, false),
            (StoreError::Refused("OOM".into()), false, true, false),
            (StoreError::Corrupt("a string".into()), false, false, false),
            (StoreError::Unsupported("leases"), false, false, true),
        ];
        for (error, is_outage, is_temporary, is_unsent) in cases {
            let is = (error.is_outage(), error.is_temporary(), error.is_unsent());
            assert_eq!(is, (is_outage, is_temporary, is_unsent), "{error}");
        }
    }
}
