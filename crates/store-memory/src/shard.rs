//! One lock's worth of subjects, and room for new ones.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};

use headgate::{Account, Cost, Lease, Limit, State, Timestamp};

use crate::{
    fingerprint::Fingerprint,
    slot::{Compact, Packed},
    table::Table,
};

/// What almost every decision touches fits into one cache line, the lock included.
#[derive(Debug)]
pub(crate) struct Shard {
    /// The latest time seen: this shard's time never runs backwards.
    now: Timestamp,
    /// Subjects whose state has a fixed size and who have no reservation pending.
    table: Table,
    rest: Box<Rest>,
}

/// What new subjects and long states need.
#[derive(Debug, Default)]
struct Rest {
    capacity: usize,
    /// Subjects that are not in the table.
    heavy: HashMap<Fingerprint, Heavy, BuildHasherDefault<AsItIs>>,
    /// What the heavy ones weigh, in slots.
    weight: usize,
    hand: usize,
    sweep_heavy_at: Timestamp,
    /// Pending reservations of newcomers, who have no account here.
    leases: HashMap<Fingerprint, Vec<Lease>, BuildHasherDefault<AsItIs>>,
}

#[derive(Debug)]
struct Heavy {
    account: Account,
    until: Timestamp,
}

/// Fingerprints are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Shard {
    /// How many slots a new key may look at to find one that is spent.
    const SWEEP: usize = 64;

    /// How often, in microseconds, all heavy accounts may be looked at.
    const HEAVY_SWEEP_EVERY: u64 = 100_000;

    /// How many reservations of newcomers are remembered: one for so many slots, and a few.
    const SLOTS_PER_LEASE: usize = 64;
    const MIN_LEASES: usize = 16;

    pub(crate) fn new(capacity: usize) -> Self {
        let rest = Box::new(Rest { capacity, ..Rest::default() });
        Self { now: Timestamp::default(), table: Table::default(), rest }
    }

    /// How many slots' worth of memory is in use.
    pub(crate) fn len(&self) -> usize {
        self.table.len() + self.rest.weight
    }

    /// The time for this shard, given what the clock says.
    #[inline]
    pub(crate) fn tick(&mut self, clock: Timestamp) -> Timestamp {
        self.now = self.now.max(clock);
        self.now
    }

    /// Decides for a subject that is in the table, and says how it stands then.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a fifth of a decision is calling the parts of it")]
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
        // What a refusal leaves as it was need not travel from one core's cache to another's.
        let after = meter.pack(&state);
        if after != *packed {
            *packed = after;
        }
        Some((state, allowed))
    }

    /// Decides for a subject that is not in the table, if there is room for it; `None` sends it the long way.
    pub(crate) fn acquire_first<M: Compact>(
        &mut self,
        meter: &M,
        fingerprint: Fingerprint,
        cost: Cost,
        now: Timestamp,
    ) -> Option<(M::State, bool)> {
        if self.len() >= self.rest.capacity || self.rest.heavy.contains_key(&fingerprint) {
            return None;
        }
        let mut state = M::State::default();
        let allowed = meter.admit(&mut state, cost, now);
        self.table.insert(fingerprint, meter.pack(&state), now.as_micros());
        Some((state, allowed))
    }

    /// Whether there is a place for one more subject.
    pub(crate) fn has_room(&mut self, now: Timestamp) -> bool {
        self.len() < self.rest.capacity || self.make_room(now)
    }

    /// Whether the subject has a state here.
    pub(crate) fn knows(&self, fingerprint: Fingerprint) -> bool {
        self.table.get(fingerprint).is_some() || self.rest.heavy.contains_key(&fingerprint)
    }

    /// Takes the subject's account out, to be [`put`](Self::put) back.
    pub(crate) fn take(&mut self, fingerprint: Fingerprint, limit: &Limit) -> Account {
        if let Some(packed) = self.table.get(fingerprint) {
            return Account { state: packed.unpack(limit.parameters()), leases: Vec::new() };
        }
        match self.rest.heavy.get_mut(&fingerprint) {
            None => Account::default(),
            Some(heavy) => {
                self.rest.weight -= heavy.weight();
                std::mem::take(&mut heavy.account)
            }
        }
    }

    /// Takes out the pending reservations of a subject that has no account here.
    pub(crate) fn take_leases(&mut self, fingerprint: Fingerprint, now: Timestamp) -> Vec<Lease> {
        let mut leases = self.rest.leases.remove(&fingerprint).unwrap_or_default();
        leases.retain(|lease| lease.expires_at > now);
        leases
    }

    /// Remembers the pending reservations of a subject that has no account here.
    pub(crate) fn put_leases(&mut self, fingerprint: Fingerprint, leases: Vec<Lease>) {
        if !leases.is_empty() {
            self.rest.leases.insert(fingerprint, leases);
        }
    }

    /// How long until one more reservation of a newcomer can be remembered beside its `own`; `None`
    /// if it can be now.
    pub(crate) fn no_lease_for(&mut self, own: &[Lease], now: Timestamp) -> Option<Duration> {
        let most = Self::MIN_LEASES.max(self.rest.capacity / Self::SLOTS_PER_LEASE);
        let others = &mut self.rest.leases;
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
        let packed =
            Packed::pack(&account.state, limit.parameters()).filter(|_| account.leases.is_empty());
        if let Some(packed) = packed {
            self.rest.heavy.remove(&fingerprint);
            self.put_light(fingerprint, packed, now);
        } else {
            self.table.remove(fingerprint);
            self.put_heavy(fingerprint, limit, account, now);
        }
    }

    fn put_light(&mut self, fingerprint: Fingerprint, packed: Packed, now: Timestamp) {
        if packed.is_spent(now.as_micros()) {
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
        let until = now.plus(limit.reset_after(&account.state, now));
        let until = account.leases.iter().map(|lease| lease.expires_at).fold(until, Ord::max);
        if until <= now {
            self.rest.heavy.remove(&fingerprint);
            return;
        }
        let room = self.rest.capacity.saturating_sub(self.len());
        if let State::Log(log) = &mut account.state {
            // Past capacity a log remembers what it must more coarsely.
            while log.len() > room.max(1) {
                log.coalesce();
            }
        }
        let heavy = Heavy { account, until };
        self.rest.weight += heavy.weight();
        self.rest.heavy.insert(fingerprint, heavy);
    }

    /// Drops what means nothing any more; says whether that made room.
    fn make_room(&mut self, now: Timestamp) -> bool {
        self.rest.hand = self.table.sweep(self.rest.hand, Self::SWEEP, now.as_micros());
        if self.len() >= self.rest.capacity && now >= self.rest.sweep_heavy_at {
            self.rest.sweep_heavy_at = now.plus(Self::HEAVY_SWEEP_EVERY);
            self.rest.heavy.retain(|_, heavy| heavy.until > now);
            self.rest.weight = self.rest.heavy.values().map(Heavy::weight).sum();
        }
        self.len() < self.rest.capacity
    }
}

impl Heavy {
    fn weight(&self) -> usize {
        let entries = if let State::Log(log) = &self.account.state { log.len() } else { 0 };
        entries.max(1) + self.account.leases.len()
    }
}

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint hashes as one u64")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }

    fn finish(&self) -> u64 {
        // The low bits chose the shard: let the map use others.
        self.0.rotate_right(20)
    }
}
