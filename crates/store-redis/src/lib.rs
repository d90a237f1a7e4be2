#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`RedisStore`]: one call if all keys share a node, otherwise one for each slot |
//! | `multi_slot`, `slot_group` | a batch over several slots of a cluster, and its groups |
//! | `runner` | one script call, from checks to outcomes |
//! | `call` | encoding of a script call, and decoding of its reply |
//! | `script` | the Lua files, concatenated |
//! | `servers`, `cluster`, `slot`, `node` | one server or the nodes of a cluster, each with its circuit breaker |
//! | `pool`, `endpoint` | connections to one server that are re-established when lost, and its address |
//! | `connection`, `reply` | one pipelined connection, and the replies on it |
//! | `dial` | opening a connection |
//! | `error` | errors of a server, of a key, or of one call |
//! | `memory`, `status` | memory use of the servers, and servers that are down |
//! | `inspection` | [`Inspection`]: version, persistence and clock of the servers |
//! | `newcomers` | [`NewcomerBound`]: bounds the keys that a process adds each second |
//! | `config` | [`RedisConfig`]: address, timeouts, TLS |
//!
//! The scripts are in `src/lua`, one file for each algorithm; each describes its state in Redis.

mod call;
mod cluster;
mod config;
mod connection;
mod dial;
mod endpoint;
mod error;
mod holders;
mod inspection;
mod memory;
mod multi_slot;
mod newcomers;
mod node;
mod pool;
mod reply;
mod runner;
mod script;
mod servers;
mod slot;
mod slot_group;
mod status;
mod store;

pub use config::{RedisConfig, RedisConfigError, RedisUrlError};
pub use headgate_tls_client::CertificateError as RedisCertificateError;
pub use inspection::{Inspection, Persistence};
pub use memory::Memory;
pub use newcomers::NewcomerBound;
pub use status::{ServerStatus, Status};
pub use store::RedisStore;

/// Internals for the benchmarks of this repository. Not covered by semantic versioning.
#[doc(hidden)]
pub mod bench {
    pub use crate::{call::Call, script::Script};
}
