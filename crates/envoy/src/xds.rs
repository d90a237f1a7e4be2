//! Domains from a management server: the protocol that envoyproxy/ratelimit calls `GRPC_XDS_SOTW`
//! and Envoy Gateway speaks.
//!
//! | module | contents |
//! |---|---|
//! | `client` | the task: connects, follows the stream, reconnects |
//! | `subscription` | accepts or refuses each response, and keeps the last valid configuration |
//! | `channel` | the connection, with TLS |
//! | `resource` | resources converted to domain files |
//! | `proto` | the generated messages |

mod channel;
mod client;
mod proto;
mod resource;
mod subscription;

pub(crate) use self::client::XdsClient;
