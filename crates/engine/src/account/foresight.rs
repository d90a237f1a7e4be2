//! What follows from an account, if no more units are taken or returned.

use std::time::Duration;

use smallvec::SmallVec;

use super::Account;
use crate::{Cost, Lease, Limit, Timestamp};

/// Durations from now on.
pub(super) struct Foreseen {
    pub(super) reset_after: Duration,
    pub(super) retry_after: Duration,
}

impl Foreseen {
    const NEVER: Self = Self { reset_after: Duration::MAX, retry_after: Duration::MAX };
}

impl Account {
    /// The time until all units are available, which is `at_most` if no reservation expires before.
    /// Almost every account with reservations is like this, and copies only its state here.
    pub(super) fn full_after_expiries(
        &self,
        limit: &Limit,
        now: Timestamp,
        at_most: Duration,
    ) -> Duration {
        let mut leases: SmallVec<[&Lease; 8]> = self.leases.iter().collect();
        leases.sort_by_key(|lease| lease.expires_at);
        let (mut reset_after, mut later) = (at_most, None);
        for lease in leases {
            let wait = Duration::from_micros(lease.expires_at.since(now));
            // What expires later returns later.
            if wait >= reset_after {
                break;
            }
            let later =
                later.get_or_insert_with(|| Self { state: self.state.clone(), ..Self::default() });
            later.give_back_lease(limit, lease, lease.units, lease.expires_at);
            let full = Duration::from_micros(limit.reset_after(&later.state, lease.expires_at));
            reset_after = reset_after.min(wait + full);
        }
        reset_after
    }

    /// The times at which `cost` is admitted and all units are available, if no more units are
    /// taken or returned. If `crowded`, nothing is admitted before a reservation expires.
    ///
    /// Both are the earliest time that follows from any of the states to come: when a reservation
    /// expires its units return, and when a grant ends its units start to return.
    pub(super) fn foresee(
        &self,
        limit: &Limit,
        cost: Cost,
        now: Timestamp,
        crowded: bool,
    ) -> Foreseen {
        if self.grants.is_empty() {
            return self.foresee_expiries(limit, cost, now, crowded);
        }
        let mut later = self.clone();
        let mut foreseen = Foreseen::NEVER;
        let mut then = now;
        let mut crowded = crowded;
        loop {
            let after = |micros| Duration::from_micros(then.since(now) + micros);
            if later.grants.is_empty() {
                let reset_after = after(limit.reset_after(&later.state, then));
                foreseen.reset_after = foreseen.reset_after.min(reset_after);
            }
            if !crowded
                && let Some(cost) = later.with_granted(cost)
                && cost.get() <= limit.capacity()
            {
                let retry_after = after(limit.retry_after(&later.state, cost, then));
                foreseen.retry_after = foreseen.retry_after.min(retry_after);
            }
            let grant_ends = later.grants.iter().map(|grant| grant.until).min();
            let expires = later.leases.iter().map(|lease| lease.expires_at).min();
            let Some(next) = grant_ends.into_iter().chain(expires).min() else {
                return foreseen;
            };
            crowded &= expires != Some(next);
            then = next;
            later.settle(limit, then);
        }
    }

    /// The same without grants: only reservations expire.
    fn foresee_expiries(
        &self,
        limit: &Limit,
        cost: Cost,
        now: Timestamp,
        mut crowded: bool,
    ) -> Foreseen {
        let mut later = Self { state: self.state.clone(), ..Self::default() };
        let mut pending: SmallVec<[&Lease; 8]> = self.leases.iter().collect();
        let (mut then, mut foreseen) = (now, Foreseen::NEVER);
        loop {
            let after = |micros| Duration::from_micros(then.since(now) + micros);
            let reset_after = after(limit.reset_after(&later.state, then));
            foreseen.reset_after = foreseen.reset_after.min(reset_after);
            if !crowded && cost.get() <= limit.capacity() {
                let retry_after = after(limit.retry_after(&later.state, cost, then));
                foreseen.retry_after = foreseen.retry_after.min(retry_after);
            }
            let Some(next) = pending.iter().map(|lease| lease.expires_at).min() else {
                return foreseen;
            };
            (crowded, then) = (false, next);
            pending.retain(|lease| {
                let expires = lease.expires_at <= next;
                if expires {
                    later.give_back_lease(limit, lease, lease.units, next);
                }
                !expires
            });
        }
    }
}
