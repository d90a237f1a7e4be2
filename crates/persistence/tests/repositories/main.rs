//! Repositories keep their contract on PostgreSQL and SQLite, also while the database fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod batches;
mod crowds;
mod deltas;
mod denylist;
mod durability;
mod full;
#[cfg(target_os = "linux")]
mod full_disk;
mod layouts;
mod postgres;
mod quotas;
mod rivals;
mod rules;
mod service_configs;
mod silence;
mod sqlite;
mod support;
#[cfg(unix)]
mod tls;
