//! Headgate as a server.
//!
//! The use cases behind REST and gRPC are in `headgate-api`, the gRPC surface is in `headgate-grpc`,
//! and the pages and sessions of the console are in `headgate-console`.
//!
//! | module | what it owns |
//! |---|---|
//! | [`app`] | composition: configuration, stores, database, use cases, listeners |
//! | `rest` | the HTTP surface: its route table is the table of contents |
//! | `refresher` | reloads rules and policies from the database |
//! | `reload` | reloads the configuration, all or nothing |
//! | [`config`] | the sections of the configuration, and their conflicts; `headgate-config` reads them |
//! | `workers` | the threads that serve connections |

pub mod app;
pub mod config;
mod refresher;
mod reload;
mod rest;
mod workers;

pub use app::{App, BuildError, Listeners, Liveness};
pub use config::Config;
pub use headgate_serve::Drain;
pub use reload::{Load, ReloadError, Reloaded, Reloader, Trigger};

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
