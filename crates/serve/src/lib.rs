//! Serves HTTP/1 and HTTP/2 connections within bounds, and drains them without losing a request.
//!
//! A peer decides how quickly it takes its answers and sends its requests, so what is held for it
//! is bounded in bytes as well as in time, for one connection and for the process.
//!
//! | module | what it owns |
//! |---|---|
//! | `server` | accepting connections, and draining them on shutdown |
//! | `connection` | one connection from its first byte to its end |
//! | `activity` | what a connection is doing: requests, unsent bytes, progress |
//! | `watchdog` | ends a connection that is idle or stalled |
//! | `connections` | all connections of the process: their number, and the bytes held for them |
//! | `answer`, `request` | bodies that are counted while they are held |
//! | `io` | the socket, with what it does not take counted |
//! | `beside` | a future that is polled only when something woke it |
//! | `signals` | SIGTERM, SIGINT and SIGHUP |

mod activity;
mod answer;
mod beside;
mod connection;
mod connections;
mod io;
mod request;
mod server;
pub mod signals;
mod watchdog;

pub use self::{
    answer::Answer,
    connections::{Bounds, Connections, EndReason},
    request::RequestBody,
    server::{Drain, Server, Timeouts},
};
