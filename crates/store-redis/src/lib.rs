//! Headgate's store on Redis and Valkey: standalone, Sentinel, Cluster.
//!
//! A decision is one script call and one round trip; concurrent decisions share
//! a few connections and travel together. The clock is Redis's own.
//!
//! | module | what it owns |
//! |---|---|
//! | `store` | [`RedisStore`]: one call where keys share a node, one for each slot where not |
//! | `spread`, `group` | a batch over several slots of a cluster, and its parts |
//! | `caller` | one script call, from checks to outcomes |
//! | `call` | a verb and a batch as a script call, and its answer as outcomes |
//! | `script` | the Lua files, put together |
//! | `servers`, `cluster`, `slot`, `node` | one server or the nodes of a cluster, each with its circuit breaker |
//! | `link`, `source` | connections to one server that come back by themselves, and where it is |
//! | `connection`, `reply` | one connection that many calls share, and what comes back on it |
//! | `dial`, `tls` | how a server is reached |
//! | `error` | trouble of a server, of a key, or of a moment |
//! | `memory`, `status` | what Redis says about its memory, and which servers do not answer |
//! | `newcomers` | [`NewcomerBound`]: how many new subjects a second a process adds |
//! | `config` | where Redis is |
//!
//! The scripts are in `src/lua`, one file for each algorithm; each explains the
//! state it keeps. Every key has a time to live.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use headgate::{Batch, Check, Cost, Key, Limit, Limiter};
//! use headgate_store_redis::{RedisConfig, RedisStore};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::new(RedisStore::connect(RedisConfig::from_url("redis://127.0.0.1")?));
//! let limit = Limit::sliding_window(100, Duration::from_secs(60))?;
//! let check = Check::new(Key::new("user:42")?, &limit, Cost::ONE)?;
//!
//! let decision = limiter.check(&Batch::from(check)).await?;
//! # Ok(())
//! # }
//! ```

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
