//! Pending reservations, as stores keep them.

use std::{collections::hash_map::RandomState, fmt, hash::BuildHasher, time::Duration};

use crate::{Cost, Timestamp};

/// Identifies a reservation in every key of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// Units that were reserved and return at `expires_at` unless they are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The reservation this belongs to.
    pub id: LeaseId,
    /// Reserved units.
    pub cost: Cost,
    /// Time of the reservation.
    pub taken_at: Timestamp,
    /// Time at which it expires.
    pub expires_at: Timestamp,
}

impl LeaseId {
    /// 64 random bits. Identifiers must differ only among the reservations that are pending on a
    /// key at a time, of which there are at most [`Lease::MAX_PENDING`]: the probability of a
    /// collision is 1 in 10^15.
    pub fn random() -> Self {
        // Its keys start from the operating system's randomness in each thread and are incremented
        // with every use, so the hash of the same byte is a new number each time.
        Self(RandomState::new().hash_one(0_u8))
    }

    /// The identifier as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for LeaseId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Lease {
    /// Maximum number of pending reservations per key. Beyond it, reservations are denied until the
    /// first one ends, even if the limit has units left.
    pub const MAX_PENDING: usize = 128;

    /// Longest time until a reservation expires.
    pub const MAX_DURATION: Duration = Duration::from_secs(3600);
}
