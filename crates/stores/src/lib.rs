//! The store of counters that a server is configured with, and the failure policy around it.
//!
//! | module | contents |
//! |---|---|
//! | `stores` | [`Stores`]: opens the store; [`Counters`] |
//! | `kind` | [`StoreKind`]: memory or Redis |
//! | `probe` | [`Probe`]: finds out whether the store answers |
//! | `leases` | [`Leases`]: units that were taken in advance from a shared store |
//! | `metrics`, `lease_metrics`, `memory_metrics`, `redis_metrics` | the metrics of the stores |
//! | `config` | the sections `redis` and `memory` |

mod config;
mod kind;
mod lease_metrics;
mod leases;
mod memory_metrics;
mod metrics;
mod probe;
mod redis_metrics;
mod stores;

pub use self::{
    config::{KeyPrefix, MemoryConfig, RedisConfig},
    kind::StoreKind,
    leases::Leases,
    probe::{Probe, ProbeError},
    stores::{Counters, OpenError, StoreSettings, Stores},
};
