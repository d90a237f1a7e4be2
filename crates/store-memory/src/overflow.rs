//! What new keys share once the store is full of live limits.

use std::collections::HashMap;

use headgate::{Account, Limit, Timestamp};

use crate::fingerprint::Shape;

/// One account for every limit: together, all newcomers get what one subject would.
#[derive(Debug, Default)]
pub(crate) struct Overflow {
    accounts: HashMap<Share, Account>,
    /// How many decisions were made here.
    pub(crate) decisions: u64,
    now: Timestamp,
}

/// Limits of one shape and capacity share, at each place of a batch by itself:
/// two newcomers in one batch must not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Share {
    shape: Shape,
    capacity: u64,
    place: usize,
}

impl Overflow {
    /// Limits come from configuration, but some protocols let callers send them.
    const MAX_SHARES: usize = 4096;

    pub(crate) fn tick(&mut self, clock: Timestamp) -> Timestamp {
        self.now = self.now.max(clock);
        self.now
    }

    /// The share of `limit` at `place` in a batch.
    pub(crate) fn share(&self, limit: &Limit, place: usize) -> Share {
        let share = Share { shape: Shape::of(limit), capacity: limit.capacity(), place };
        if self.accounts.len() < Self::MAX_SHARES || self.accounts.contains_key(&share) {
            share
        } else {
            // Past that bound, all limits of one shape share: the smallest decides.
            Share { capacity: 0, ..share }
        }
    }

    pub(crate) fn take(&mut self, share: Share) -> Account {
        self.accounts.remove(&share).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, share: Share, account: Account) {
        self.accounts.insert(share, account);
    }
}
