#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`RedisStore`]: one call if all keys share a node, otherwise one for each slot |
//! | `spread`, `group` | a batch over several slots of a cluster, and its parts |
//! | `caller` | one script call, from checks to outcomes |
//! | [`call`] | a verb and a batch as a script call, and its reply as outcomes |
//! | `script` | the Lua files, concatenated |
//! | `servers`, `cluster`, `slot`, `node` | one server or the nodes of a cluster, each with its circuit breaker |
//! | `link`, `source` | connections to one server that reconnect by themselves, and its address |
//! | `connection`, `reply` | one pipelined connection, and the replies on it |
//! | `dial`, `tls` | opening a connection |
//! | `error` | errors of a server, of a key, or of one call |
//! | `memory`, `status` | the memory of Redis, and the servers that do not answer |
//! | `newcomers` | [`NewcomerBound`]: how many new subjects a second a process adds |
//! | `config` | [`RedisConfig`]: address, timeouts, TLS |
//!
//! The scripts are in `src/lua`, one file for each algorithm; each explains the
//! state it keeps.

pub mod call;
mod caller;
mod cluster;
mod config;
mod connection;
mod dial;
mod error;
mod group;
mod link;
mod memory;
mod newcomers;
mod node;
mod reply;
mod script;
mod servers;
mod slot;
mod source;
mod spread;
mod status;
mod store;
mod tls;

pub use config::{ConfigError, RedisConfig};
pub use memory::Memory;
pub use newcomers::NewcomerBound;
pub use script::Script;
pub use status::{Part, Status};
pub use store::RedisStore;
pub use tls::CertificateProblem;
