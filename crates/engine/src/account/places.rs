//! Places of a concurrency limit: taken, renewed and released.
//!
//! A reservation of such a limit is a place, too. It has nothing to settle: whatever was spent, the
//! place is free when the reservation ends. A settlement can be repeated, as that of the other
//! limits of its batch.

use super::Account;
use crate::{
    Check, LeaseId, Place, Standing, State, Timestamp, Verb,
    algorithm::{
        Concurrency,
        concurrency::{self, Holder},
    },
    state::OwnState,
};

impl Account {
    pub(super) fn permits_places(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        let admits = || self.admits(check.limit(), check.cost(), now);
        let has = |id: LeaseId| self.holds(id);
        match verb {
            Verb::Peek => admits(),
            Verb::Acquire | Verb::Lease => check.place().is_some_and(|it| has(it.id)) || admits(),
            Verb::Reserve { id, .. } => has(id) || admits(),
            Verb::Use { id, .. } | Verb::Cancel(id) => has(id),
            Verb::Commit(id) => has(id) || check.was_spent().is_some(),
            Verb::GiveBack => false,
            Verb::Refund | Verb::Reset => true,
        }
    }

    pub(super) fn perform_places(
        &mut self,
        limit: &Concurrency,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
    ) {
        let cost = u32::try_from(check.cost().get()).unwrap_or(u32::MAX);
        let end = |lease: std::time::Duration| {
            limit.end(u64::try_from(lease.as_micros()).unwrap_or(u64::MAX), now)
        };
        let places = concurrency::State::of_mut(&mut self.state);
        match verb {
            Verb::Peek | Verb::GiveBack | Verb::Refund => {}
            Verb::Acquire | Verb::Lease => match check.place() {
                Some(Place { id, lease }) => places.take(id, cost, end(lease)),
                None => places.take(LeaseId::random(), cost, limit.end(u64::MAX, now)),
            },
            Verb::Reserve { id, lease } => places.take(id, cost, end(lease)),
            Verb::Use { id, lease } => {
                places.renew(id, end(lease));
            }
            Verb::Commit(id) | Verb::Cancel(id) => {
                places.release(id);
            }
            Verb::Reset => *self = Self::default(),
        }
    }

    /// Returns `true` if this lease has places.
    pub fn holds(&self, id: LeaseId) -> bool {
        matches!(&self.state, State::Places(places) if places.holder(id).is_some())
    }
}

impl Holder {
    pub(super) fn standing(self) -> Standing {
        Standing::Pending { held: self.places.into(), expires_at: Timestamp::from_micros(self.end) }
    }
}
