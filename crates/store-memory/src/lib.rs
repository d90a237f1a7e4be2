#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`MemoryStore`]: picks shards, decides |
//! | `locked` | the shards of a batch, locked in order, and its subjects |
//! | `shard` | the subjects under one lock, and room for new ones |
//! | `table` | fingerprint to slot, in one probe |
//! | `slot` | states of fixed size, packed |
//! | `overflow` | the sketch that counts new keys past capacity |
//! | `fingerprint` | keyed hashing |
//! | `numeric` | [`NumericKey`]: subjects that are numbers already |

mod fingerprint;
mod locked;
mod numeric;
mod overflow;
mod shard;
mod slot;
mod store;
mod table;

pub use numeric::NumericKey;
pub use store::{Builder, MemoryStore};
