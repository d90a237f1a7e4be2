//! The node as its clients, peers and operators see it: real sockets, real databases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod http;
