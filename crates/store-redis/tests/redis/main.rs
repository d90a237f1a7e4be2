//! The Redis store keeps the contract on real servers, also while they fail.

mod cluster;
mod exactness;
mod layout;
mod outage;
mod sentinel;
mod support;
