//! The state of one subject under one limit, with its reservations and grants.

mod foresight;
mod places;
mod reservations;

use crate::{
    Check, Cost, Extra, Grant, Lease, Limit, Outcome, Settled, Standing, State, Timestamp, Verb,
    algorithm::TakenAt,
};

/// The state of one subject, and the reference implementation of every [`Verb`].
///
/// Stores may represent states differently, and make the same decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The state of the algorithm.
    pub state: State,
    /// Pending reservations, in the order in which their units were taken.
    pub leases: Vec<Lease>,
    /// The latest reservations that were settled for a cost.
    pub settled: Vec<Settled>,
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
            self.record(limit, grant.units, grant.last());
        }
        self.expire(limit, now);
        self.settled.retain(|settled| settled.until > now);
        if let State::Places(places) = &mut self.state {
            places.prune(now);
        }
    }

    /// Returns `true` if this limit permits `verb`.
    pub fn permits(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        if check.limit().places().is_some() {
            return self.permits_places(check, verb, now);
        }
        let admits = || self.admits(check.limit(), check.cost(), now);
        match verb {
            Verb::Peek | Verb::Acquire | Verb::Lease => admits(),
            Verb::Reserve { id, .. } => match self.standing(check.limit(), id, now) {
                Standing::Pending { .. } => true,
                Standing::Ended => self.leases.len() < Lease::MAX_PENDING && admits(),
                _ => false,
            },
            Verb::Use { id, .. } | Verb::Cancel(id) => self.lease(id).is_some(),
            Verb::Commit(id) => self.lease(id).is_some() || self.is_settled(check, id),
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

    /// Units that can be taken now.
    fn available(&self, limit: &Limit, now: Timestamp) -> u64 {
        limit.remaining(&self.state, now).saturating_sub(self.granted_units())
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
    pub fn perform(&mut self, check: &Check<'_>, verb: Verb, now: Timestamp) {
        let (limit, cost) = (check.limit(), check.cost());
        if let Some(places) = limit.places() {
            self.perform_places(places, check, verb, now);
            return;
        }
        if verb.adopts_limit() || verb.is_by_name() && limit.is_slower_than(&self.state) {
            limit.adopt(&mut self.state, now);
        }
        match verb {
            Verb::Peek | Verb::GiveBack => {}
            Verb::Acquire | Verb::Lease => self.take(limit, cost, now),
            Verb::Reserve { id, lease } => self.reserve(check, id, now, now + lease),
            Verb::Use { id, lease } => self.charge(check, id, now, now + lease),
            Verb::Commit(id) => self.commit(check, id, now),
            Verb::Cancel(id) => self.cancel(limit, id, now),
            Verb::Refund => {
                let taken = check.was_taken_at().map_or(TakenAt::Unknown, TakenAt::Known);
                limit.give_back(&mut self.state, cost, taken, now);
            }
            Verb::Reset => *self = Self::default(),
        }
    }

    /// Takes `cost`, which must fit.
    fn take(&mut self, limit: &Limit, cost: Cost, now: Timestamp) {
        self.note_refilled(limit, now);
        limit.admit(&mut self.state, cost, now);
    }

    /// Takes `units` at `at`, whether they fit or not.
    fn record(&mut self, limit: &Limit, units: u64, at: Timestamp) {
        if let Ok(cost) = Cost::new(units) {
            self.note_refilled(limit, at);
            limit.record(&mut self.state, cost, at);
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
        self.perform(check, verb, now);
        match (verb, check.extra()) {
            // A place has a holder: only that one can spend it.
            (Verb::Lease, Some(extra)) if check.limit().places().is_none() => {
                self.grant(check.limit(), extra, now)
            }
            (Verb::GiveBack, _) => {
                self.give_back(check);
                None
            }
            _ => None,
        }
    }

    /// Grants as much of `extra` as is available.
    fn grant(&mut self, limit: &Limit, extra: Extra, now: Timestamp) -> Option<Grant> {
        let grant = Grant {
            units: self.available(limit, now).min(extra.units()),
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

    /// Records that `verb` was denied: if the limit has changed, the new one applies from here on,
    /// unless the verb names a reservation or a grant.
    pub fn refuse(&mut self, limit: &Limit, verb: Verb, now: Timestamp) {
        if verb.adopts_limit() {
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
        let standing = verb.reservation().map(|id| self.standing(limit, id, now));
        let outcome = limit.outcome(&self.state, cost, now, allowed);
        let mut outcome = outcome.with_reservation(standing);
        if self.leases.is_empty() && self.grants.is_empty() {
            return outcome;
        }
        if let Some(state) = self.abridged(limit, cost, now, allowed) {
            let abridged = Self { state, ..self.without_state() };
            return abridged.outcome_without_expiries(limit, verb, cost, now, allowed);
        }
        outcome.remaining = outcome.remaining.saturating_sub(self.granted_units());
        if allowed {
            // The time until the same cost is admitted is not needed.
            if self.grants.is_empty() {
                outcome.reset_after = self.full_after_expiries(limit, now, outcome.reset_after);
            } else {
                outcome.reset_after = self.foresee(limit, cost, now, false).reset_after;
            }
            return outcome;
        }
        let times = self.foresee(limit, cost, now, self.is_crowded(verb));
        (outcome.reset_after, outcome.retry_after) = (times.reset_after, times.retry_after);
        outcome
    }

    /// The first time at which it equals the account of a new subject, if nothing happens until
    /// then; `now` if it does already.
    pub fn ends_at(&self, limit: &Limit, now: Timestamp) -> Timestamp {
        let full_at = match self.grants.last() {
            None => now.plus(limit.reset_after(&self.state, now)),
            Some(last) => self.full_after_grants(limit, last.until.max(now)),
        };
        let leases = self.leases.iter().map(|lease| lease.expires_at);
        let settled = self.settled.iter().map(|settled| settled.until);
        leases.chain(settled).fold(full_at, Ord::max)
    }

    /// The first time at which a reservation, a settled one or a grant ends: until then there is
    /// nothing to [settle](Self::settle), except places.
    pub fn next_end(&self) -> Timestamp {
        let leases = self.leases.iter().map(|lease| lease.expires_at);
        let settled = self.settled.iter().map(|settled| settled.until);
        let grants = self.grants.iter().map(|grant| grant.until);
        let ends = leases.chain(settled).chain(grants);
        ends.min().unwrap_or(Timestamp::from_micros(u64::MAX))
    }

    /// The time at which all units are available, after the last grant has ended.
    fn full_after_grants(&self, limit: &Limit, last: Timestamp) -> Timestamp {
        let state = self.abridged(limit, Cost::ONE, last, true);
        let state = state.unwrap_or_else(|| self.state.clone());
        let mut later = Self { state, ..self.without_state() };
        for grant in &self.grants {
            later.record(limit, grant.units, grant.last());
        }
        last.plus(limit.reset_after(&later.state, last))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{CheckMode, Key, LeaseId};

    #[test]
    fn read_only_checks_do_not_even_apply_a_new_rate() {
        let now = Timestamp::from_micros(1_000_000);
        let window = Duration::from_secs(60);
        let before = Limit::token_bucket(10, window).unwrap();
        let mut account = Account::default();
        let key = Key::new("u").unwrap();
        account.perform(&Check::new(key, &before, Cost::ONE).unwrap(), Verb::Acquire, now);
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
            account.perform(&check, reserve(n), now);
        }
        assert!(!account.permits(&check, reserve(Lease::MAX_PENDING), now));
        assert!(account.permits(&check, Verb::Acquire, now));
        assert!(account.permits(&check, Verb::Refund, now));
        assert!(!account.permits(&check, Verb::Commit(LeaseId::from(999_999)), now));
    }

    #[test]
    fn grants_have_few_different_ends() {
        let now = Timestamp::from_micros(1_000_000);
        let limit = Limit::token_bucket(100, Duration::from_secs(60)).unwrap();
        let mut account = Account::default();
        let mut grant = |hold_ms| {
            let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
            let extra = Extra::new(2, Duration::from_millis(hold_ms));
            account.act(&check.with_extra(extra), Verb::Lease, now, true)
        };
        for hold_ms in [200, 400, 600, 800] {
            assert!(grant(hold_ms).is_some(), "{hold_ms}");
        }
        assert_eq!(grant(1_000), None, "a fifth end");
        assert!(grant(200).is_some(), "an end that there is already");
    }

    #[test]
    fn an_account_ends_with_all_that_it_holds() {
        let now = Timestamp::from_micros(1_000_000);
        let limit = Limit::token_bucket(10, Duration::from_secs(10)).unwrap();
        let check =
            |cost| Check::new(Key::new("u").unwrap(), &limit, Cost::new(cost).unwrap()).unwrap();
        let mut account = Account::default();
        assert_eq!(account.next_end(), Timestamp::from_micros(u64::MAX));
        assert_eq!(account.ends_at(&limit, now), now);
        // The granted units count as taken when they end, after a second.
        let extra = Extra::new(2, Duration::from_secs(1));
        account.act(&check(5).with_extra(extra), Verb::Lease, now, true);
        assert_eq!(account.next_end(), now.plus(1_000_000));
        assert_eq!(account.ends_at(&limit, now), now.plus(7_000_000));

        let (id, lease) = (LeaseId::from(1), Duration::from_millis(500));
        account.perform(&check(1), Verb::Reserve { id, lease }, now);
        assert_eq!(account.next_end(), now.plus(500_000));
        let settled = check(1).spent(crate::Spent::within_the_limit(1));
        account.perform(&settled, Verb::Commit(id), now);
        assert_eq!(account.next_end(), now.plus(500_000), "a repeated settlement is recognised");
    }
}
