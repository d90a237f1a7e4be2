#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`MemoryStore`]: finds the shards of a batch and decides |
//! | `builder` | [`Builder`]: the settings of a store |
//! | `fast_path` | the results of the fast path: one check, one lock |
//! | `locked`, `subject` | the slow path: the shards of a batch, locked together, and its subjects |
//! | `lock` | the lock of a shard |
//! | `shard` | the subjects under one lock, and eviction of expired ones |
//! | `table` | fingerprint to slot, in one probe |
//! | `slot` | packed states of fixed size |
//! | `heavy` | a subject with reservations, grants or a state of variable size |
//! | `holders` | the number of holders of places, over all shards |
//! | `overflow` | the sketch that counts new keys past capacity |
//! | `fingerprint` | keyed hashing |
//! | `numeric` | [`NumericKey`]: subjects that are numbers |

mod builder;
mod fast_path;
mod fingerprint;
mod heavy;
mod holders;
mod lock;
mod locked;
mod numeric;
mod overflow;
mod shard;
mod slot;
mod store;
mod subject;
mod table;

pub use builder::Builder;
pub use numeric::NumericKey;
pub use store::MemoryStore;
