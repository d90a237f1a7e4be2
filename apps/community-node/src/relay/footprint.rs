//! Estimates of memory, rounded up.
//!
//! Short JSON can take much memory: an empty string is two bytes of JSON, and many times that once
//! it is parsed.

use std::{collections::HashMap, hash::Hash, mem::size_of};

/// Maximum overhead of a small allocation.
const PIECE_BYTES: usize = 24;

/// Capacity of a B-tree node, and the minimum number of its entries.
const NODE_PLACES: usize = 11;
const NODE_MEMBERS: usize = 5;

/// Overhead of a B-tree node.
const NODE_BYTES: usize = 64;

/// Entries up to which a hash table is not shrunk.
const FEW_MEMBERS: usize = 1_024;

/// An owned string.
pub(crate) const fn text(text: &str) -> usize {
    text.len() + PIECE_BYTES
}

/// A list that never grows.
pub(crate) const fn list<T>(len: usize) -> usize {
    len * size_of::<T>() + PIECE_BYTES
}

/// A B-tree with this number of entries, without their heap.
pub(crate) const fn tree<T>(len: usize) -> usize {
    (len / NODE_MEMBERS + 1) * node::<T>()
}

/// One more entry of a large B-tree.
pub(crate) const fn leaf<T>() -> usize {
    node::<T>() / NODE_MEMBERS
}

/// One entry of a hash table, which doubles when it is seven eighths full.
pub(crate) const fn slot<T>() -> usize {
    (size_of::<T>() + 1) * 16 / 7
}

const fn node<T>() -> usize {
    NODE_PLACES * size_of::<T>() + NODE_BYTES
}

/// Shrinks a hash table that has become much emptier: it does not shrink by itself.
pub(crate) fn give_back<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() / 4 > table.len().max(FEW_MEMBERS) {
        table.shrink_to(2 * table.len());
    }
}
