//! Reservations: made, used, settled and expired.

use super::Account;
use crate::{
    Check, Cost, Lease, LeaseId, Limit, Settled, Spent, Standing, State, Timestamp,
    algorithm::{TakenAt, concurrency::Holder},
};

impl Account {
    /// Takes the cost for a reservation. One that is pending already takes nothing.
    pub(super) fn reserve(
        &mut self,
        check: &Check<'_>,
        id: LeaseId,
        now: Timestamp,
        expires_at: Timestamp,
    ) {
        if self.lease(id).is_some() {
            return;
        }
        let units = check.cost().get();
        self.take(check.limit(), check.cost(), now);
        self.leases.push(Lease { id, units, used: 0, taken_at: now, expires_at, refilled: 0 });
    }

    /// Charges units to a reservation, and makes it hold as many again if they are available.
    pub(super) fn charge(
        &mut self,
        check: &Check<'_>,
        id: LeaseId,
        now: Timestamp,
        expires_at: Timestamp,
    ) {
        let Some(place) = self.lease(id) else { return };
        let mut lease = self.leases.remove(place);
        let (limit, cost) = (check.limit(), check.cost().get());
        let units = check.was_spent().map_or(cost, |spent| spent.charged_after(lease.used));
        let held = units.min(lease.units);
        lease.spend(held, limit.bucket());
        self.record(limit, (units - held).min(self.room(limit, now)), now);
        lease.used = lease.used.saturating_add(units).min(Cost::MAX);
        lease.expires_at = expires_at;
        if lease.units >= units {
            self.leases.insert(place, lease);
            return;
        }
        // All of them anew, so that they have one time. What the reservation still holds is among
        // what is available then.
        self.give_back_lease(limit, &lease, lease.units, now);
        let anew = self.available(limit, now).min(units);
        self.record(limit, anew, now);
        self.leases.push(Lease { units: anew, taken_at: now, refilled: 0, ..lease });
    }

    /// Ends a reservation, for as many units as the check spent.
    pub(super) fn commit(&mut self, check: &Check<'_>, id: LeaseId, now: Timestamp) {
        let Some(lease) = self.release(id) else { return };
        let Some(Spent { units: spent, overdraft, .. }) = check.was_spent() else { return };
        let limit = check.limit();
        let unused = spent.saturating_sub(lease.used);
        let missing = unused.saturating_sub(lease.units);
        let returned = lease.units.saturating_sub(unused);
        self.give_back_lease(limit, &lease, returned, now);
        let available = if overdraft { self.room(limit, now) } else { self.available(limit, now) };
        let taken = missing.min(available);
        self.record(limit, taken, now);
        if self.settled.len() >= Settled::MAX_REMEMBERED {
            self.settled.remove(0);
        }
        let (owed, until) = (missing - taken, lease.expires_at);
        self.settled.push(Settled { id, spent, returned, owed, until });
    }

    pub(super) fn cancel(&mut self, limit: &Limit, id: LeaseId, now: Timestamp) {
        if let Some(lease) = self.release(id) {
            self.give_back_lease(limit, &lease, lease.units, now);
        }
    }

    /// Units that an overdraft can take.
    fn room(&self, limit: &Limit, now: Timestamp) -> u64 {
        limit.room(&self.state, now).saturating_sub(self.granted_units())
    }

    /// Returns the units of reservations that have expired.
    pub(super) fn expire(&mut self, limit: &Limit, now: Timestamp) {
        while let Some(found) = self.leases.iter().position(|lease| lease.expires_at <= now) {
            let lease = self.leases.remove(found);
            self.give_back_lease(limit, &lease, lease.units, now);
        }
    }

    /// Returns `units` of a reservation, as far as they still count.
    pub(super) fn give_back_lease(
        &mut self,
        limit: &Limit,
        lease: &Lease,
        units: u64,
        now: Timestamp,
    ) {
        let Ok(cost) = Cost::new(units) else { return };
        match (limit.bucket(), &mut self.state) {
            (Some(bucket), State::Bucket(state)) => {
                state.give_back(bucket.grains(units).min(lease.returnable(bucket)), now);
            }
            (Some(_), _) => {}
            (None, state) => limit.give_back(state, cost, TakenAt::Known(lease.taken_at), now),
        }
    }

    /// Notes what has refilled of the pending reservations of a bucket, before units are taken at
    /// `at`. See [`lease`](crate::lease).
    pub(super) fn note_refilled(&mut self, limit: &Limit, at: Timestamp) {
        let Some(bucket) = limit.bucket().filter(|_| !self.leases.is_empty()) else { return };
        let debt = if let State::Bucket(state) = &self.state { state.debt(at) } else { 0 };
        let returnable: u128 = self.leases.iter().map(|lease| lease.returnable(bucket)).sum();
        let mut excess = returnable.saturating_sub(debt);
        for lease in &mut self.leases {
            let refilled = lease.returnable(bucket).min(excess);
            lease.refilled += refilled;
            excess -= refilled;
        }
    }

    /// The standing of a reservation.
    pub fn standing(&self, limit: &Limit, id: LeaseId, now: Timestamp) -> Standing {
        if let State::Places(places) = &self.state {
            return places.holder(id).map_or(Standing::Ended, Holder::standing);
        }
        if let Some(found) = self.lease(id) {
            let Lease { units: held, expires_at, .. } = self.leases[found];
            return Standing::Pending { held, expires_at };
        }
        match self.settled.iter().rfind(|settled| settled.id == id) {
            None => Standing::Ended,
            Some(&Settled { spent, owed, .. }) if owed > 0 => Standing::Owing { spent, owed },
            Some(&Settled { spent, returned, .. }) => match limit.debt(&self.state, now) {
                debt if debt > 0 && returned == 0 => Standing::InDebt { spent, debt },
                _ => Standing::Settled { spent, returned },
            },
        }
    }

    /// Returns `true` if the reservation was settled for the same cost as `check` settles it.
    pub(super) fn is_settled(&self, check: &Check<'_>, id: LeaseId) -> bool {
        let last = self.settled.iter().rfind(|settled| settled.id == id);
        let spent = check.was_spent().map(|spent| spent.units);
        last.is_some_and(|settled| spent == Some(settled.spent))
    }

    pub(super) fn lease(&self, id: LeaseId) -> Option<usize> {
        self.leases.iter().position(|lease| lease.id == id)
    }

    fn release(&mut self, id: LeaseId) -> Option<Lease> {
        self.lease(id).map(|found| self.leases.remove(found))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Key, Verb};

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
    const LEASE: Duration = Duration::from_secs(60);
    const SECOND: u64 = 1_000_000;

    /// A bucket that refills one unit a second.
    fn bucket(capacity: u64) -> Limit {
        Limit::token_bucket(capacity, Duration::from_secs(capacity)).unwrap()
    }

    fn perform(account: &mut Account, limit: &Limit, cost: u64, verb: Verb, at: Timestamp) {
        let check = Check::new(Key::new("u").unwrap(), limit, Cost::new(cost).unwrap()).unwrap();
        account.perform(&check, verb, at);
    }

    fn reserve(id: u64) -> Verb {
        Verb::Reserve { id: LeaseId::from(id), lease: LEASE }
    }

    /// Units of each reservation that have refilled.
    fn refilled(account: &Account, limit: &Limit) -> Vec<u128> {
        let unit = limit.bucket().unwrap().grains(1);
        account.leases.iter().map(|lease| lease.refilled / unit).collect()
    }

    #[test]
    fn what_has_refilled_is_that_of_the_oldest_reservations() {
        let limit = bucket(40);
        let mut account = Account::default();
        perform(&mut account, &limit, 3, reserve(1), START);
        perform(&mut account, &limit, 10, reserve(2), START);
        perform(&mut account, &limit, 10, reserve(3), START);
        let later = START.plus(5 * SECOND);
        perform(&mut account, &limit, 1, Verb::Acquire, later);
        assert_eq!(refilled(&account, &limit), [3, 2, 0]);
        for id in [1, 2, 3] {
            account.cancel(&limit, LeaseId::from(id), later);
        }
        assert_eq!(limit.remaining(&account.state, later), 39);
    }

    #[test]
    fn units_that_a_reservation_takes_anew_have_not_refilled() {
        let limit = bucket(20);
        let mut account = Account::default();
        perform(&mut account, &limit, 15, reserve(1), START);
        let later = START.plus(20 * SECOND);
        perform(&mut account, &limit, 1, Verb::Acquire, later);
        assert_eq!(refilled(&account, &limit), [15]);
        let id = LeaseId::from(1);
        perform(&mut account, &limit, 10, Verb::Use { id, lease: LEASE }, later);
        assert_eq!((account.leases[0].units, refilled(&account, &limit)), (10, vec![0]));
        account.cancel(&limit, id, later);
        assert_eq!(limit.remaining(&account.state, later), 19);
    }
}
