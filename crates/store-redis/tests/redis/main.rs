//! Conformance of the Redis store on real servers, also while they fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;
mod exactness;
mod full;
mod layout;
mod lease_failover;
mod leases;
mod load;
mod long_logs;
mod newcomers;
mod outage;
mod overload;
mod sentinel;
mod support;
mod tls;
