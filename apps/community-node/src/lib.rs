//! A community node: what strangers reach over HTTP, WebSocket and gossip, guarded at every entrance.
//!
//! It shows how an application embeds Headgate, and how an operator changes limits while it runs.
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | how it all fits together: built, served, stopped |
//! | [`node`] | [`Node`]: what the entrances share |
//! | [`http`] | the user API, bootstrap, the admin API, health and metrics |
//! | [`documents`] | the documents that an operator changes while the node runs |
//! | [`denylist`] | addresses and public keys that the operator denies |
//! | [`quota`] | what a public key may use in a day |
//! | [`relay`] | the Nostr relay over WebSocket |
//! | [`gossip`] | what peers send over gossip |
//! | `serve` | connections, accepted within bounds |
//! | [`metrics`] | what is counted |
//! | [`config`] | what the environment says |

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
mod serve;

pub use app::App;
pub use config::Config;
pub use node::Node;
