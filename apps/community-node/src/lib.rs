//! A community node: a public node with HTTP, WebSocket and gossip, each entrance guarded.
//!
//! It shows how an application embeds Headgate, and how an operator changes limits while it runs.
//!
//! | module | contents |
//! |---|---|
//! | [`app`] | composition: builds the node, serves it, stops it |
//! | [`node`] | [`Node`]: state that the entrances share |
//! | [`http`] | the user API, bootstrap, the admin API, health and metrics |
//! | [`documents`] | the documents that an operator changes while the node runs |
//! | [`denylist`] | addresses and public keys that the operator denies |
//! | [`quota`] | daily quotas of public keys |
//! | [`relay`] | the Nostr relay over WebSocket |
//! | [`gossip`] | gossip with other nodes |
//! | `reports` | retention of reports |
//! | `serve` | bounds of connections |
//! | [`metrics`] | metrics |
//! | [`config`] | configuration by environment variables |

pub mod app;
pub mod config;
pub mod denylist;
pub mod documents;
pub mod gossip;
pub mod http;
pub mod metrics;
pub mod node;
pub mod quota;
pub mod relay;
mod reports;
mod serve;

pub use app::App;
pub use config::Config;
pub use node::Node;
