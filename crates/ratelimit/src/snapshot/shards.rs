//! A hash table that snapshots share, except for what changes between them.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

use hashbrown::{HashTable, hash_table::Entry};

/// An entry that is found by its key.
pub(super) trait Keyed {
    /// The type of its key.
    type Key: Hash + Eq + ?Sized;

    /// Its key; an entry in a table has one.
    fn key(&self) -> Option<&Self::Key>;
}

/// A hash table in shards. Clones share every shard; a change copies the one that it concerns.
///
/// With `n` entries a change copies `n / SHARDS` entries and `SHARDS` pointers, which is cheapest
/// around 65,000 entries and cheap enough for a million.
#[derive(Clone, Debug)]
pub(super) struct Shards<T> {
    hasher: RandomState,
    /// Empty until there is an entry.
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

    /// Changes the entry with this key, or a new one that `make` gives. An entry that says it is
    /// of no use any more is removed.
    pub(super) fn change(
        &mut self,
        key: &T::Key,
        make: impl FnOnce() -> T,
        change: impl FnOnce(&mut T) -> Use,
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
                if change(entry.get_mut()) == Use::Over {
                    entry.remove();
                    self.len -= 1;
                }
            }
            Entry::Vacant(place) => {
                let mut entry = make();
                if change(&mut entry) == Use::Kept {
                    place.insert(entry);
                    self.len += 1;
                }
            }
        }
    }
}

/// Whether an entry stays in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It stays.
    Kept,
    /// It is removed.
    Over,
}

/// Index of the shard for a hash. The tables use the lowest and the highest bits themselves.
const fn shard(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

#[cfg(test)]
impl<T> Shards<T> {
    /// Number of shards that two tables do not share.
    pub(super) fn copied(&self, other: &Self) -> usize {
        let pairs = self.tables.iter().zip(other.tables.iter());
        let differ = pairs.filter(|(one, another)| !Arc::ptr_eq(one, another)).count();
        differ + self.tables.len().abs_diff(other.tables.len())
    }

    /// Every entry, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.tables.iter().flat_map(|shard| shard.iter())
    }
}
