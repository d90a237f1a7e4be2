//! The command as people type it: the real binary, a real server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
mod check;
mod config;
mod crowded;
mod degraded;
mod deploy;
mod docs;
mod export;
#[cfg(target_os = "linux")]
mod file_size;
mod floods;
mod harness;
mod health;
mod https;
mod import;
mod keyed;
mod meanwhile;
mod memory;
mod quota;
mod quota_chaos;
mod quota_clock;
mod ratelimit_tests;
mod request_id;
mod rolling;
mod rules;
mod serve;
mod subjects;
mod telemetry;
mod together;
mod token;
mod tour;
