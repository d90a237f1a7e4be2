use std::fmt;

use serde::Deserialize;

/// What the server says about itself.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ObservabilityConfig {
    /// `observability.log`: its log.
    pub log: LogConfig,
}

/// What the log looks like.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct LogConfig {
    /// `observability.log.level`: the least that is logged; `RUST_LOG` says it in more detail.
    pub level: LogLevel,
    /// `observability.log.format`: for people or for programs.
    pub format: LogFormat,
}

/// The least that is logged.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Every request.
    Debug,
    /// Refused requests, and what changes.
    #[default]
    Info,
    /// What may need attention.
    Warn,
    /// What failed.
    Error,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}
