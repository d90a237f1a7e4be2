use headgate_config::{Bounded, print_sections};
use headgate_store_memory::MemoryStore;
use serde::Deserialize;

/// How much this process remembers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MemoryConfig {
    /// `memory.capacity`: how many subjects are told apart.
    pub capacity: Bounded<1, 1_000_000_000>,
    /// `memory.overflow_bytes`: memory for telling new subjects apart past that.
    pub overflow_bytes: Bounded<4_096, 1_073_741_824>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            capacity: Bounded::of::<{ MemoryStore::CAPACITY as u64 }>(),
            overflow_bytes: Bounded::of::<{ MemoryStore::OVERFLOW_BYTES as u64 }>(),
        }
    }
}

// === impl Print ===

print_sections! {
    MemoryConfig { capacity, overflow_bytes }
}
