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
    /// Number of entries of a log that an answer about the future looks at, so that its cost is
    /// bounded.
    ///
    /// If more than these have to leave the window before a cost is admitted, each further entry
    /// counts as one unit: exact if it is one, and otherwise later than the truth. If a log has
    /// more than these, the answer does not foresee what pending reservations return when they
    /// expire, and is later than the truth if one does. It is never earlier.
    pub const MAX_FORESEEN: usize = 256;

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

    /// Position of the first entry in the window.
    fn first_live(&self, state: &State, now: Timestamp) -> usize {
        state.entries.partition_point(|entry| self.expired(*entry, now))
    }

    fn total(&self, state: &State, now: Timestamp) -> u64 {
        let gone = state.entries.iter().take_while(|entry| self.expired(**entry, now));
        state.total - gone.map(|entry| u64::from(entry.count)).sum::<u64>()
    }

    /// Returns `true` if more entries are in the window than an answer looks at.
    pub(crate) fn is_long(&self, state: &State, now: Timestamp) -> bool {
        state.len() - self.first_live(state, now) > Self::MAX_FORESEEN
    }

    /// Time of the entry after which `units` have left the window, or of a later entry; see
    /// [`MAX_FORESEEN`](Self::MAX_FORESEEN).
    fn leaves_after(&self, state: &State, mut units: u64, now: Timestamp) -> Option<u64> {
        let first = self.first_live(state, now);
        let exact = state.entries.range(first..).take(Self::MAX_FORESEEN);
        for entry in exact {
            if units <= u64::from(entry.count) {
                return Some(entry.at);
            }
            units -= u64::from(entry.count);
        }
        let further = usize::try_from(units - 1).unwrap_or(usize::MAX);
        let place = (first + Self::MAX_FORESEEN).saturating_add(further);
        state.entries.get(place).or(state.entries.back()).map(|entry| entry.at)
    }

    /// A log of at most two entries, which has the same units in the window and the same newest
    /// entry, and from which the oldest `leaving` units leave when an answer says that they do.
    pub(crate) fn abridged(&self, state: &State, leaving: u64, now: Timestamp) -> State {
        let total = self.total(state, now);
        let leaving = leaving.min(total);
        let at = if leaving > 0 { self.leaves_after(state, leaving, now) } else { None };
        State::abridged(total, state.newest().unwrap_or_default(), at.map(|at| (leaving, at)))
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

    /// A log of `total` units, the newest of which are of this time. The units and the time of
    /// `leaving` are those that leave the window first.
    pub fn abridged(total: u64, newest: u64, leaving: Option<(u64, u64)>) -> Self {
        // A debt may exceed what one entry can hold; the total is exact.
        let entry = |at, count: u64| Entry { at, count: count.try_into().unwrap_or(u32::MAX) };
        let (leaving, at) = leaving.unwrap_or_default();
        let entries = if leaving == 0 || leaving >= total || at == newest {
            [entry(newest.max(at), total)].into_iter().filter(|_| total > 0).collect()
        } else {
            VecDeque::from([entry(at, leaving), entry(newest, total - leaving)])
        };
        Self { entries, total }
    }

    /// Removes `count` units from the oldest entries.
    fn remove_oldest(&mut self, mut count: u64) {
        while count > 0
            && let Some(oldest) = self.entries.front_mut()
        {
            let taken = oldest.take(count);
            (count, self.total) = (count - taken, self.total - taken);
            self.entries.pop_front_if(|oldest| oldest.count == 0);
        }
    }

    /// Removes `count` units from the newest entries that are not later than `at`.
    fn remove_until(&mut self, at: Timestamp, mut count: u64) {
        let end = self.entries.partition_point(|entry| entry.at <= at.as_micros());
        let mut start = end;
        while count > 0
            && let Some(entry) = start.checked_sub(1).and_then(|i| self.entries.get_mut(i))
        {
            let taken = entry.take(count);
            (count, self.total) = (count - taken, self.total - taken);
            start -= usize::from(entry.count == 0);
        }
        self.entries.drain(start..end);
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
        let in_the_way = (total + cost.get()).saturating_sub(u64::from(self.limit));
        if in_the_way == 0 {
            return 0;
        }
        let at = self.leaves_after(state, in_the_way, now);
        at.map_or(0, |at| (at + self.window).saturating_sub(now.as_micros()))
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const WINDOW: u64 = 60_000_000;
    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    /// A log of these counts, one each microsecond.
    fn log(counts: impl IntoIterator<Item = u32>) -> State {
        let first = NOW.as_micros() - WINDOW / 2;
        counts.into_iter().zip(first..).map(|(count, at)| Entry { at, count }).collect()
    }

    /// The position of the entry that a check of `cost` waits for.
    fn waits_for(limit: u32, state: &State, cost: u64) -> u64 {
        let window = SlidingWindow { limit, window: WINDOW };
        let wait = window.retry_after(state, Cost::new(cost).unwrap(), NOW);
        wait - WINDOW / 2
    }

    #[test]
    fn retries_are_exact_for_as_many_entries_as_it_looks_at() {
        let most = SlidingWindow::MAX_FORESEEN as u64;
        let state = log(iter::repeat_n(2, 1_000));
        assert_eq!(waits_for(2_000, &state, 1), 0);
        assert_eq!(waits_for(2_000, &state, 101), 50);
        assert_eq!(waits_for(2_000, &state, 2 * most), most - 1);
        // Later than the truth, which is 256, and the newest at the latest.
        assert_eq!(waits_for(2_000, &state, 2 * most + 2), most + 1);
        assert_eq!(waits_for(2_000, &state, 2_000), 999);
    }

    #[test]
    fn retries_are_exact_for_any_number_of_single_units() {
        let state = log(iter::repeat_n(1, 100_000));
        for cost in [1, 256, 257, 5_000, 99_999, 100_000] {
            assert_eq!(waits_for(100_000, &state, cost), cost - 1);
        }
    }

    #[test]
    fn units_are_removed_from_the_newest_not_later_or_from_the_oldest() {
        let first = NOW.as_micros() - WINDOW / 2;
        let mut state = log([1, 2, 3, 4, 5]);
        state.remove_until(Timestamp::from_micros(first + 2), 4);
        let rest = |at, count| Entry { at: first + at, count };
        assert_eq!(state, [rest(0, 1), rest(1, 1), rest(3, 4), rest(4, 5)].into_iter().collect());
        state.remove_oldest(3);
        assert_eq!(state, [rest(3, 3), rest(4, 5)].into_iter().collect());
        assert!(!state.is_empty());
        state.remove_until(Timestamp::from_micros(first + 9), 100);
        assert_eq!(state, State::default());
        assert!(state.is_empty());
    }

    #[test]
    fn an_abridged_log_gives_the_same_answers() {
        let window = SlidingWindow { limit: 2_000, window: WINDOW };
        let state = log(iter::repeat_n(2, 1_000));
        for cost in [1, 100, 700, 2_000] {
            let abridged = window.abridged(&state, cost, NOW);
            assert!(abridged.len() <= 2, "{abridged:?}");
            let cost = Cost::new(cost).unwrap();
            let of = |state| {
                let reset = window.reset_after(state, NOW);
                (window.remaining(state, NOW), reset, window.retry_after(state, cost, NOW))
            };
            assert_eq!(of(&abridged), of(&state), "{cost:?}");
        }
    }

    #[test]
    fn an_abridged_log_has_an_entry_for_what_leaves_and_one_for_the_rest() {
        let entries = |total, leaving| {
            let state = State::abridged(total, 90, leaving);
            assert_eq!(state.total, total);
            state.entries().map(|entry| (entry.at, entry.count)).collect::<Vec<_>>()
        };
        assert_eq!(entries(0, None), []);
        assert_eq!(entries(7, None), [(90, 7)]);
        assert_eq!(entries(7, Some((0, 50))), [(90, 7)]);
        assert_eq!(entries(7, Some((3, 50))), [(50, 3), (90, 4)]);
        assert_eq!(entries(7, Some((3, 90))), [(90, 7)]);
        assert_eq!(entries(7, Some((7, 50))), [(90, 7)]);
    }

    #[test]
    fn a_log_is_long_if_more_is_in_the_window_than_it_looks_at() {
        let most = SlidingWindow::MAX_FORESEEN;
        let window = SlidingWindow { limit: 2_000, window: WINDOW };
        let is_long = |entries, now| window.is_long(&log(iter::repeat_n(1, entries)), now);
        assert!(!is_long(most, NOW));
        assert!(is_long(most + 1, NOW));
        assert!(is_long(2 * most, NOW));
        // The first of them leaves.
        let later = NOW.plus(WINDOW / 2);
        assert!(!is_long(most + 1, later));
        assert!(is_long(most + 2, later));
    }

    #[test]
    fn coalescing_keeps_all_units_and_the_later_time() {
        let mut state = log([1, 2, 3]);
        let newest = state.newest().unwrap();
        state.coalesce();
        let counts = |state: &State| state.entries().map(|it| it.count).collect::<Vec<_>>();
        assert_eq!((counts(&state), state.newest()), (vec![1, 5], Some(newest)));
        state.coalesce();
        state.coalesce();
        assert_eq!((counts(&state), state.newest()), (vec![6], Some(newest)));
    }

    #[test]
    fn units_of_the_same_time_are_one_entry() {
        let state: State =
            [Entry { at: 1, count: 2 }, Entry { at: 1, count: 3 }].into_iter().collect();
        assert_eq!(state.entries().collect::<Vec<_>>(), [Entry { at: 1, count: 5 }]);
    }
}
