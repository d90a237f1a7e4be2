//! The console: what a browser needs beside the API.
//!
//! | module | contents |
//! |---|---|
//! | `console` | [`Console`]: the state of the console |
//! | [`assets`] | the pages, embedded in the binary |
//! | [`session`] | browsers that have signed in |
//! | [`session_cookie`] | the cookie of a session |
//! | [`pulse`] | decisions in each of the last seconds, and the state of the store |
//! | `sampler` | [`Sampler`]: the task that samples them |
//! | [`preview`] | requests that a limit would admit, computed by the engine |
//! | `config` | the section `console` |
//!
//! The requests that the pages send are answered by the server, in `rest/console`.

pub mod assets;
mod config;
mod console;
pub mod preview;
pub mod pulse;
mod sampler;
pub mod session;
pub mod session_cookie;

pub use self::{
    config::ConsoleConfig,
    console::{Console, ConsoleSettings, OIDC_CALLBACK, PreparedSettings},
    sampler::Sampler,
};
