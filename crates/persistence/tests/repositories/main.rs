//! Contracts of the repositories on PostgreSQL and SQLite, including outages.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod backup;
mod batches;
mod concurrency;
mod deltas;
mod denylist;
mod durability;
#[cfg(target_os = "linux")]
mod full_disk;
mod layouts;
mod max_rules;
mod max_windows;
mod old_version;
mod overrides;
mod postgres;
mod quotas;
mod rules;
mod selectors;
mod service_configs;
mod silence;
mod sqlite;
mod support;
#[cfg(unix)]
mod tls;
