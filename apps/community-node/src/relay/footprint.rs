//! What things take in memory, rounded up.
//!
//! What is short on the wire may be long here: an empty text is two bytes of JSON, and many times
//! that once it is read.

use std::{collections::HashMap, hash::Hash, mem::size_of};

/// What an allocator adds at most to the little that it is asked for.
const PIECE_BYTES: usize = 24;

/// The members of a node of a B-tree, and how many of these places are taken at least.
const NODE_PLACES: usize = 11;
const NODE_MEMBERS: usize = 5;

/// What a node of a B-tree has beside its members.
const NODE_BYTES: usize = 64;

/// The least number of members of a hash table that there is always room for.
const FEW_MEMBERS: usize = 1_024;

/// A text of its own.
pub(crate) const fn text(text: &str) -> usize {
    text.len() + PIECE_BYTES
}

/// A list that never grows.
pub(crate) const fn list<T>(len: usize) -> usize {
    len * size_of::<T>() + PIECE_BYTES
}

/// A B-tree of so many members, without what these own.
pub(crate) const fn tree<T>(len: usize) -> usize {
    (len / NODE_MEMBERS + 1) * node::<T>()
}

/// One more member of a B-tree that has many.
pub(crate) const fn leaf<T>() -> usize {
    node::<T>() / NODE_MEMBERS
}

/// One member of a hash table, which doubles when it is full to seven eighths.
pub(crate) const fn slot<T>() -> usize {
    (size_of::<T>() + 1) * 16 / 7
}

const fn node<T>() -> usize {
    NODE_PLACES * size_of::<T>() + NODE_BYTES
}

/// Returns memory of a hash table that many members have left: a table gives nothing back by itself.
pub(crate) fn give_back<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() / 4 > table.len().max(FEW_MEMBERS) {
        table.shrink_to(2 * table.len());
    }
}
