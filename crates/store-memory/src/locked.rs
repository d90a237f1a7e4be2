//! The shards a batch needs, and its subjects while they are decided.

use headgate::{Account, Check, Clock, Limit, Outcome, State, Timestamp, Verb};
use smallvec::SmallVec;

use crate::{
    fingerprint::Fingerprint,
    overflow::{Newcomer, Overflow},
    shard::Shard,
    store::{Guard, MemoryStore},
};

/// The shards a batch needs, locked in order so that batches never wait in a circle.
pub(crate) struct Locked<'s>(SmallVec<[(usize, Guard<'s, Shard>); 2]>);

/// A subject of a batch, taken out of where it is kept.
pub(crate) enum Subject {
    /// One with a place of its own.
    Settled(Fingerprint, Account),
    /// One that shares.
    New(Newcomer),
}

// === impl Subject ===

impl Subject {
    pub(crate) fn permits(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        match self {
            Self::Settled(_, account) => account.permits(check.limit(), verb, check.cost(), now),
            Self::New(newcomer) => newcomer.permits(check, verb, now),
        }
    }

    pub(crate) fn act(
        &mut self,
        overflow: &Overflow,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        takes: bool,
    ) {
        match self {
            Self::Settled(fingerprint, account) => {
                account.act(check, verb, now, takes);
                // What it used before there was room for it goes, too.
                if verb == Verb::Reset && takes {
                    overflow.clear(*fingerprint, check.limit(), now);
                }
            }
            Self::New(newcomer) => newcomer.act(overflow, check, verb, now, takes),
        }
    }

    pub(crate) fn outcome(
        &self,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        allowed: bool,
    ) -> Outcome {
        match self {
            Self::Settled(_, account) => {
                account.outcome(check.limit(), verb, check.cost(), now, allowed)
            }
            Self::New(newcomer) => newcomer.outcome(check, verb, now, allowed),
        }
    }
}

// === impl Locked ===

impl<'s> Locked<'s> {
    pub(crate) fn lock<C: Clock>(store: &'s MemoryStore<C>, fingerprints: &[Fingerprint]) -> Self {
        let mut wanted: SmallVec<[usize; 2]> =
            fingerprints.iter().map(|fingerprint| store.shard_of(*fingerprint)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Self(wanted.into_iter().map(|i| (i, store.shards[i].0.lock())).collect())
    }

    fn shard<C: Clock>(&mut self, store: &MemoryStore<C>, fingerprint: Fingerprint) -> &mut Shard {
        let shard = store.shard_of(fingerprint);
        let i = self.0.partition_point(|(i, _)| *i < shard);
        &mut self.0[i].1
    }

    /// One time for the whole batch, behind none of its shards.
    pub(crate) fn tick(&mut self, clock: Timestamp) -> Timestamp {
        let now = self.0.iter_mut().map(|(_, shard)| shard.tick(clock)).max();
        let now = now.unwrap_or(clock);
        for (_, shard) in &mut self.0 {
            shard.tick(now);
        }
        now
    }

    pub(crate) fn take<C: Clock>(
        &mut self,
        store: &MemoryStore<C>,
        verb: Verb,
        limit: &Limit,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Subject {
        let shard = self.shard(store, fingerprint);
        if shard.knows(fingerprint) {
            let mut account = shard.take(fingerprint, limit);
            account.settle(limit, now);
            return Subject::Settled(fingerprint, account);
        }
        // What it used while it had to share is still used.
        let state = store.overflow.usage(fingerprint, limit, now);
        let leases = shard.take_leases(fingerprint, now);
        let shares = state != State::Fresh || !leases.is_empty();
        // Looking takes no place.
        if shard.has_room(now) && !(verb == Verb::Peek && shares) {
            return Subject::Settled(fingerprint, Account { state, leases });
        }
        let reserves = matches!(verb, Verb::Reserve { .. });
        let no_lease_for = reserves.then(|| shard.no_lease_for(&leases, now)).flatten();
        let account = Account { state, leases };
        Subject::New(Newcomer { fingerprint, account, no_lease_for })
    }

    pub(crate) fn put<C: Clock>(
        &mut self,
        store: &MemoryStore<C>,
        subject: Subject,
        limit: &Limit,
        now: Timestamp,
    ) {
        match subject {
            Subject::Settled(fingerprint, account) => {
                self.shard(store, fingerprint).put(fingerprint, limit, account, now);
            }
            Subject::New(Newcomer { fingerprint, account, .. }) => {
                self.shard(store, fingerprint).put_leases(fingerprint, account.leases);
            }
        }
    }
}
