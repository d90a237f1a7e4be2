//! The subjects of which this process holds something.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::{BuildHasher, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use headgate::{Check, Key, Outcome};
use tokio::sync::Notify;

use crate::{
    flight::{Boarding, Flight, Waiting},
    holding::{Holding, Local, Return, Turn},
};

/// Hash of a key with 128 bits: two subjects must not share what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64, u64);

/// The subjects of which this process holds something, in bounded memory.
#[derive(Debug)]
pub(crate) struct Holdings {
    secrets: [RandomState; 2],
    shards: Box<[Mutex<Shard>]>,
    capacity: usize,
}

type Shard = HashMap<Fingerprint, Holding>;

impl Holdings {
    const SHARDS: usize = 64;

    /// Entries that are examined for an idle one when a shard is full.
    const PROBES: usize = 16;

    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            secrets: [RandomState::new(), RandomState::new()],
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            capacity: (capacity / Self::SHARDS).max(1),
        }
    }

    pub(crate) fn fingerprint(&self, key: Key<'_>) -> Fingerprint {
        let [first, second] = self.secrets.each_ref().map(|secret| {
            let mut hasher = secret.build_hasher();
            key.parts().iter().for_each(|part| hasher.write(part.as_bytes()));
            hasher.finish()
        });
        Fingerprint(first, second)
    }

    fn shard(&self, subject: Fingerprint) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[subject.0 as usize % Self::SHARDS];
        // No code that can panic runs under this lock and leaves a holding half changed.
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `f` to what is held of a subject, if there is something.
    pub(crate) fn with<T>(
        &self,
        subject: Fingerprint,
        f: impl FnOnce(&mut Holding) -> T,
    ) -> Option<T> {
        self.shard(subject).get_mut(&subject).map(f)
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
        match shard.get_mut(&subject) {
            Some(holding) if holding.is_of(check.limit()) => holding.decide(check, turn, now),
            _ => Local::Unknown,
        }
    }

    /// Joins the call that is under way for the subject, or starts one.
    pub(crate) fn board(&self, subject: Fingerprint, check: &Check<'_>, now: u64) -> Boarding<'_> {
        let units = check.cost().get();
        let mut shard = self.shard(subject);
        let Some(holding) = entry(&mut shard, self.capacity, subject, check, now) else {
            return Boarding::Alone;
        };
        if let Some(ended) = &holding.flight {
            holding.waiting += units;
            return Boarding::Waits(Waiting::new(self, subject, units, Arc::clone(ended)));
        }
        let ended = Arc::new(Notify::new());
        holding.flight = Some(Arc::clone(&ended));
        Boarding::Leads(Flight::new(self, subject, ended))
    }

    /// The units to take in advance, up to `most`: what the subject is expected to use within
    /// `hold`, and what requests are waiting for.
    pub(crate) fn worth(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        now: u64,
        hold: u64,
        most: u64,
    ) -> u64 {
        let mut shard = self.shard(subject);
        entry(&mut shard, self.capacity, subject, check, now).map_or(0, |holding| {
            let expected = holding.pace.predict(now, hold);
            expected.max(holding.waiting).saturating_sub(holding.units(now)).min(most)
        })
    }

    /// Learns from an answer of the store. Returns `false` if there is no room for a grant, which
    /// is lost then.
    pub(crate) fn learn(
        &self,
        subject: Fingerprint,
        check: &Check<'_>,
        outcome: &Outcome,
        sent: u64,
        hold: u64,
    ) -> bool {
        let mut shard = self.shard(subject);
        let matters = check.extra().is_some() || !outcome.allowed || shard.contains_key(&subject);
        if !matters {
            return true;
        }
        match entry(&mut shard, self.capacity, subject, check, sent) {
            Some(holding) => {
                holding.learn(check, outcome, sent, hold);
                true
            }
            None => outcome.grant.is_none(),
        }
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
        let shards = self.shards.iter();
        let shards = shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards.map(|shard| shard.values().map(|holding| holding.units(now)).sum::<u64>()).sum()
    }

    /// Takes out everything that is held.
    pub(crate) fn remove_all(&self) -> Vec<Return> {
        let shards = self.shards.iter();
        let shards = shards.map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards
            .flat_map(|mut shard| shard.values_mut().flat_map(Holding::end_all).collect::<Vec<_>>())
            .collect()
    }
}

/// The holding of a subject, made if there is room. One of another limit is replaced, unless a call
/// is under way.
fn entry<'s>(
    shard: &'s mut Shard,
    capacity: usize,
    subject: Fingerprint,
    check: &Check<'_>,
    now: u64,
) -> Option<&'s mut Holding> {
    let known = shard.get(&subject);
    let is_outdated = known.is_some_and(|holding| !holding.is_of(check.limit()));
    if is_outdated && known.is_some_and(|holding| holding.flight.is_some() || holding.waiting > 0) {
        return None;
    }
    if is_outdated {
        if let Some(holding) = shard.get_mut(&subject) {
            holding.replace(check, now);
        }
    } else if known.is_none() {
        if shard.len() >= capacity {
            let idle =
                shard.iter().take(Holdings::PROBES).find(|(_, holding)| holding.is_idle(now));
            let idle = idle.map(|(subject, _)| *subject)?;
            shard.remove(&idle);
        }
        shard.insert(subject, Holding::new(check, now));
    }
    shard.get_mut(&subject)
}
