use std::{borrow::Cow, fmt};

use axum::http::{Uri, uri::Scheme};
use headgate_config::{Print, Printed, print_sections, quoted};
use serde::Deserialize;

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
    pub endpoint: Endpoint,
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
    pub path: MetricsPath,
}

/// Where a collector of spans listens.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Endpoint(Uri);

/// A path that nothing else answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct MetricsPath(Cow<'static, str>);

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
    /// For people; `pretty` says the same.
    #[default]
    #[serde(alias = "pretty")]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: Endpoint(Uri::from_static("http://127.0.0.1:4317")),
            sample_rate: Fraction(1.0),
        }
    }
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { enabled: true, path: MetricsPath(Cow::Borrowed("/metrics")) }
    }
}

// === impl Endpoint ===

impl Endpoint {
    pub(crate) const fn get(&self) -> &Uri {
        &self.0
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let uri = text.parse().ok().filter(|uri: &Uri| {
            let known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
            // A password would end up in messages.
            known && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        });
        uri.map(Self).ok_or_else(|| {
            "expected an http:// or https:// URL without user or password, such as \
             http://collector.example:4317"
                .to_owned()
        })
    }
}

// === impl MetricsPath ===

impl MetricsPath {
    /// What begins paths that are, or may become, something else's.
    const TAKEN: [&str; 6] = ["actuator", "api", "api-docs", "console", "healthz", "readyz"];

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MetricsPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Neither what a request's path cannot have nor what would stand for many paths.
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
        let rest = text.strip_prefix('/').filter(|rest| !rest.is_empty());
        let Some(rest) = rest.filter(|rest| rest.bytes().all(is_plain)) else {
            return Err(format!(
                "expected a path such as /metrics: / and then letters, digits, -, ., _, ~ or /; \
                 got {}",
                quoted(&text)
            ));
        };
        let first = rest.split('/').next().unwrap_or_default();
        if Self::TAKEN.contains(&first) {
            return Err(format!("what begins with /{first} is not for metrics"));
        }
        Ok(Self(Cow::Owned(text)))
    }
}

// === impl Fraction ===

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
            .ok_or_else(|| format!("expected a number from 0 to 1, got {}", quoted(&text)))
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

// === impl Print ===

print_sections! {
    ObservabilityConfig { log, trace, metrics }
    LogConfig { level, format }
    TraceConfig { enabled, endpoint, sample_rate }
    MetricsConfig { enabled, path }
}

impl Print for Fraction {
    fn print(&self) -> Printed {
        Printed::scalar(self.get())
    }
}

impl Print for Endpoint {
    fn print(&self) -> Printed {
        // Without the slash that a URL ends in where it has no path.
        Printed::scalar(self.get().to_string().trim_end_matches('/'))
    }
}

impl Print for MetricsPath {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}

impl Print for LogLevel {
    fn print(&self) -> Printed {
        Printed::scalar(self.to_string())
    }
}

impl Print for LogFormat {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}
