//! The client's address behind proxies.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod client;
mod properties;
mod support;
