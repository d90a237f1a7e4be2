//! Serves HTTP/1 and HTTP/2 connections within bounds, and drains them without losing a request.
//!
//! Peers decide how fast they send requests and read responses, so buffers are bounded in bytes and
//! in time, for each connection and for the process.
//!
//! | module | contents |
//! |---|---|
//! | `server` | accepting connections, and draining them on shutdown |
//! | `listener` | [`Listener`]: a TCP port or a Unix domain socket |
//! | `handshake` | the TLS handshake of a connection |
//! | `phase` | the phases of a shutdown |
//! | `connection` | the task of a connection |
//! | `activity` | requests in flight, unsent bytes and progress of a connection |
//! | `watchdog` | closes connections that are idle or stalled |
//! | `connections` | all connections of the process: their number and buffered bytes |
//! | `open_files` | the number of files that the process may open, which bounds that of connections |
//! | `response_body`, `request_body` | bodies whose buffered bytes are counted |
//! | `io` | the socket, with unwritten bytes counted |
//! | `stream` | TCP, TLS or a Unix domain socket |
//! | `wake_guarded` | a future that is polled only after it was woken |
//! | `signals` | SIGTERM, SIGINT and SIGHUP |
//! | `bind` | [`bind`]: a TCP listener, on request beside that of another process |
//! | `socket_activation` | [`InheritedSockets`]: listeners that the service manager has opened |
//! | `systemd` | notifications to the service manager |

mod activity;
mod bind;
mod connection;
mod connections;
mod handshake;
mod io;
mod listener;
mod open_files;
mod phase;
mod request_body;
mod response_body;
mod server;
pub mod signals;
mod socket_activation;
mod stream;
pub mod systemd;
mod wake_guarded;
mod watchdog;

pub use headgate_tls::{ClientCertificate, Tls};

pub use self::{
    bind::bind,
    connections::{Bounds, Connections, EndReason},
    listener::{Listener, UnixSocket},
    request_body::RequestBody,
    response_body::ResponseBody,
    server::{Drain, Server, Timeouts},
    socket_activation::InheritedSockets,
};
