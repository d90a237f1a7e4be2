//! The shards of a batch, locked together.

use headgate::{Account, Check, Clock, Limit, Timestamp, Verb};
use smallvec::SmallVec;

use crate::{
    fingerprint::Fingerprint,
    lock::Guard,
    shard::Shard,
    store::MemoryStore,
    subject::{KeptIn, Subject},
};

/// The shards of a batch, locked in ascending order so that batches cannot deadlock.
pub(crate) struct LockedShards<'s>(SmallVec<[(usize, Guard<'s, Shard>); 2]>);

impl<'s> LockedShards<'s> {
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

    /// The time of the whole batch: the latest of all its shards.
    pub(crate) fn tick(&mut self, clock: Timestamp) -> Timestamp {
        let now = self.0.iter_mut().map(|(_, shard)| shard.tick(clock)).max();
        let now = now.unwrap_or(clock);
        for (_, shard) in &mut self.0 {
            shard.tick(now);
        }
        now
    }

    /// Takes a subject out, to be [`put`](Self::put) back.
    pub(crate) fn take<C: Clock>(
        &mut self,
        store: &MemoryStore<C>,
        verb: Verb,
        check: &Check<'_>,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Subject {
        let limit = check.limit();
        let shard = self.shard(store, fingerprint);
        if limit.places().is_some() {
            let takes = verb.is_admission();
            let is_full = takes && !shard.has_room_for_holder(fingerprint, now);
            if is_full && store.holders.is_full() {
                store.sweep_places(now);
            }
            let shard = self.shard(store, fingerprint);
            let is_full = is_full && !shard.has_room_for_holder(fingerprint, now);
            let kept_in = if is_full { KeptIn::Full } else { KeptIn::Slot };
            let mut account = shard.take(fingerprint, limit);
            account.settle(limit, now);
            return Subject { fingerprint, account, kept_in };
        }
        if shard.contains(fingerprint) {
            let mut account = shard.take(fingerprint, limit);
            account.settle(limit, now);
            return Subject { fingerprint, account, kept_in: KeptIn::Slot };
        }
        if check.is_exact() {
            let adds = matches!(verb, Verb::Acquire | Verb::Lease | Verb::Reserve { .. });
            let has_slot = !adds || shard.has_room(now);
            let kept_in = if has_slot { KeptIn::Slot } else { KeptIn::Nowhere };
            return Subject { fingerprint, account: Account::default(), kept_in };
        }
        // Usage from when it had no slot still counts.
        let state = store.overflow.usage(fingerprint, limit, now);
        let leases = shard.take_leases(fingerprint, now);
        let is_in_overflow =
            !leases.is_empty() || store.overflow.is_charged(fingerprint, limit, now);
        let moves = !is_in_overflow
            || can_move(verb, check) && store.overflow.is_known_in_units(check, now);
        let gets_slot = moves && shard.has_room(now);
        let kept_in = if gets_slot {
            KeptIn::Slot
        } else {
            let reserves = matches!(verb, Verb::Reserve { .. });
            let no_lease_for = reserves.then(|| shard.no_lease_for(&leases, now)).flatten();
            KeptIn::Overflow { no_lease_for }
        };
        Subject { fingerprint, account: Account { state, leases, ..Account::default() }, kept_in }
    }

    pub(crate) fn put<C: Clock>(
        &mut self,
        store: &MemoryStore<C>,
        subject: Subject,
        limit: &Limit,
        now: Timestamp,
    ) {
        let Subject { fingerprint, account, kept_in } = subject;
        let shard = self.shard(store, fingerprint);
        match kept_in {
            KeptIn::Slot | KeptIn::Full => shard.put(fingerprint, limit, account, now),
            KeptIn::Nowhere => {}
            KeptIn::Overflow { .. } => shard.put_leases(fingerprint, account.leases),
        }
    }
}

/// Returns `true` if usage may be counted in units of the check's limit from here on. Peeks change
/// nothing, and the limit of others comes with the name of a reservation, possibly a made-up one.
fn can_move(verb: Verb, check: &Check<'_>) -> bool {
    verb != Verb::Peek && !verb.is_by_name() && !check.mode().is_read_only()
}
