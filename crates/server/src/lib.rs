//! Headgate as a server.
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | wires everything: configuration, store, limiter, router |
//! | `auth` | who asks, and whether they may |
//! | [`config`] | what the operator decided, read and checked before anything starts |
//! | [`telemetry`] | where log lines go |
//! | `rest` | the HTTP surface: its router is the table of contents |
//! | `rule` | which limit answers a check |
//! | `stores` | who keeps the counters, and who answers when that fails |
//! | `metrics` | what is counted |
//! | `serve` | connections: accepting, draining |

pub mod app;
#[cfg_attr(not(test), expect(dead_code, reason = "the surfaces do not ask it yet"))]
pub(crate) mod auth;
pub mod config;
mod metrics;
mod rest;
mod rule;
mod serve;
mod stores;
pub mod telemetry;

pub use app::{App, BuildError};
pub use config::{Config, ConfigError};
pub use serve::Drain;

/// The README's program, compiled and run as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
