//! The Redis store keeps the contract on real servers, also while they fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;
mod exactness;
mod layout;
mod load;
mod outage;
mod sentinel;
mod support;
mod tls;
