//! Headgate as a server.
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | composition: configuration, stores, database, use cases, listeners |
//! | `rest` | the HTTP surface: its route table is the table of contents |
//! | `grpc` | the gRPC surface |
//! | `rate_limits`, `quotas` | the use cases that both surfaces serve, metered |
//! | `access` | authorization of both surfaces |
//! | `operations` | health, readiness and metrics of the running server |
//! | `console` | state of the browser console: sessions, most denied subjects, decisions per second |
//! | `refresher` | reloads rules and policies from the database |
//! | [`config`] | the sections of the configuration, and their conflicts; `headgate-config` reads them |
//! | `error_codes` | namespaces of error codes |
//! | `request_id`, `in_time` | ids and deadlines of requests |
//! | `completion` | work that continues when its caller disconnects |
//! | `masked` | keys masked for logs |
//! | `workers` | the threads that serve connections |

mod access;
pub mod app;
mod completion;
pub mod config;
mod console;
mod error_codes;
mod grpc;
mod in_time;
mod masked;
mod operations;
mod quotas;
mod rate_limits;
mod refresher;
mod request_id;
mod rest;
mod workers;

pub use app::{App, BuildError, Listeners, Reload};
pub use config::Config;
pub use headgate_serve::Drain;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
