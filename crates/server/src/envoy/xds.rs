//! Domains from a management server: the protocol that envoyproxy/ratelimit calls `GRPC_XDS_SOTW`, and Envoy Gateway speaks.
//!
//! | module | what it owns |
//! |---|---|
//! | `client` | the subscription: accepts or refuses what comes, keeps the last good configuration, comes again |
//! | `channel` | the connection, with TLS |
//! | `resource` | resources, as the files they could have been |
//! | `proto` | the messages |

mod channel;
mod client;
mod proto;
mod resource;

pub(crate) use self::client::XdsClient;
