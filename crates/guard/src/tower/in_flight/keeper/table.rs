//! The places of requests, and what has to be done next.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    mem,
};

use tokio::time::Instant;

use super::super::held::{Acquisition, HeldPlace};

/// The places of requests in flight, ordered by their next renewal, and those of requests that have
/// ended.
#[derive(Default)]
pub(super) struct Table {
    held: HashMap<u64, Entry>,
    due: BTreeSet<(Instant, u64)>,
    waiting: VecDeque<Job>,
    last_id: u64,
    /// `true` if a task takes care of this table.
    pub(super) is_running: bool,
}

#[expect(clippy::large_enum_variant, reason = "an entry is kept almost all of the time")]
enum Entry {
    Kept(HeldPlace, Instant),
    /// The task has the place.
    Renewing,
}

/// Something to do for the task.
pub(super) enum Job {
    /// Renews the lease of a request in flight.
    Renew(u64, HeldPlace),
    /// Releases the place of a request that has ended.
    Release(HeldPlace),
    /// Completes a call that takes a place, and releases the place.
    Complete(Acquisition),
}

/// What the task does next.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(super) enum Next {
    Job(Job),
    /// Nothing is due before that time.
    Wait(Option<Instant>),
    /// There is nothing left to take care of.
    Stop,
}

/// Maximum number of places that wait for their release. Further ones are free when their leases
/// end.
const MAX_WAITING: usize = 8_192;

impl Table {
    /// Adds a place that is to be renewed at `due`. Returns its id.
    pub(super) fn insert(&mut self, place: HeldPlace, due: Instant) -> u64 {
        self.last_id += 1;
        self.held.insert(self.last_id, Entry::Kept(place, due));
        self.due.insert((due, self.last_id));
        self.last_id
    }

    /// Ends the request with this id.
    pub(super) fn end(&mut self, id: u64) {
        // A place that is being renewed is released by its renewal.
        if let Some(Entry::Kept(place, due)) = self.held.remove(&id) {
            self.due.remove(&(due, id));
            self.push(Job::Release(place));
        }
    }

    /// Ends all requests.
    pub(super) fn end_all(&mut self) {
        self.due.clear();
        let held = mem::take(&mut self.held).into_values();
        self.waiting.extend(held.filter_map(|entry| match entry {
            Entry::Kept(place, _) => Some(Job::Release(place)),
            Entry::Renewing => None,
        }));
    }

    /// Puts a place back after a renewal. Returns it if its request has ended meanwhile.
    pub(super) fn put_back(
        &mut self,
        id: u64,
        place: HeldPlace,
        due: Instant,
    ) -> Option<HeldPlace> {
        let Some(entry) = self.held.get_mut(&id) else { return Some(place) };
        *entry = Entry::Kept(place, due);
        self.due.insert((due, id));
        None
    }

    /// Adds a job, unless too many wait.
    pub(super) fn push(&mut self, job: Job) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(job);
        }
    }

    /// Forgets the jobs that wait. The leases end by themselves.
    pub(super) fn take_waiting(&mut self) -> VecDeque<Job> {
        mem::take(&mut self.waiting)
    }

    /// Renewals that are due come first: a late release costs less than a lost place. `is_idle`
    /// says that the task has no calls under way.
    pub(super) fn next(&mut self, now: Instant, is_idle: bool) -> Next {
        if let Some((due, id)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            let entry = self.held.get_mut(&id).map(|entry| mem::replace(entry, Entry::Renewing));
            if let Some(Entry::Kept(place, _)) = entry {
                return Next::Job(Job::Renew(id, place));
            }
        }
        if let Some(job) = self.waiting.pop_front() {
            return Next::Job(job);
        }
        if is_idle && self.held.is_empty() {
            self.is_running = false;
            return Next::Stop;
        }
        Next::Wait(self.due.first().map(|(due, _)| *due))
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, sync::Arc, time::Duration};

    use headgate::BatchLimiter;

    use super::*;
    use crate::{Backend, SharedInFlight, name::Name, tower::in_flight::Places};

    const SECOND: Duration = Duration::from_secs(1);

    async fn places(count: usize) -> Vec<HeldPlace> {
        let backend = Backend::memory();
        let (limiter, address) = (BatchLimiter::new(backend.store()), Ipv4Addr::LOCALHOST.into());
        let limits = SharedInFlight::per_client(1).unwrap();
        let limits = Arc::new(Places::new(Name::new("exports").unwrap(), limits, &backend));
        let permit = limits.acquire(&limiter, &backend, address).await.unwrap().unwrap();
        let place = || HeldPlace {
            places: Arc::clone(&limits),
            address,
            permit: permit.clone(),
            ends: Instant::now(),
            is_lost: false,
        };
        std::iter::repeat_with(place).take(count).collect()
    }

    fn renewed(next: Next) -> Option<(u64, HeldPlace)> {
        match next {
            Next::Job(Job::Renew(id, place)) => Some((id, place)),
            _ => None,
        }
    }

    #[tokio::test]
    async fn renewals_come_in_order_and_before_releases() {
        let (mut table, now) = (Table::default(), Instant::now());
        let mut held = places(3).await.into_iter();
        let mut insert = |due| table.insert(held.next().unwrap(), due);
        let [late, early, ended] = [now + 2 * SECOND, now + SECOND, now].map(&mut insert);
        table.end(ended);
        for (now, id) in [(now + SECOND, early), (now + 2 * SECOND, late)] {
            let (due, place) = renewed(table.next(now, false)).unwrap();
            assert_eq!(due, id);
            assert!(table.put_back(id, place, now + SECOND * 10).is_none());
        }
        assert!(matches!(table.next(now, false), Next::Job(Job::Release(_))));
        let due = now + SECOND * 11;
        assert!(matches!(table.next(now, true), Next::Wait(Some(at)) if at == due));
    }

    #[tokio::test]
    async fn a_place_whose_request_ends_during_its_renewal_is_released_by_the_renewal() {
        for end in [|table: &mut Table, id| table.end(id), |table: &mut Table, _| table.end_all()] {
            let (mut table, now) = (Table::default(), Instant::now());
            let id = table.insert(places(1).await.remove(0), now);
            let (_, place) = renewed(table.next(now, true)).unwrap();
            end(&mut table, id);
            assert!(matches!(table.next(now, false), Next::Wait(None)), "the renewal is under way");
            assert!(table.put_back(id, place, now).is_some());
            assert!(matches!(table.next(now, true), Next::Stop));
        }
    }

    #[tokio::test]
    async fn releases_that_wait_are_bounded() {
        let (mut table, now) = (Table::default(), Instant::now());
        for place in places(MAX_WAITING + 10).await {
            let id = table.insert(place, now + SECOND);
            table.end(id);
        }
        assert_eq!(table.take_waiting().len(), MAX_WAITING);
        assert!(table.held.is_empty() && table.due.is_empty());
    }
}
