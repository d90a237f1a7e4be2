//! Limits on requests in flight over all instances.

use std::time::Duration;

use headgate::{Lease, Limit, LimitError};
use thiserror::Error;

/// Maximum number of requests in flight over all instances that share a store: of one client, of
/// all clients together, or both.
///
/// A request holds a place in the store under a lease, which is renewed while it is in flight. The
/// places of a process that dies are free when their leases end.
///
/// ```
/// use std::time::Duration;
///
/// use headgate_guard::{Class, SharedInFlight};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 2 of a client and 50 in all; the places of a crashed instance are free after 10 seconds.
/// let limits = SharedInFlight::per_client(2)?.and_in_all(50)?.lease(Duration::from_secs(10))?;
/// let exports = Class::new("exports")?.shared_in_flight(limits);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedInFlight {
    pub(crate) per_client: Option<Limit>,
    pub(crate) total: Option<Limit>,
    pub(crate) lease: Duration,
}

/// Invalid limit or lease of a [`SharedInFlight`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedInFlightError {
    /// The number is 0, or larger than stores support.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The lease is too short to be renewed in time, or too long.
    #[error(
        "the lease of requests in flight must be between {min:?} and {max:?}, got {0:?}",
        min = SharedInFlight::MIN_LEASE,
        max = SharedInFlight::MAX_LEASE
    )]
    Lease(Duration),
}

impl SharedInFlight {
    /// Default lease.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    /// The shortest lease.
    pub const MIN_LEASE: Duration = Duration::from_secs(1);

    /// The longest lease.
    pub const MAX_LEASE: Duration = Lease::MAX_DURATION;

    /// At most `limit` of one client, from 1 to [`Limit::MAX_PLACES`].
    pub fn per_client(limit: u64) -> Result<Self, SharedInFlightError> {
        Ok(Self { per_client: Some(places(limit)?), total: None, lease: Self::DEFAULT_LEASE })
    }

    /// At most `limit` of all clients together, from 1 to [`Limit::MAX_PLACES`].
    pub fn in_all(limit: u64) -> Result<Self, SharedInFlightError> {
        Ok(Self { per_client: None, total: Some(places(limit)?), lease: Self::DEFAULT_LEASE })
    }

    /// At most `limit` of all clients together, too. A request takes both places or none.
    pub fn and_in_all(self, limit: u64) -> Result<Self, SharedInFlightError> {
        Ok(Self { total: Some(places(limit)?), ..self })
    }

    /// Sets the time after which the places of a process that died are free. Default: 30 seconds.
    ///
    /// Leases are renewed every third of it, so a request that ends sooner costs no renewal. A
    /// store that fails for less than half of it loses no place.
    pub fn lease(self, lease: Duration) -> Result<Self, SharedInFlightError> {
        if !(Self::MIN_LEASE..=Self::MAX_LEASE).contains(&lease) {
            return Err(SharedInFlightError::Lease(lease));
        }
        Ok(Self { lease, ..self })
    }
}

/// The limit is the same for any lease, so that a changed lease keeps the holders.
fn places(limit: u64) -> Result<Limit, LimitError> {
    Limit::concurrency(limit, SharedInFlight::MAX_LEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_limit_or_lease_is_an_error() {
        assert_eq!(SharedInFlight::per_client(0), Err(LimitError::Zero.into()));
        assert!(SharedInFlight::in_all(Limit::MAX_PLACES).is_ok());
        let error = SharedInFlight::in_all(Limit::MAX_PLACES + 1).unwrap_err().to_string();
        assert!(error.contains("at most 100000"), "{error}");
        let limits = SharedInFlight::per_client(1).unwrap();
        assert!(limits.clone().and_in_all(0).is_err());
        for (lease, valid) in [(999, false), (1_000, true), (3_600_000, true), (3_600_001, false)] {
            let lease = Duration::from_millis(lease);
            assert_eq!(limits.clone().lease(lease).is_ok(), valid, "{lease:?}");
        }
    }
}
