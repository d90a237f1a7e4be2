//! Reservations, as stores keep them.
//!
//! The units of a reservation are taken when it is made, and what is not used of them returns when
//! it is settled, cancelled or expires. A window gives back what was taken in it. A bucket refills
//! meanwhile, and what has refilled since must not return a second time: when units are taken from
//! a bucket, all pending reservations together can return no more than what was missing from it
//! just before. What exceeds that has [refilled](Lease::refilled), the oldest reservation first.
//! So whatever returns, the limit could have admitted what is left.

use std::{collections::hash_map::RandomState, fmt, hash::BuildHasher, time::Duration};

use crate::{Timestamp, algorithm::Bucket};

/// Identifies a reservation in every key of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(u64);

/// A pending reservation: units that were taken and return at `expires_at`, unless they are used or
/// committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Identifies the reservation.
    pub id: LeaseId,
    /// Units that it holds, and that are not used yet.
    pub units: u64,
    /// Units that were used: they do not return.
    pub used: u64,
    /// Time at which `units` were taken.
    pub taken_at: Timestamp,
    /// Time at which it expires.
    pub expires_at: Timestamp,
    /// How much of `units` has refilled since, in grains of the
    /// [bucket](crate::algorithm::bucket); 0 for other algorithms.
    pub refilled: u128,
}

/// A reservation that was settled for a cost. It is remembered until it would have expired, so that
/// a repeated settlement gets the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Identifies the reservation.
    pub id: LeaseId,
    /// The cost for which it was settled.
    pub spent: u64,
    /// Units that it held, and that were not spent.
    pub returned: u64,
    /// Units of the cost that were not available, and were not taken.
    pub owed: u64,
    /// Time at which it is forgotten.
    pub until: Timestamp,
}

/// The standing of a reservation under one limit, after a verb that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is pending.
    Pending {
        /// Units that may still be used.
        held: u64,
        /// Time at which it expires.
        expires_at: Timestamp,
    },
    /// It was settled for `spent` units, all of which were taken.
    Settled {
        /// The cost for which it was settled.
        spent: u64,
        /// Units that it held, and that were not spent.
        returned: u64,
    },
    /// It was settled for more than it held, and not all of that was available.
    Owing {
        /// The cost for which it was settled.
        spent: u64,
        /// Units of the cost that were not taken.
        owed: u64,
    },
    /// It was settled for all that it held, or more, and the subject is beyond its limit.
    InDebt {
        /// The cost for which it was settled.
        spent: u64,
        /// Units that the subject has taken beyond the limit at this time. They return first.
        debt: u64,
    },
    /// It was committed, cancelled, has expired, or was never made.
    Ended,
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

    /// Shortest time until a reservation expires.
    pub const MIN_DURATION: Duration = Duration::from_millis(1);

    /// Longest time until a reservation expires.
    pub const MAX_DURATION: Duration = Duration::from_secs(3600);

    /// Grains that can return to `bucket`.
    pub(crate) fn returnable(&self, bucket: &Bucket) -> u128 {
        bucket.grains(self.units).saturating_sub(self.refilled)
    }

    /// Uses `units` of those that it holds.
    pub(crate) fn spend(&mut self, units: u64, bucket: Option<&Bucket>) {
        self.units -= units;
        // What has refilled was used first.
        let grains = bucket.map_or(0, |bucket| bucket.grains(units));
        self.refilled = self.refilled.saturating_sub(grains);
    }
}

impl Settled {
    /// Maximum number of settled reservations that a key remembers: the latest. A repeated
    /// settlement of an earlier one is denied, as of one that has expired; it is not charged twice.
    pub const MAX_REMEMBERED: usize = 16;
}
