//! Connections on real sockets, with HTTP/1 and HTTP/2 peers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod drain;
mod frames;
mod harness;
mod idle;
mod tls;
mod unix_socket;
mod upgrade;
