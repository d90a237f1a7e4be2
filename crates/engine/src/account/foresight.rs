//! What follows from an account, if no more units are taken or returned.

use std::time::Duration;

use smallvec::SmallVec;

use super::Account;
use crate::{Cost, Lease, Limit, Outcome, State, Timestamp, Verb, limit::Parameters};

/// Durations from now on.
pub(super) struct Foreseen {
    pub(super) reset_after: Duration,
    pub(super) retry_after: Duration,
}

impl Foreseen {
    const NEVER: Self = Self { reset_after: Duration::MAX, retry_after: Duration::MAX };
}

impl Account {
    /// The outcome of `verb` and `cost`, as if no reservation expired: units that a reservation
    /// returns then are not foreseen, so that the times are at most too late.
    ///
    /// For a log that is too [long](crate::algorithm::SlidingWindow::MAX_FORESEEN) to foresee more.
    /// It may be [abridged](crate::algorithm::sliding_window::State::abridged).
    pub fn outcome_without_expiries(
        &self,
        limit: &Limit,
        verb: Verb,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Outcome {
        let standing = verb.reservation().map(|id| self.standing(limit, id, now));
        let (state, grants) = (self.state.clone(), self.grants.clone());
        let kept = Self { state, grants, ..Self::default() };
        let mut outcome = kept.outcome(limit, Verb::Peek, cost, now, allowed);
        if !allowed && self.is_crowded(verb) {
            let first = self.leases.iter().map(|lease| lease.expires_at.since(now)).min();
            let first = Duration::from_micros(first.unwrap_or_default());
            outcome.retry_after = outcome.retry_after.max(first);
        }
        outcome.with_reservation(standing)
    }

    /// The state with fewer entries, if it is a log with too many of them to foresee everything.
    pub(super) fn abridged(
        &self,
        limit: &Limit,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Option<State> {
        let (Parameters::SlidingWindow(window), State::Log(log)) =
            (limit.parameters(), &self.state)
        else {
            return None;
        };
        if !window.is_long(log, now) {
            return None;
        }
        let wanted = cost.get().saturating_add(self.granted_units());
        let used = limit.capacity().saturating_sub(limit.remaining(&self.state, now));
        let debt = limit.debt(&self.state, now);
        let leaving = (used + debt).saturating_add(wanted).saturating_sub(limit.capacity());
        let leaving = if allowed { 0 } else { leaving };
        Some(State::Log(window.abridged(log, leaving, now)))
    }

    /// The same account without the state of the algorithm.
    pub(super) fn without_state(&self) -> Self {
        Self {
            state: State::Fresh,
            leases: self.leases.clone(),
            settled: self.settled.clone(),
            grants: self.grants.clone(),
        }
    }

    /// Returns `true` if `verb` makes a reservation, and no more can be pending.
    pub(super) fn is_crowded(&self, verb: Verb) -> bool {
        matches!(verb, Verb::Reserve { .. }) && self.leases.len() >= Lease::MAX_PENDING
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Extra, Key, LeaseId, Standing};

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
    const SECOND: u64 = 1_000_000;
    const WINDOW: Duration = Duration::from_secs(60);

    fn check(limit: &Limit, cost: u64) -> Check<'_> {
        Check::new(Key::new("u").unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
    }

    fn reserve(id: u64, seconds: u64) -> Verb {
        Verb::Reserve { id: LeaseId::from(id), lease: Duration::from_secs(seconds) }
    }

    /// An account of one unit at each of `entries` milliseconds from the start, and the time after
    /// them.
    fn with_log(limit: &Limit, entries: u64) -> (Account, Timestamp) {
        let mut account = Account::default();
        for i in 0..entries {
            account.perform(&check(limit, 1), Verb::Acquire, START.plus(i * 1_000));
        }
        (account, START.plus(entries * 1_000))
    }

    /// What a denial says about this cost.
    fn denial(account: &Account, limit: &Limit, verb: Verb, cost: u64, now: Timestamp) -> Outcome {
        account.outcome(limit, verb, Cost::new(cost).unwrap(), now, false)
    }

    /// The time from `now` until the first `entries` have left the window.
    fn leaves(entries: u64, now: Timestamp) -> Duration {
        let last = START.plus((entries - 1) * 1_000);
        Duration::from_micros(last.plus(60 * SECOND).since(now))
    }

    #[test]
    fn an_answer_about_a_long_log_counts_what_is_granted() {
        let limit = Limit::sliding_window(1_000, WINDOW).unwrap();
        let (mut account, now) = with_log(&limit, 299);
        let extra = Extra::new(10, Duration::from_secs(1));
        account.act(&check(&limit, 1).with_extra(extra), Verb::Lease, now, true).unwrap();
        let denied = denial(&account, &limit, Verb::Acquire, 700, now);
        assert_eq!(denied.remaining, 690);
        assert_eq!(denied.retry_after, leaves(10, now));
    }

    #[test]
    fn an_answer_about_a_long_log_waits_for_a_debt() {
        let limit = Limit::sliding_window(400, WINDOW).unwrap();
        let (mut account, now) = with_log(&limit, 300);
        account.perform(&check(&limit, 1), reserve(1, 3_600), now);
        account.record(&limit, 150, now);
        let denied = denial(&account, &limit, Verb::Acquire, 1, now);
        assert_eq!(denied.remaining, 0);
        assert_eq!(denied.retry_after, leaves(52, now));
    }

    #[test]
    fn an_answer_about_a_long_log_does_not_foresee_expiries() {
        let limit = Limit::sliding_window(300, WINDOW).unwrap();
        let (mut account, now) = with_log(&limit, 299);
        account.perform(&check(&limit, 1), reserve(1, 2), now);
        let denied = denial(&account, &limit, reserve(2, 2), 1, now);
        assert_eq!(denied.retry_after, leaves(1, now), "not the two seconds of the reservation");
        let used = account.outcome(&limit, reserve(1, 2), Cost::ONE, now, true);
        let expires_at = now.plus(2 * SECOND);
        assert_eq!(used.reservation(), Some(Standing::Pending { held: 1, expires_at }));
    }

    #[test]
    fn an_answer_about_a_long_log_waits_for_room_for_a_reservation() {
        let limit = Limit::sliding_window(1_000, WINDOW).unwrap();
        let (mut account, now) = with_log(&limit, 300);
        for i in 0..Lease::MAX_PENDING as u64 {
            account.perform(&check(&limit, 1), reserve(i, 70 + i), now);
        }
        let crowded = denial(&account, &limit, reserve(1_000, 5), 1, now);
        assert_eq!(crowded.retry_after, Duration::from_secs(70));
        let another = denial(&account, &limit, Verb::Acquire, 573, now);
        assert_eq!(another.retry_after, leaves(1, now), "it needs no room");
    }

    #[test]
    fn a_grant_that_ends_makes_no_room_for_a_reservation() {
        let limit = Limit::token_bucket(1_000, WINDOW).unwrap();
        let mut account = Account::default();
        for i in 0..Lease::MAX_PENDING as u64 {
            account.perform(&check(&limit, 1), reserve(i, 5 + i), START);
        }
        let extra = Extra::new(10, Duration::from_secs(1));
        account.act(&check(&limit, 1).with_extra(extra), Verb::Lease, START, true).unwrap();
        let crowded = denial(&account, &limit, reserve(1_000, 5), 1, START);
        assert_eq!(crowded.retry_after, Duration::from_secs(5));
    }
}
