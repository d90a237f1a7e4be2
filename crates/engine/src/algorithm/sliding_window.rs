//! The exact log: every admitted request is recorded until it leaves the window.

use std::collections::VecDeque;

use crate::{Cost, Limit, Timestamp};

use super::{Meter, TakenAt};

/// At most `limit` units in any interval of the length of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

/// The log of admitted units, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    entries: VecDeque<Entry>,
    total: u64,
}

/// Units admitted at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since the epoch.
    pub at: u64,
    /// Units.
    pub count: u32,
}

impl SlidingWindow {
    /// Units admitted in any window.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The window in microseconds.
    pub const fn window(&self) -> u64 {
        self.window
    }

    const fn expired(&self, entry: Entry, now: Timestamp) -> bool {
        entry.at.saturating_add(self.window) <= now.as_micros()
    }

    fn live<'s>(&self, state: &'s State, now: Timestamp) -> impl Iterator<Item = Entry> + 's {
        let window = self.window;
        state.entries.iter().copied().skip_while(move |entry| entry.at + window <= now.as_micros())
    }

    fn total(&self, state: &State, now: Timestamp) -> u64 {
        let gone = state.entries.iter().take_while(|entry| self.expired(**entry, now));
        state.total - gone.map(|entry| u64::from(entry.count)).sum::<u64>()
    }

    /// Deletes the entries that have left the window.
    pub fn prune(&self, state: &mut State, now: Timestamp) {
        while let Some(entry) = state.entries.pop_front_if(|entry| self.expired(*entry, now)) {
            state.total -= u64::from(entry.count);
        }
    }
}

impl State {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().copied()
    }

    /// Time of the newest entry.
    pub fn newest(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.at)
    }

    /// Merges the two newest entries into one at the later time. That can only make the limit
    /// stricter, and saves space.
    pub fn coalesce(&mut self) {
        if self.entries.len() >= 2
            && let Some(newest) = self.entries.pop_back()
            && let Some(last) = self.entries.back_mut()
        {
            *last = Entry { at: newest.at, count: last.count + newest.count };
        }
    }

    fn push(&mut self, at: u64, count: u64) {
        self.total += count;
        match self.entries.back_mut() {
            Some(last) if last.at == at => last.count += count as u32,
            _ => self.entries.push_back(Entry { at, count: count as u32 }),
        }
    }

    /// Removes `count` units from the oldest entries.
    fn remove_oldest(&mut self, mut count: u64) {
        for entry in &mut self.entries {
            count -= entry.take(count);
        }
        self.tidy();
    }

    /// Removes `count` units from the newest entries that are not later than `at`.
    fn remove_until(&mut self, at: Timestamp, mut count: u64) {
        let entries = self.entries.iter_mut().rev();
        for entry in entries.skip_while(|entry| entry.at > at.as_micros()) {
            if count == 0 {
                break;
            }
            count -= entry.take(count);
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.entries.retain(|entry| entry.count > 0);
        self.total = self.entries.iter().map(|entry| u64::from(entry.count)).sum();
    }
}

impl Entry {
    /// Removes up to `count` units; returns how many.
    fn take(&mut self, count: u64) -> u64 {
        let taken = u64::from(self.count).min(count);
        self.count -= taken as u32;
        taken
    }
}

impl FromIterator<Entry> for State {
    /// The log of these entries, oldest first.
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut state = Self::default();
        for Entry { at, count } in entries {
            state.push(at, u64::from(count));
        }
        state
    }
}

impl Meter for SlidingWindow {
    type State = State;

    fn capacity(&self) -> u64 {
        u64::from(self.limit)
    }

    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        self.prune(state, now);
        let admitted = state.total + cost.get() <= u64::from(self.limit);
        if admitted {
            state.push(now.as_micros(), cost.get());
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        self.total(state, now) + cost.get() <= u64::from(self.limit)
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        state.push(at.as_micros(), cost.get());
    }

    fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        self.prune(state, now);
        match taken {
            // Removing earlier units than those that return is stricter, never more generous: what
            // stays leaves the window later.
            TakenAt::Known(at) => state.remove_until(at, cost.get()),
            TakenAt::Unknown => state.remove_oldest(cost.get()),
        }
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        u64::from(self.limit).saturating_sub(self.total(state, now))
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        let most = u64::from(self.limit) * (1 + Limit::MAX_DEBT);
        most.saturating_sub(self.total(state, now))
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        self.total(state, now).saturating_sub(u64::from(self.limit))
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        state.newest().map_or(0, |at| (at + self.window).saturating_sub(now.as_micros()))
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        let total = self.total(state, now);
        let mut in_the_way = (total + cost.get()).saturating_sub(u64::from(self.limit));
        let mut wait = 0;
        for entry in self.live(state, now) {
            if in_the_way == 0 {
                break;
            }
            in_the_way = in_the_way.saturating_sub(u64::from(entry.count));
            wait = entry.at + self.window - now.as_micros();
        }
        wait
    }
}
