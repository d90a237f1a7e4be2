//! A copy-on-write hash table in shards.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

use hashbrown::{HashTable, hash_table::Entry};

/// An entry with a key.
pub(super) trait Keyed {
    /// Type of the key.
    type Key: Hash + Eq + ?Sized;

    /// Returns the key; entries in a table have one.
    fn key(&self) -> Option<&Self::Key>;
}

/// A hash table in shards. Clones share all shards; a change copies one.
///
/// A change copies `n / SHARDS` of `n` entries and `SHARDS` pointers, which is cheapest
/// around 65,000 entries and cheap enough for a million.
#[derive(Clone, Debug)]
pub(super) struct Shards<T> {
    hasher: RandomState,
    /// Empty until the first insertion.
    tables: Arc<Vec<Shard<T>>>,
    len: usize,
}

type Shard<T> = Arc<HashTable<T>>;

const SHARDS: usize = 256;

impl<T> Default for Shards<T> {
    fn default() -> Self {
        Self { hasher: RandomState::new(), tables: Arc::default(), len: 0 }
    }
}

impl<T: Keyed + Clone> Shards<T> {
    /// Number of entries.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the entry with this key.
    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        self.tables[shard(hash)].find(hash, |entry| entry.key() == Some(key))
    }

    /// Changes the entry with this key, or a new one from `make`. `change` returns the action on
    /// the entry: keep it, or remove it.
    pub(super) fn change(
        &mut self,
        key: &T::Key,
        make: impl FnOnce() -> T,
        change: impl FnOnce(&mut T) -> EntryAction,
    ) {
        let hash = self.hasher.hash_one(key);
        let tables = Arc::make_mut(&mut self.tables);
        if tables.is_empty() {
            tables.resize_with(SHARDS, Shard::default);
        }
        let hasher = &self.hasher;
        let rehash = |entry: &T| entry.key().map_or(0, |key| hasher.hash_one(key));
        let table = Arc::make_mut(&mut tables[shard(hash)]);
        match table.entry(hash, |entry| entry.key() == Some(key), rehash) {
            Entry::Occupied(mut entry) => {
                if change(entry.get_mut()) == EntryAction::Remove {
                    entry.remove();
                    self.len -= 1;
                }
            }
            Entry::Vacant(place) => {
                let mut entry = make();
                if change(&mut entry) == EntryAction::Keep {
                    place.insert(entry);
                    self.len += 1;
                }
            }
        }
    }
}

/// Action on an entry after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryAction {
    Keep,
    Remove,
}

/// Index of the shard for a hash. The tables use the lowest and the highest bits themselves.
const fn shard(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

impl<T> Shards<T> {
    /// Number of shards that two tables do not share.
    #[cfg(test)]
    pub(super) fn copied(&self, other: &Self) -> usize {
        let pairs = self.tables.iter().zip(other.tables.iter());
        let differ = pairs.filter(|(one, another)| !Arc::ptr_eq(one, another)).count();
        differ + self.tables.len().abs_diff(other.tables.len())
    }

    /// Returns all entries in arbitrary order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.tables.iter().flat_map(|shard| shard.iter())
    }
}
