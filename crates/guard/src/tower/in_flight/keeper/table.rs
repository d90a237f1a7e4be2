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
