//! What a reservation leaves in a store until it is committed, cancelled or expired.

use std::{collections::hash_map::RandomState, fmt, hash::BuildHasher, time::Duration};

use crate::{Cost, Timestamp};

/// Identifies one reservation, everywhere it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// Units that were taken and come back at `expires_at` unless they are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The reservation this belongs to.
    pub id: LeaseId,
    /// How much was taken.
    pub cost: Cost,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// When it comes back by itself.
    pub expires_at: Timestamp,
}

impl LeaseId {
    /// 64 random bits. Identifiers only have to differ among the reservations that are pending on a key at
    /// a time, of which there are at most [`Lease::MAX_PENDING`]: two of these are alike once in 10^15.
    pub fn random() -> Self {
        // Keys come from the operating system's randomness, once for each thread, and are counted on from
        // there: the hash of the same byte under another key is another number.
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
    /// How many reservations may be pending on one key at a time. One more is refused until the first of
    /// them ends, and told to come back when it runs out, however much room its limit has.
    pub const MAX_PENDING: usize = 128;

    /// The longest a reservation may wait for its commit.
    pub const MAX_DURATION: Duration = Duration::from_secs(3600);
}
