//! Headgate's store in process: sharded, bounded, exact.
//!
//! A subject is known by a keyed fingerprint of its key, so that a decision
//! probes one place in memory and a state takes 24 bytes. The number of subjects
//! is bounded. States that mean nothing any more make room first; a live limit is
//! never forgotten for the sake of a new key: past capacity, new keys are told apart
//! by a sketch of fixed size, which never admits more than a key's limit and rarely less.
//!
//! | module | what it owns |
//! |---|---|
//! | `store` | [`MemoryStore`]: picks shards, decides |
//! | `locked` | a batch's shards, locked in order, and its subjects |
//! | `shard` | one lock's worth of subjects, and room for new ones |
//! | `table` | fingerprint to slot, in one probe |
//! | `slot` | states of fixed size, packed |
//! | `overflow` | the sketch of new keys' usage past capacity |
//! | `fingerprint` | keyed hashing |
//! | `numbered` | [`Numbered`]: subjects that are numbers already |
//!
//! ```
//! use std::time::Duration;
//!
//! use headgate::{Cost, Key, Limit};
//! use headgate_store_memory::MemoryStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::builder().capacity(100_000).build();
//! let cooldown = Limit::cooldown(Duration::from_secs(300))?;
//! let key = Key::new("198.51.100.7")?;
//!
//! assert!(store.acquire(key, &cooldown, Cost::ONE)?.allowed);
//! let denied = store.acquire(key, &cooldown, Cost::ONE)?;
//! assert!(!denied.allowed && denied.retry_after > Duration::from_secs(299));
//! # Ok(())
//! # }
//! ```

mod fingerprint;
mod locked;
mod numbered;
mod overflow;
mod shard;
mod slot;
mod store;
mod table;

pub use numbered::Numbered;
pub use store::{Builder, MemoryStore};
