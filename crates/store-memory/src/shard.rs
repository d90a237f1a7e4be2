//! The subjects under one lock.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use headgate::{
    Account, Check, Cost, Lease, Limit, Outcome, State, Timestamp, Verb, limit::Parameters,
};

use crate::{
    fingerprint::Fingerprint,
    heavy::Heavy,
    holders::Holders,
    slot::{Compact, Packed},
    table::Table,
};

/// The lock and the fields that almost every decision reads fit into one cache line.
#[derive(Debug)]
pub(crate) struct Shard {
    /// Latest time seen: the time of a shard never runs backwards.
    now: Timestamp,
    /// Subjects whose state has a fixed size and that have no reservations or grants.
    table: Table,
    cold: Box<Cold>,
}

/// Data for new subjects and for states of variable size.
#[derive(Debug, Default)]
struct Cold {
    capacity: usize,
    /// Subjects that are not in the table.
    heavy: HashMap<Fingerprint, Heavy, BuildHasherDefault<IdentityHasher>>,
    /// Number of slots that they take.
    weight: usize,
    hand: usize,
    sweep_heavy_at: Timestamp,
    holders: Holders,
    /// Pending reservations of subjects without a slot.
    leases: HashMap<Fingerprint, Vec<Lease>, BuildHasherDefault<IdentityHasher>>,
}

/// Fingerprints are hashes already: they need no hashing.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Shard {
    /// Slots that are examined for an expired one when a new key arrives.
    const SWEEP: usize = 64;

    /// Shortest time between two sweeps of all heavy accounts, in microseconds.
    const HEAVY_SWEEP_EVERY: u64 = 100_000;

    /// One reservation of subjects without a slot is kept for this many slots, and a few more.
    const SLOTS_PER_LEASE: usize = 64;
    const MIN_LEASES: usize = 16;

    pub(crate) fn new(capacity: usize, holders: Holders) -> Self {
        let cold = Box::new(Cold { capacity, holders, ..Cold::default() });
        Self { now: Timestamp::default(), table: Table::default(), cold }
    }

    /// Number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.table.len() + self.cold.weight
    }

    /// The time of this shard, given the clock's.
    #[inline]
    pub(crate) fn tick(&mut self, clock: Timestamp) -> Timestamp {
        self.now = self.now.max(clock);
        self.now
    }

    /// Decides for a subject that is in the table; returns its state after the decision.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "calls are a fifth of the cost of a decision")]
    pub(crate) fn acquire<M: Compact>(
        &mut self,
        meter: &M,
        fingerprint: Fingerprint,
        cost: Cost,
        now: Timestamp,
    ) -> Option<(M::State, bool)> {
        let packed = self.table.get_mut(fingerprint)?;
        let mut state = meter.unpack(*packed);
        let allowed = meter.admit(&mut state, cost, now);
        // A denial leaves the state unchanged: not writing it keeps the cache line shared.
        let after = meter.pack(&state);
        if after != *packed {
            *packed = after;
        }
        Some((state, allowed))
    }

    /// Decides for a subject that is not in the table, if there is a free slot; `None` leaves it to
    /// the slow path.
    pub(crate) fn acquire_first<M: Compact>(
        &mut self,
        meter: &M,
        fingerprint: Fingerprint,
        cost: Cost,
        now: Timestamp,
    ) -> Option<(M::State, bool)> {
        if self.len() >= self.cold.capacity || self.cold.heavy.contains_key(&fingerprint) {
            return None;
        }
        let mut state = M::State::default();
        let allowed = meter.admit(&mut state, cost, now);
        self.table.insert(fingerprint, meter.pack(&state), now.as_micros());
        Some((state, allowed))
    }

    /// Returns `true` if there is a slot for one more subject.
    pub(crate) fn has_room(&mut self, now: Timestamp) -> bool {
        self.len() < self.cold.capacity || self.make_room(now)
    }

    /// Returns `true` if a concurrency limit can have one more holder.
    pub(crate) fn has_room_for_holder(&mut self, fingerprint: Fingerprint, now: Timestamp) -> bool {
        if self.cold.holders.is_full() && now >= self.cold.sweep_heavy_at {
            self.cold.sweep_heavy_at = now.plus(Self::HEAVY_SWEEP_EVERY);
            self.sweep_heavy(now);
        }
        !self.cold.holders.is_full() && (self.contains(fingerprint) || self.has_room(now))
    }

    /// Returns `true` if the subject has a slot.
    pub(crate) fn contains(&self, fingerprint: Fingerprint) -> bool {
        self.table.get(fingerprint).is_some() || self.cold.heavy.contains_key(&fingerprint)
    }

    /// The state of a subject that is not in the table.
    pub(crate) fn heavy_state(&self, fingerprint: Fingerprint) -> Option<&State> {
        self.cold.heavy.get(&fingerprint).map(|heavy| &heavy.account.state)
    }

    /// Applies `verb` to a subject with reservations or grants, in place; `None` if it has none. A
    /// [reset](Verb::Reset) concerns other subjects, too, and is not for here.
    pub(crate) fn decide_heavy(
        &mut self,
        fingerprint: Fingerprint,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
    ) -> Option<Outcome> {
        let heavy = self.cold.heavy.get_mut(&fingerprint)?;
        let (limit, mode, weight) = (check.limit(), check.mode(), heavy.weight());
        let account = &mut heavy.account;
        let is_due = heavy.next_end <= now;
        if is_due {
            account.settle(limit, now);
        }
        let allowed = account.permits(check, verb, now);
        let takes = mode.takes(allowed, allowed || !mode.can_block());
        let grant = account.act(check, verb, now, takes);
        let outcome = account.outcome(limit, verb, check.cost(), now, allowed).with_grant(grant);
        self.cold.weight -= weight;
        if is_light(account) || matches!(account.state, State::Log(_)) {
            // It may move to the table, or have to be shortened.
            let account = std::mem::take(account);
            self.put(fingerprint, limit, account, now);
        } else if let (false, true, Some(ends)) = (is_due, takes, heavy.ends_after(verb, now)) {
            heavy.next_end = heavy.next_end.min(ends);
            heavy.until = heavy.until.max(ends).max(now + outcome.reset_after);
            self.cold.weight += heavy.weight();
        } else {
            heavy.until = heavy.account.ends_at(limit, now);
            heavy.next_end = heavy.account.next_end();
            self.cold.weight += heavy.weight();
        }
        Some(outcome)
    }

    /// Takes the subject's account out, to be [`put`](Self::put) back.
    pub(crate) fn take(&mut self, fingerprint: Fingerprint, limit: &Limit) -> Account {
        if let Some(packed) = self.table.get(fingerprint) {
            let state = packed.unpack(limit.parameters());
            return Account { state, ..Account::default() };
        }
        match self.cold.heavy.get_mut(&fingerprint) {
            None => Account::default(),
            Some(heavy) => {
                self.cold.weight -= heavy.weight();
                self.cold.holders.remove(&heavy.account.state);
                std::mem::take(&mut heavy.account)
            }
        }
    }

    /// Takes out the pending reservations of a subject without a slot.
    pub(crate) fn take_leases(&mut self, fingerprint: Fingerprint, now: Timestamp) -> Vec<Lease> {
        let mut leases = self.cold.leases.remove(&fingerprint).unwrap_or_default();
        leases.retain(|lease| lease.expires_at > now);
        leases
    }

    /// Keeps the pending reservations of a subject without a slot.
    pub(crate) fn put_leases(&mut self, fingerprint: Fingerprint, leases: Vec<Lease>) {
        if !leases.is_empty() {
            self.cold.leases.insert(fingerprint, leases);
        }
    }

    /// Time until one more reservation of a subject without a slot can be kept beside its `own`;
    /// `None` if it can be now.
    pub(crate) fn no_lease_for(&mut self, own: &[Lease], now: Timestamp) -> Option<Duration> {
        let most = Self::MIN_LEASES.max(self.cold.capacity / Self::SLOTS_PER_LEASE);
        let others = &mut self.cold.leases;
        others.retain(|_, leases| {
            leases.retain(|lease| lease.expires_at > now);
            !leases.is_empty()
        });
        let pending = others.values().map(Vec::len).sum::<usize>() + own.len();
        let ends = |leases: &[Lease]| leases.iter().map(|lease| lease.expires_at).min();
        let first = if own.len() >= Lease::MAX_PENDING {
            ends(own)
        } else if pending >= most {
            others.values().map(Vec::as_slice).chain([own]).filter_map(ends).min()
        } else {
            None
        };
        first.map(|end| Duration::from_micros(end.since(now)))
    }

    pub(crate) fn put(
        &mut self,
        fingerprint: Fingerprint,
        limit: &Limit,
        account: Account,
        now: Timestamp,
    ) {
        let is_light = is_light(&account);
        let packed = Packed::pack(&account.state, limit.parameters()).filter(|_| is_light);
        if let Some(packed) = packed {
            self.cold.heavy.remove(&fingerprint);
            self.put_light(fingerprint, packed, now);
        } else {
            self.table.remove(fingerprint);
            self.put_heavy(fingerprint, limit, account, now);
        }
    }

    fn put_light(&mut self, fingerprint: Fingerprint, packed: Packed, now: Timestamp) {
        if packed.is_expired(now.as_micros()) {
            self.table.remove(fingerprint);
        } else if let Some(held) = self.table.get_mut(fingerprint) {
            *held = packed;
        } else {
            self.table.insert(fingerprint, packed, now.as_micros());
        }
    }

    fn put_heavy(
        &mut self,
        fingerprint: Fingerprint,
        limit: &Limit,
        mut account: Account,
        now: Timestamp,
    ) {
        let until = account.ends_at(limit, now);
        if until <= now {
            self.cold.heavy.remove(&fingerprint);
            return;
        }
        let room = self.cold.capacity.saturating_sub(self.len());
        if let State::Log(log) = &mut account.state {
            // Once, and not at each answer about what is left of it.
            if let Parameters::SlidingWindow(window) = limit.parameters() {
                window.prune(log, now);
            }
            // Beyond the capacity, a log is kept with less precision.
            while log.len() > room.max(1) {
                log.coalesce();
            }
        }
        let next_end = account.next_end();
        let heavy = Heavy { account, until, next_end };
        self.cold.holders.add(&heavy.account.state);
        self.cold.weight += heavy.weight();
        self.cold.heavy.insert(fingerprint, heavy);
    }

    /// Evicts expired states. Returns `true` if that made room.
    fn make_room(&mut self, now: Timestamp) -> bool {
        self.cold.hand = self.table.sweep(self.cold.hand, Self::SWEEP, now.as_micros());
        if self.len() >= self.cold.capacity && now >= self.cold.sweep_heavy_at {
            self.cold.sweep_heavy_at = now.plus(Self::HEAVY_SWEEP_EVERY);
            self.sweep_heavy(now);
        }
        self.len() < self.cold.capacity
    }

    /// Evicts expired heavy accounts, and frees places whose leases have ended.
    pub(crate) fn sweep_heavy(&mut self, now: Timestamp) {
        let Cold { heavy, holders, .. } = &mut *self.cold;
        heavy.retain(|_, heavy| {
            holders.remove(&heavy.account.state);
            if let State::Places(places) = &mut heavy.account.state {
                places.prune(now);
            }
            holders.add(&heavy.account.state);
            heavy.until > now
        });
        self.cold.weight = self.cold.heavy.values().map(Heavy::weight).sum();
    }
}

/// Returns `true` if the state is all that an account has.
const fn is_light(account: &Account) -> bool {
    account.leases.is_empty() && account.settled.is_empty() && account.grants.is_empty()
}

impl Hasher for IdentityHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint hashes as one u64")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    fn finish(&self) -> u64 {
        // The low bits select the shard: the map uses others.
        self.0.rotate_right(20)
    }
}
