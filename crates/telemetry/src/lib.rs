//! Logs, traces and metrics of a server.
//!
//! | module | contents |
//! |---|---|
//! | [`log`] | the log: to standard error, as text or JSON |
//! | [`trace`] | a span for each request, exported over OTLP |
//! | [`metrics`] | the registry that every area adds its metrics to, and its text |
//! | `otlp`, `resource` | the connection to a collector, and the resource that telemetry carries |
//! | `config` | the configuration: [`ObservabilityConfig`] |
//! | `app` | [`AppConfig`]: the name, version and environment that telemetry carries |

mod app;
mod config;
pub mod log;
pub mod metrics;
mod otlp;
mod resource;
pub mod trace;

pub use self::{
    app::AppConfig,
    config::{
        Endpoint, Fraction, LogConfig, LogFormat, LogLevel, MetricsConfig, MetricsExportConfig,
        MetricsPath, ObservabilityConfig, TraceConfig,
    },
};
