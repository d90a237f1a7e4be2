//! Places that are held under leases: how many at once, not how many in a time.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound::{Excluded, Unbounded},
};

use crate::{Cost, LeaseId, Timestamp};

use super::{Meter, TakenAt};

/// At most `limit` places taken at any time, each under a lease of at most `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

/// The holders, by the ends of their leases. A call takes a time that is logarithmic in their
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    by_end: BTreeMap<(u64, LeaseId), u32>,
    ends: HashMap<LeaseId, u64>,
    total: u64,
}

/// A holder: the places that were taken with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Identifies the lease.
    pub id: LeaseId,
    /// Number of places.
    pub places: u32,
    /// Microsecond at which the lease ends.
    pub end: u64,
}

impl Concurrency {
    /// Number of holders that an answer looks at, in the order in which their leases end: the work
    /// is bounded, also under a limit that is far below the places taken. If more of them are in
    /// the way, `retry_after` is the end of the last lease: at most too late.
    pub const MAX_FORESEEN: usize = 256;

    /// Largest number of places that are taken at a time.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The longest lease, in microseconds.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// The end of a lease that begins at `now`.
    pub fn end(&self, lease: u64, now: Timestamp) -> u64 {
        now.plus(lease.min(self.window)).as_micros()
    }
}

impl State {
    /// Number of holders.
    pub fn len(&self) -> usize {
        self.by_end.len()
    }

    /// Returns `true` if there are no holders.
    pub fn is_empty(&self) -> bool {
        self.by_end.is_empty()
    }

    /// The holders, in the order in which their leases end.
    pub fn holders(&self) -> impl Iterator<Item = Holder> + '_ {
        self.by_end.iter().map(|((end, id), places)| Holder { id: *id, places: *places, end: *end })
    }

    /// The holders whose leases have not ended at `now`, in the order in which they do.
    pub fn holders_at(&self, now: Timestamp) -> impl Iterator<Item = Holder> + '_ {
        let ended = (now.as_micros(), LeaseId::from(u64::MAX));
        let live = self.by_end.range((Excluded(ended), Unbounded));
        live.map(|((end, id), places)| Holder { id: *id, places: *places, end: *end })
    }

    /// The holder with this lease.
    pub fn holder(&self, id: LeaseId) -> Option<Holder> {
        let end = *self.ends.get(&id)?;
        Some(Holder { id, places: *self.by_end.get(&(end, id))?, end })
    }

    /// Frees the places whose leases have ended.
    pub fn prune(&mut self, now: Timestamp) {
        while let Some(first) = self.by_end.first_entry()
            && first.key().0 <= now.as_micros()
        {
            let ((_, id), places) = first.remove_entry();
            self.ends.remove(&id);
            self.total -= u64::from(places);
        }
    }

    /// Takes places, or renews the lease if it has some.
    pub(crate) fn take(&mut self, id: LeaseId, places: u32, end: u64) {
        if !self.renew(id, end) {
            self.by_end.insert((end, id), places);
            self.ends.insert(id, end);
            self.total += u64::from(places);
        }
    }

    /// Changes the end of a lease. Returns `false` if there is none.
    pub(crate) fn renew(&mut self, id: LeaseId, end: u64) -> bool {
        let Some(holder) = self.release(id) else { return false };
        self.by_end.insert((end, id), holder.places);
        self.ends.insert(id, end);
        self.total += u64::from(holder.places);
        true
    }

    /// Ends a lease.
    pub(crate) fn release(&mut self, id: LeaseId) -> Option<Holder> {
        let end = self.ends.remove(&id)?;
        let places = self.by_end.remove(&(end, id))?;
        self.total -= u64::from(places);
        Some(Holder { id, places, end })
    }

    fn taken(&self, now: Timestamp) -> u64 {
        let ended = self.holders().take_while(|holder| holder.end <= now.as_micros());
        self.total - ended.map(|holder| u64::from(holder.places)).sum::<u64>()
    }
}

impl FromIterator<Holder> for State {
    /// The state of these holders, in any order.
    fn from_iter<I: IntoIterator<Item = Holder>>(holders: I) -> Self {
        let mut state = Self::default();
        for Holder { id, places, end } in holders {
            state.take(id, places, end);
        }
        state
    }
}

impl Meter for Concurrency {
    type State = State;

    fn capacity(&self) -> u64 {
        u64::from(self.limit)
    }

    /// Takes places for the longest lease. They cannot be released, because their lease has no
    /// name: see [`Check::holding`](crate::Check::holding).
    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        state.prune(now);
        let admitted = self.admits(state, cost, now);
        if admitted {
            self.record(state, cost, now);
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        state.taken(now) + cost.get() <= u64::from(self.limit)
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        let places = u32::try_from(cost.get()).unwrap_or(u32::MAX);
        state.take(LeaseId::random(), places, self.end(self.window, at));
    }

    /// Nothing: places return when their lease is released or ends.
    fn give_back(&self, _: &mut State, _: Cost, _: TakenAt, _: Timestamp) {}

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        u64::from(self.limit).saturating_sub(state.taken(now))
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        self.remaining(state, now)
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        state.taken(now).saturating_sub(u64::from(self.limit))
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        let last = state.by_end.last_key_value();
        last.map_or(0, |((end, _), _)| end.saturating_sub(now.as_micros()))
    }

    /// If no holder renews or releases its lease before; see
    /// [`MAX_FORESEEN`](Self::MAX_FORESEEN).
    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        let mut in_the_way = (state.taken(now) + cost.get()).saturating_sub(self.limit.into());
        if in_the_way == 0 {
            return 0;
        }
        for holder in state.holders_at(now).take(Self::MAX_FORESEEN) {
            in_the_way = in_the_way.saturating_sub(holder.places.into());
            if in_the_way == 0 {
                return holder.end - now.as_micros();
            }
        }
        self.reset_after(state, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    fn id(n: u64) -> LeaseId {
        LeaseId::from(n)
    }

    #[test]
    fn places_are_free_when_their_lease_ends_and_not_before() {
        let limit = Concurrency { limit: 2, window: 1_000 };
        let mut state = State::default();
        state.take(id(1), 1, limit.end(500, NOW));
        state.take(id(2), 1, limit.end(9_999, NOW));
        assert!(!limit.admits(&state, Cost::ONE, NOW.plus(499)));
        assert_eq!(limit.retry_after(&state, Cost::ONE, NOW), 500);
        assert!(limit.admits(&state, Cost::ONE, NOW.plus(500)));
        assert_eq!(limit.reset_after(&state, NOW), 1_000, "the window is the longest lease");
        state.prune(NOW.plus(500));
        assert_eq!(state.holders().map(|it| it.id).collect::<Vec<_>>(), [id(2)]);
    }

    #[test]
    fn a_repeated_take_renews_the_lease_and_takes_nothing() {
        let limit = Concurrency { limit: 3, window: 1_000 };
        let mut state = State::default();
        state.take(id(1), 2, limit.end(100, NOW));
        state.take(id(1), 3, limit.end(300, NOW));
        assert_eq!(state.holder(id(1)).map(|it| (it.places, it.end)), Some((2, 1_000_300)));
        assert_eq!(limit.remaining(&state, NOW), 1);
        assert!(state.release(id(1)).is_some() && state.release(id(1)).is_none());
        assert!(!state.renew(id(1), 1));
        assert_eq!(state, State::default());
    }

    #[test]
    fn places_without_a_name_are_taken_for_the_longest_lease() {
        let limit = Concurrency { limit: 3, window: 1_000 };
        let mut state = State::default();
        assert!(state.is_empty());
        assert!(limit.admit(&mut state, Cost::new(2).unwrap(), NOW));
        assert!(!state.is_empty());
        assert_eq!((limit.remaining(&state, NOW), limit.room(&state, NOW)), (1, 1));
        assert!(!limit.admit(&mut state, Cost::new(2).unwrap(), NOW.plus(999)));
        assert_eq!(state.len(), 1);
        assert!(limit.admit(&mut state, Cost::new(2).unwrap(), NOW.plus(1_000)));
        assert_eq!(state.holders().map(|it| it.end).collect::<Vec<_>>(), [1_002_000]);
    }

    #[test]
    fn a_lowered_limit_waits_until_enough_leases_have_ended() {
        let lowered = Concurrency { limit: 2, window: 1_000 };
        let state: State =
            (1..=5).map(|n| Holder { id: id(n), places: 1, end: 1_000_000 + n * 10 }).collect();
        assert_eq!(lowered.remaining(&state, NOW), 0);
        assert_eq!(lowered.debt(&state, NOW), 3);
        assert_eq!(lowered.retry_after(&state, Cost::ONE, NOW), 40);
    }

    #[test]
    fn a_limit_that_was_lowered_far_waits_for_the_last_lease() {
        let most = Concurrency::MAX_FORESEEN as u64;
        let state: State =
            (1..=1_000).map(|n| Holder { id: id(n), places: 1, end: 1_000_000 + n * 10 }).collect();
        let wait =
            |limit| Concurrency { limit, window: 1_000_000 }.retry_after(&state, Cost::ONE, NOW);
        assert_eq!(wait(1_001 - most as u32), most * 10, "exact");
        assert_eq!(wait(1_000 - most as u32), 10_000);
    }
}
