use headgate_config::{Bounded, print_sections};
use headgate_store_memory::MemoryStore;
use serde::Deserialize;

/// Bounds of the memory store.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MemoryConfig {
    /// `memory.capacity`: maximum number of subjects with counters of their own.
    pub capacity: Bounded<1, 1_000_000_000>,
    /// `memory.overflow_bytes`: memory for estimating further subjects.
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
