//! Connections as peers see them: real sockets, HTTP/1 and HTTP/2 as bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod drain;
mod harness;
mod idle;
