//! The subjects of which this process holds something.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use headgate::{Check, Key, Outcome};

use crate::{
    answer::CallTimes,
    fingerprint::{Fingerprint, Fingerprints},
    flight::{Boarding, Ended, Flight, Waiting},
    holding::{Holding, Local, Return, Turn, as_micros},
    recent::Recent,
};

/// The subjects of which this process holds something, in bounded memory.
#[derive(Debug)]
pub(crate) struct Holdings {
    fingerprints: Fingerprints,
    shards: Box<[Mutex<Shard>]>,
    recent: Recent,
    /// Subjects of a shard.
    capacity: usize,
    /// Units granted under earlier limits, which go back at once.
    outdated: Mutex<Vec<Return>>,
}

#[derive(Debug, Default)]
struct Shard {
    subjects: HashMap<Fingerprint, Holding, BuildHasherDefault<Half>>,
    /// The subjects in the order in which they are looked at when room is needed.
    order: VecDeque<Fingerprint>,
}

/// The second half of a fingerprint, which is a hash already.
#[derive(Clone, Copy, Debug, Default)]
struct Half(u64);

impl Holdings {
    const SHARDS: usize = 64;

    /// Subjects that are looked at when a shard is full.
    const PROBES: usize = 16;

    /// Maximum number of [`outdated`](Self::outdated) grants. More go back when they are due.
    const MAX_OUTDATED: usize = 65_536;

    pub(crate) fn new(capacity: usize, fingerprints: Fingerprints) -> Self {
        Self {
            fingerprints,
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            recent: Recent::new(capacity),
            capacity: (capacity / Self::SHARDS).max(1),
            outdated: Mutex::default(),
        }
    }

    pub(crate) fn fingerprint(&self, key: Key<'_>) -> Fingerprint {
        self.fingerprints.of(key)
    }

    fn shard(&self, subject: Fingerprint) -> MutexGuard<'_, Shard> {
        lock(&self.shards[subject.0 as usize % Self::SHARDS])
    }

    /// Applies `f` to what is held of a subject, if there is something.
    pub(crate) fn with<T>(
        &self,
        subject: Fingerprint,
        f: impl FnOnce(&mut Holding) -> T,
    ) -> Option<T> {
        self.shard(subject).subjects.get_mut(&subject).map(f)
    }

    /// Decides a check from what is held, if that is enough.
    pub(crate) fn decide(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        turn: Turn,
        now: u64,
    ) -> Local {
        let mut shard = self.shard(subject);
        match shard.subjects.get_mut(&subject) {
            Some(holding) if holding.is_of(check.limit()) => holding.decide(check, turn, now),
            _ => Local::Unknown,
        }
    }

    /// What the store said about a check a moment ago.
    pub(crate) fn recall(&self, check: &Check<'_>, now: u64) -> Option<Outcome> {
        let recall = |holding: &mut Holding| {
            holding.is_of(check.limit()).then(|| holding.recall(check, now)).flatten()
        };
        self.with(self.fingerprint(check.key()), recall).flatten()
    }

    /// Joins the call that is under way for the subject if it `may_wait`, or starts one.
    pub(crate) fn board(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        now: u64,
        may_wait: bool,
    ) -> Boarding<'_> {
        let mut shard = self.shard(subject);
        let since = match check.extra() {
            Some(extra) if !shard.subjects.contains_key(&subject) => {
                match self.recent.see(subject, now, as_micros(extra.hold())) {
                    Some(since) => since,
                    None => return Boarding::Stranger,
                }
            }
            _ => now,
        };
        let Some(holding) = self.entry_to_board(&mut shard, subject, check, since, now) else {
            return Boarding::Alone;
        };
        match &holding.flight {
            Some(_) if !may_wait => Boarding::Alone,
            Some(ended) => Boarding::Waits(Waiting::new(self, subject, Arc::clone(ended))),
            None => {
                let ended = Arc::new(Ended::default());
                holding.flight = Some(Arc::clone(&ended));
                Boarding::Leads(Flight::new(self, subject, ended))
            }
        }
    }

    /// The entry of a subject for which requests share calls: one that is leased and of which more is
    /// needed, or one that was denied the last time, and maybe still is.
    fn entry_to_board<'s>(
        &self,
        shard: &'s mut Shard,
        subject: Fingerprint,
        check: &Check<'_>,
        since: u64,
        now: u64,
    ) -> Option<&'s mut Holding> {
        if check.extra().is_none() {
            let known = shard.subjects.get_mut(&subject);
            return known.filter(|holding| holding.was_denied(check));
        }
        let holding = self.entry(shard, subject, check, since, now)?;
        holding.needs_call(check, now).then_some(holding)
    }

    /// The units to take in advance, so that at most `most` are held.
    pub(crate) fn worth(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        now: u64,
        hold: u64,
        most: u64,
    ) -> u64 {
        self.with(subject, |holding| {
            if holding.is_of(check.limit()) { holding.order(now, hold, most) } else { 0 }
        })
        .unwrap_or_default()
    }

    /// Learns from an answer of the store; `is_denied` says that one of the batch's limits denied.
    /// Returns the units that are lost: of grants that have ended, or for which there is no room.
    pub(crate) fn learn(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        outcome: &Outcome,
        is_denied: bool,
        times: CallTimes,
        hold: u64,
    ) -> u64 {
        let mut shard = self.shard(subject);
        let matters =
            outcome.grant().is_some() || is_denied || shard.subjects.contains_key(&subject);
        if !matters {
            return 0;
        }
        match self.entry(&mut shard, subject, check, times.sent, times.sent) {
            Some(holding) => holding.learn(check, outcome, times, hold),
            None => outcome.grant().map_or(0, |grant| grant.units),
        }
    }

    /// The holding of a subject, made if there is room. One of another limit is replaced, unless a
    /// call is under way.
    fn entry<'s>(
        &self,
        shard: &'s mut Shard,
        subject: Fingerprint,
        check: &Check<'_>,
        since: u64,
        now: u64,
    ) -> Option<&'s mut Holding> {
        if !shard.subjects.contains_key(&subject) {
            if shard.subjects.len() >= self.capacity && !shard.make_room(now) {
                return None;
            }
            shard.order.push_back(subject);
            shard.subjects.insert(subject, Holding::new(check, since));
        }
        let holding = shard.subjects.get_mut(&subject)?;
        if !holding.is_of(check.limit()) {
            if holding.flight.is_some() || holding.waiting > 0 {
                return None;
            }
            let mut outdated = lock(&self.outdated);
            let room = Self::MAX_OUTDATED.saturating_sub(outdated.len());
            outdated.extend(holding.replace(check, [since, now], room));
        }
        Some(holding)
    }

    /// Takes out the units of earlier limits.
    pub(crate) fn take_outdated(&self) -> Vec<Return> {
        std::mem::take(&mut *lock(&self.outdated))
    }

    /// Takes out what is held of a subject. A call that is under way goes on.
    pub(crate) fn remove(&self, subject: Fingerprint) -> Vec<Return> {
        self.with(subject, |holding| {
            holding.forget_denial();
            holding.end_all()
        })
        .unwrap_or_default()
    }

    /// Units that are held.
    pub(crate) fn units(&self, now: u64) -> u64 {
        let units = |shard: &Mutex<Shard>| -> u64 {
            lock(shard).subjects.values().map(|holding| holding.units(now)).sum()
        };
        self.shards.iter().map(units).sum()
    }

    /// Takes out everything that is held.
    pub(crate) fn remove_all(&self) -> Vec<Return> {
        let mut all = self.take_outdated();
        for shard in &self.shards {
            all.extend(lock(shard).subjects.values_mut().flat_map(Holding::end_all));
        }
        all
    }
}

impl Shard {
    /// Removes a subject of which nothing would be lost. One that is in use gets another turn.
    fn make_room(&mut self, now: u64) -> bool {
        for _ in 0..Holdings::PROBES.min(self.order.len()) {
            let Some(next) = self.order.pop_front() else { return false };
            if self.subjects.get(&next).is_none_or(|holding| holding.is_idle(now)) {
                self.subjects.remove(&next);
                return true;
            }
            self.order.push_back(next);
        }
        false
    }
}

impl Hasher for Half {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = half;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under these locks and leaves something half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headgate::{Cost, Extra, Limit};

    use super::*;

    const HOLD: u64 = 200_000;
    const NOW: u64 = 5_000_000;

    /// Of one shard, and remembered as seen beside each other.
    const SUBJECTS: [Fingerprint; 2] = [Fingerprint(1, 3), Fingerprint(65, 5)];

    fn bucket(units: u64) -> Limit {
        Limit::token_bucket(units, Duration::from_secs(1)).unwrap()
    }

    fn check(limit: &Limit) -> Check<'_> {
        let check = Check::new(Key::new("u").unwrap(), limit, Cost::ONE).unwrap();
        check.with_extra(Extra::new(100, Duration::from_micros(HOLD)))
    }

    /// With room for one subject in each shard.
    fn holdings() -> Holdings {
        let recent = Recent::new(2 * Holdings::SHARDS);
        Holdings { recent, ..Holdings::new(Holdings::SHARDS, Fingerprints::seeded(1)) }
    }

    #[test]
    fn a_subject_that_came_back_soon_once_is_known_after_a_pause_too() {
        let (holdings, limit) = (holdings(), bucket(1_000));
        let board = |now| holdings.board(SUBJECTS[0], &check(&limit), now, true);
        assert!(matches!(board(NOW), Boarding::Stranger));
        assert!(matches!(board(NOW + HOLD + 1_000), Boarding::Stranger), "too late");
        assert!(matches!(board(NOW + HOLD + 2_000), Boarding::Leads(_)));
        assert!(matches!(board(NOW + 10 * HOLD), Boarding::Leads(_)), "it is known");
    }

    #[test]
    fn a_request_that_may_not_wait_calls_alone() {
        let (holdings, limit) = (holdings(), bucket(1_000));
        let board = |may_wait| holdings.board(SUBJECTS[0], &check(&limit), NOW, may_wait);
        board(true);
        let Boarding::Leads(_flight) = board(true) else { panic!("no call is under way") };
        assert!(matches!(board(true), Boarding::Waits(_)));
        assert!(matches!(board(false), Boarding::Alone));
    }

    #[test]
    fn a_subject_makes_room_for_another_one_when_it_is_idle() {
        let (holdings, limit) = (holdings(), bucket(1_000));
        let [first, second] = SUBJECTS;
        let board = |subject, now| holdings.board(subject, &check(&limit), now, true);
        let twice = |subject, now| {
            board(subject, now);
            board(subject, now)
        };
        assert!(matches!(twice(first, NOW), Boarding::Leads(_)));
        assert!(matches!(twice(second, NOW), Boarding::Alone));
        assert!(matches!(twice(second, NOW + 1_000_000), Boarding::Alone));
        assert!(matches!(twice(second, NOW + 1_000_001), Boarding::Leads(_)));
        assert!(matches!(board(first, NOW + 1_000_001), Boarding::Stranger), "it is gone");
    }

    #[test]
    fn a_limit_does_not_change_while_a_call_is_under_way_or_waited_for() {
        let (holdings, [limit, changed]) = (holdings(), [1_000, 900].map(bucket));
        let board = |limit| holdings.board(SUBJECTS[0], &check(limit), NOW, true);
        board(&limit);
        let Boarding::Leads(flight) = board(&limit) else { panic!("no call is under way") };
        assert!(matches!(board(&changed), Boarding::Alone));
        let Boarding::Waits(mut waiting) = board(&limit) else { panic!("a call is under way") };
        waiting.need(SUBJECTS[0], 1);
        drop(flight);
        assert!(matches!(board(&changed), Boarding::Alone));
        drop(waiting);
        assert!(matches!(board(&changed), Boarding::Leads(_)));
    }
}
