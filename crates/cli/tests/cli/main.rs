//! Runs the `headgate` binary against real servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
#[cfg(unix)]
mod backup;
mod check;
mod concurrent_changes;
mod config;
mod degraded;
mod deploy;
mod docs;
#[cfg(unix)]
mod doctor;
mod export;
#[cfg(target_os = "linux")]
mod file_size;
mod floods;
mod harness;
mod health;
mod https;
mod import;
mod keyed;
mod leases;
mod memory;
mod newer_schema;
mod overrides;
mod packaging;
mod quota;
mod quota_chaos;
mod quota_clock;
mod ratelimit_tests;
mod reload;
mod request_id;
mod reservations;
mod rolling;
mod rules;
#[cfg(unix)]
mod run;
mod serve;
mod simultaneous_start;
mod subjects;
mod systemd;
mod telemetry;
mod token;
mod too_many_windows;
mod tour;
