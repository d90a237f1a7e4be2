//! Serves HTTP/1 and HTTP/2 connections within bounds, and drains them without losing a request.
//!
//! Peers decide how fast they send requests and read responses, so buffers are bounded in bytes and
//! in time, for each connection and for the process.
//!
//! | module | contents |
//! |---|---|
//! | `server` | accepting connections, and draining them on shutdown |
//! | `connection` | the task of a connection |
//! | `activity` | requests in flight, unsent bytes and progress of a connection |
//! | `watchdog` | closes connections that are idle or stalled |
//! | `connections` | all connections of the process: their number and buffered bytes |
//! | `response_body`, `request_body` | bodies whose buffered bytes are counted |
//! | `io` | the socket, with unwritten bytes counted |
//! | `wake_guarded` | a future that is polled only after it was woken |
//! | `signals` | SIGTERM, SIGINT and SIGHUP |

mod activity;
mod connection;
mod connections;
mod io;
mod request_body;
mod response_body;
mod server;
pub mod signals;
mod wake_guarded;
mod watchdog;

pub use self::{
    connections::{Bounds, Connections, EndReason},
    request_body::RequestBody,
    response_body::ResponseBody,
    server::{Drain, Server, Timeouts},
};
