//! The holders of a concurrency limit, as stores list them.

use std::pin::Pin;

use crate::{State, StoreError, Timestamp, algorithm::concurrency::Holder};

/// The holders of a concurrency limit's places at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Time of the list, by the store's clock.
    pub at: Timestamp,
    /// Number of places taken, by all holders.
    pub taken: u64,
    /// Number of holders.
    pub total: u64,
    /// The holders whose leases end first, in that order.
    pub first: Vec<Holder>,
}

/// The answer of a store to [`Store::holders`](crate::Store::holders).
pub type HoldersFuture<'a> = Pin<Box<dyn Future<Output = Result<Holders, StoreError>> + Send + 'a>>;

impl Holders {
    /// Maximum number of holders in one list.
    pub const MAX_LISTED: usize = 1_000;

    /// Lists at most `max` of the holders that `state` has at `now`. The state of another algorithm
    /// has none.
    pub fn of(state: &State, max: usize, now: Timestamp) -> Self {
        let State::Places(places) = state else {
            return Self { at: now, ..Self::default() };
        };
        let live = || places.holders_at(now);
        Self {
            at: now,
            taken: live().map(|holder| u64::from(holder.places)).sum(),
            total: live().count() as u64,
            first: live().take(max).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeaseId;

    #[test]
    fn ended_leases_are_neither_listed_nor_counted() {
        let holder = |n: u64| Holder { id: LeaseId::from(n), places: 2, end: n * 10 };
        let state = State::Places(Box::new((1..=5).map(holder).collect()));
        let listed = Holders::of(&state, 2, Timestamp::from_micros(20));
        assert_eq!((listed.taken, listed.total), (6, 3));
        assert_eq!(listed.first, [holder(3), holder(4)]);
        assert_eq!(Holders::of(&state, 0, Timestamp::from_micros(19)).total, 4);
        let now = Timestamp::from_micros(1);
        let none = Holders { at: now, ..Holders::default() };
        assert_eq!(Holders::of(&State::Fresh, 9, now), none);
    }
}
