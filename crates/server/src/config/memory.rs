use headgate_store_memory::MemoryStore;
use serde::Deserialize;

use super::Bounded;

/// How much this process remembers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MemoryConfig {
    /// `memory.capacity`: how many subjects are told apart.
    pub capacity: Bounded<1, 1_000_000_000>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { capacity: Bounded::of::<{ MemoryStore::CAPACITY as u64 }>() }
    }
}
