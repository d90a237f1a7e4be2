//! Headgate as a server.
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | wires everything: configuration, store, limiter, router |
//! | `area` | which part of the house a request is about |
//! | `console` | what a browser needs beside the API: sessions, who is limited, what happened a moment ago |
//! | [`config`] | the sections of the configuration, and what contradicts another; `headgate-config` reads them |
//! | [`telemetry`] | where log lines and spans go |
//! | `rest` | the HTTP surface: its router is the table of contents |
//! | `grpc` | the gRPC surface |
//! | `services`, `quotas`, `resets` | what every surface is made of |
//! | `events` | tells others what happened to quotas: Kafka, webhooks |
//! | `scheduler`, `cron` | closes quota periods, and when |
//! | `refresher` | keeps the rules and policies in force those that the database holds |
//! | `stores` | who keeps the counters, and who answers when that fails |
//! | `metrics` | what is counted |
//! | `masked` | keys as the log shows them |
//! | `workers` | the threads that connections live on |

pub mod app;
mod area;
mod clients;
pub mod config;
mod console;
mod cron;
mod events;
mod grpc;
mod in_time;
mod masked;
mod metrics;
mod quotas;
mod reason;
mod refresher;
mod request_id;
mod resets;
mod rest;
mod scheduler;
mod services;
mod stores;
pub mod telemetry;
mod workers;

pub use app::{App, BuildError, Listeners, Reload};
pub use config::Config;
pub use headgate_serve::Drain;

/// The README's program, compiled and run as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
