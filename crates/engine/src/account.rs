//! The state of one subject under one limit, with its pending reservations and grants.

use std::time::Duration;

use crate::{
    Check, Cost, Extra, Grant, Lease, LeaseId, Limit, Outcome, State, Timestamp, Verb,
    algorithm::TakenAt,
};

/// The state of one subject, and the reference implementation of every [`Verb`].
///
/// Stores may represent states differently, and make the same decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The state of the algorithm.
    pub state: State,
    /// Pending reservations.
    pub leases: Vec<Lease>,
    /// Granted units that may still be spent, one entry for each end, in order. They are not in the
    /// state yet.
    pub grants: Vec<Grant>,
}

impl Account {
    /// Records the units of ended grants and returns those of expired reservations, in order of time.
    pub fn settle(&mut self, limit: &Limit, now: Timestamp) {
        while let Some(grant) = self.grants.first().copied().filter(|grant| grant.until <= now) {
            self.grants.remove(0);
            self.expire(limit, grant.last());
            record(limit, &mut self.state, &grant);
        }
        self.expire(limit, now);
    }

    /// Returns the units of reservations that have expired.
    fn expire(&mut self, limit: &Limit, now: Timestamp) {
        let Self { state, leases, .. } = self;
        leases.retain(|lease| {
            let pending = lease.expires_at > now;
            if !pending {
                limit.give_back(state, lease.cost, TakenAt::Known(lease.taken_at), now);
            }
            pending
        });
    }

    /// Returns `true` if this limit permits `verb`.
    pub fn permits(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        let admits = || self.admits(check.limit(), check.cost(), now);
        match verb {
            Verb::Peek | Verb::Acquire | Verb::Lease => admits(),
            Verb::Reserve { .. } => self.leases.len() < Lease::MAX_PENDING && admits(),
            Verb::Commit(id) | Verb::Cancel(id) => self.lease(id).is_some(),
            Verb::GiveBack => self.granted(check).is_some(),
            Verb::Refund | Verb::Reset => true,
        }
    }

    /// Returns `true` if this limit admits `cost`, besides all granted units.
    pub fn admits(&self, limit: &Limit, cost: Cost, now: Timestamp) -> bool {
        self.with_granted(cost).is_some_and(|cost| limit.admits(&self.state, cost, now))
    }

    /// `cost` and all granted units, which must fit together; `None` if they never do.
    fn with_granted(&self, cost: Cost) -> Option<Cost> {
        if self.grants.is_empty() {
            return Some(cost);
        }
        Cost::new(cost.get() + self.granted_units()).ok()
    }

    fn granted_units(&self) -> u64 {
        self.grants.iter().map(|grant| grant.units).sum()
    }

    /// Position of the grants from which `check` returns units.
    fn granted(&self, check: &Check<'_>) -> Option<usize> {
        let until = check.grant_until()?;
        let has = |grant: &Grant| grant.until == until && grant.units >= check.cost().get();
        self.grants.iter().position(has)
    }

    /// Applies `verb`, which must be [permitted](Self::permits). [`act`](Self::act) grants units and
    /// takes them back.
    pub fn perform(&mut self, limit: &Limit, verb: Verb, cost: Cost, now: Timestamp) {
        if verb != Verb::Peek {
            limit.adopt(&mut self.state, now);
        }
        match verb {
            Verb::Peek | Verb::GiveBack => {}
            Verb::Acquire | Verb::Lease => {
                limit.admit(&mut self.state, cost, now);
            }
            Verb::Reserve { id, lease } => {
                limit.admit(&mut self.state, cost, now);
                let expires_at = now + lease;
                self.leases.push(Lease { id, cost, taken_at: now, expires_at });
            }
            Verb::Commit(id) => {
                self.release(id);
            }
            Verb::Cancel(id) => {
                if let Some(lease) = self.release(id) {
                    let taken = TakenAt::Known(lease.taken_at);
                    limit.give_back(&mut self.state, lease.cost, taken, now);
                }
            }
            Verb::Refund => limit.give_back(&mut self.state, cost, TakenAt::Unknown, now),
            Verb::Reset => *self = Self::default(),
        }
    }

    /// Applies `verb` once the whole batch is decided. `takes` is the result of
    /// [`CheckMode::takes`](crate::CheckMode::takes). Returns what is granted beyond the cost.
    pub fn act(
        &mut self,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        takes: bool,
    ) -> Option<Grant> {
        if check.mode().is_read_only() {
            return None;
        }
        if !takes {
            self.refuse(check.limit(), verb, now);
            return None;
        }
        self.perform(check.limit(), verb, check.cost(), now);
        match (verb, check.extra()) {
            (Verb::Lease, Some(extra)) => self.grant(check.limit(), extra, now),
            (Verb::GiveBack, _) => {
                self.give_back(check);
                None
            }
            _ => None,
        }
    }

    /// Grants as much of `extra` as is available.
    fn grant(&mut self, limit: &Limit, extra: Extra, now: Timestamp) -> Option<Grant> {
        let available = limit.remaining(&self.state, now).saturating_sub(self.granted_units());
        let grant = Grant {
            units: available.min(extra.units()),
            until: Grant::end(limit, extra.hold(), now),
        };
        if grant.units == 0 {
            return None;
        }
        let place = self.grants.partition_point(|it| it.until < grant.until);
        let crowded = self.grants.len() >= Grant::MAX_ENDS;
        match self.grants.get_mut(place) {
            Some(same) if same.until == grant.until => same.units += grant.units,
            _ if crowded => return None,
            _ => self.grants.insert(place, grant),
        }
        Some(grant)
    }

    fn give_back(&mut self, check: &Check<'_>) {
        if let Some(place) = self.granted(check) {
            self.grants[place].units -= check.cost().get();
            self.grants.retain(|grant| grant.units > 0);
        }
    }

    /// Records that `verb` was denied: if the limit has changed, the new one applies from here on.
    pub fn refuse(&mut self, limit: &Limit, verb: Verb, now: Timestamp) {
        if verb != Verb::Peek {
            limit.adopt(&mut self.state, now);
        }
    }

    /// Returns the outcome of `verb` and `cost`, given the state after the decision.
    pub fn outcome(
        &self,
        limit: &Limit,
        verb: Verb,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Outcome {
        let mut outcome = limit.outcome(&self.state, cost, now, allowed);
        if self.leases.is_empty() && self.grants.is_empty() {
            return outcome;
        }
        outcome.remaining = outcome.remaining.saturating_sub(self.granted_units());
        let reserves = matches!(verb, Verb::Reserve { .. });
        let crowded = reserves && !allowed && self.leases.len() >= Lease::MAX_PENDING;
        let times = self.foresee(limit, cost, now, crowded);
        outcome.reset_after = times.reset_after;
        if !allowed {
            outcome.retry_after = times.retry_after;
        }
        outcome
    }

    /// The times at which `cost` is admitted and all units are available, if no more units are
    /// taken or returned. If `crowded`, nothing is admitted before a reservation expires.
    ///
    /// Both are the earliest time that follows from any of the states to come: when a reservation
    /// expires its units return, and when a grant ends its units start to return.
    fn foresee(&self, limit: &Limit, cost: Cost, now: Timestamp, crowded: bool) -> Foreseen {
        let mut later = self.clone();
        let mut foreseen = Foreseen { reset_after: Duration::MAX, retry_after: Duration::MAX };
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

    /// The first time at which it equals the account of a new subject, if nothing happens until
    /// then; `now` if it does already.
    pub fn ends_at(&self, limit: &Limit, now: Timestamp) -> Timestamp {
        let last_grant = self.grants.last().map_or(now, |grant| grant.until.max(now));
        let mut state = self.state.clone();
        for grant in &self.grants {
            record(limit, &mut state, grant);
        }
        let full_at = last_grant.plus(limit.reset_after(&state, last_grant));
        self.leases.iter().map(|lease| lease.expires_at).fold(full_at, Ord::max)
    }

    fn lease(&self, id: LeaseId) -> Option<usize> {
        self.leases.iter().position(|lease| lease.id == id)
    }

    fn release(&mut self, id: LeaseId) -> Option<Lease> {
        self.lease(id).map(|found| self.leases.remove(found))
    }
}

/// Takes the units of a grant that has ended.
fn record(limit: &Limit, state: &mut State, grant: &Grant) {
    if let Ok(units) = Cost::new(grant.units) {
        limit.record(state, units, grant.last());
    }
}

/// Durations from now on.
struct Foreseen {
    reset_after: Duration,
    retry_after: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckMode, Key};

    #[test]
    fn read_only_checks_do_not_even_apply_a_new_rate() {
        let now = Timestamp::from_micros(1_000_000);
        let window = Duration::from_secs(60);
        let before = Limit::token_bucket(10, window).unwrap();
        let mut account = Account::default();
        account.perform(&before, Verb::Acquire, Cost::ONE, now);
        let after = Limit::token_bucket(20, window).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &after, Cost::ONE).unwrap();
        for mode in [CheckMode::Probe, CheckMode::Report] {
            let mut checked = account.clone();
            checked.act(&check.with_mode(mode), Verb::Acquire, now, false);
            assert_eq!(checked, account, "{mode:?}");
        }
        let mut denied = account.clone();
        denied.act(&check, Verb::Acquire, now, false);
        assert_ne!(denied, account, "a denial applies the new rate");
    }

    #[test]
    fn reservations_beyond_the_maximum_are_denied_although_units_are_left() {
        let now = Timestamp::from_micros(1_000_000);
        let limit = Limit::token_bucket(1_000_000, Duration::from_secs(60)).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
        let mut account = Account::default();
        let reserve = |n: usize| {
            let id = LeaseId::from(n as u64);
            Verb::Reserve { id, lease: Duration::from_secs(10) }
        };
        for n in 0..Lease::MAX_PENDING {
            assert!(account.permits(&check, reserve(n), now), "{n}");
            account.perform(&limit, reserve(n), Cost::ONE, now);
        }
        assert!(!account.permits(&check, reserve(Lease::MAX_PENDING), now));
        assert!(account.permits(&check, Verb::Acquire, now));
        assert!(account.permits(&check, Verb::Refund, now));
        assert!(!account.permits(&check, Verb::Commit(LeaseId::from(999_999)), now));
    }
}
