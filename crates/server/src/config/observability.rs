use std::fmt;

use serde::Deserialize;

use super::problem::shown;

/// What the server says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ObservabilityConfig {
    /// `observability.log`: its log.
    pub log: LogConfig,
    /// `observability.trace`: where requests can be followed.
    pub trace: TraceConfig,
    /// `observability.metrics`: its numbers.
    pub metrics: MetricsConfig,
}

/// Where requests can be followed across services.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct TraceConfig {
    /// `observability.trace.enabled`: whether spans are sent.
    pub enabled: bool,
    /// `observability.trace.endpoint`: the OTLP collector they are sent to, over gRPC.
    pub endpoint: String,
    /// `observability.trace.sample_rate`: which part of the requests nobody upstream decided on.
    pub sample_rate: Fraction,
}

/// What is counted, and where that can be read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MetricsConfig {
    /// `observability.metrics.enabled`: whether metrics can be read.
    pub enabled: bool,
    /// `observability.metrics.path`: where.
    pub path: String,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
pub struct Fraction(f64);

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

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: "http://127.0.0.1:4317".to_owned(),
            sample_rate: Fraction(1.0),
        }
    }
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { enabled: true, path: "/metrics".to_owned() }
    }
}

impl Fraction {
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<String> for Fraction {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
        number
            .map(Self)
            .ok_or_else(|| format!("expected a number from 0 to 1, got {}", shown(&text)))
    }
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
