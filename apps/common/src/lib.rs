//! Code that the applications share: environment variables, the command line, and serving.
//!
//! | module | contents |
//! |---|---|
//! | [`environment`] | [`Environment`]: the variables that configure an application |
//! | [`secret`] | [`Secret`]: a value that is never shown |
//! | [`tls`] | [`TlsVariables`]: TLS of its listeners |
//! | [`program`] | [`Program`]: command line, logging, signals, exit code |
//! | [`http`] | [`HttpServer`]: an HTTP server with bounded connections and request timeouts |

pub mod environment;
pub mod http;
pub mod program;
pub mod secret;
pub mod tls;

pub use environment::{Environment, VariableError};
pub use http::HttpServer;
pub use program::Program;
pub use secret::Secret;
pub use tls::TlsVariables;
