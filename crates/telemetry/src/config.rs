use std::{borrow::Cow, fmt, path::PathBuf};

use headgate_config::{Bounded, Print, Printed, Problem, print_sections, quoted};
use headgate_tls_client::TlsFiles;
use http::{Uri, uri::Scheme};
use serde::Deserialize;

/// Logs, traces and metrics.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ObservabilityConfig {
    /// `observability.log`: level and format of the log.
    pub log: LogConfig,
    /// `observability.trace`: export of spans.
    pub trace: TraceConfig,
    /// `observability.metrics`: the Prometheus endpoint.
    pub metrics: MetricsConfig,
}

/// Export of spans over OTLP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct TraceConfig {
    /// `observability.trace.enabled`: turns the export on.
    pub enabled: bool,
    /// `observability.trace.endpoint`: URL of the OTLP collector (gRPC).
    pub endpoint: Endpoint,
    /// `observability.trace.ca_file`: authorities of the collector's certificate, in PEM; default:
    /// the system's.
    pub ca_file: Option<PathBuf>,
    /// `observability.trace.cert_file`: client certificate, in PEM.
    pub cert_file: Option<PathBuf>,
    /// `observability.trace.key_file`: private key of the client certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// `observability.trace.sample_rate`: fraction of traces sampled, unless the caller has
    /// decided.
    pub sample_rate: Fraction,
}

/// The Prometheus endpoint, and export to a collector.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MetricsConfig {
    /// `observability.metrics.enabled`: turns the endpoint on.
    pub enabled: bool,
    /// `observability.metrics.path`: path of the endpoint.
    pub path: MetricsPath,
    /// `observability.metrics.otlp`: export to a collector.
    pub otlp: MetricsExportConfig,
}

/// Export of metrics over OTLP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct MetricsExportConfig {
    /// `observability.metrics.otlp.enabled`: turns the export on.
    pub enabled: bool,
    /// `observability.metrics.otlp.endpoint`: URL of the OTLP collector (gRPC).
    pub endpoint: Endpoint,
    /// `observability.metrics.otlp.ca_file`: authorities of the collector's certificate, in PEM;
    /// default: the system's.
    pub ca_file: Option<PathBuf>,
    /// `observability.metrics.otlp.cert_file`: client certificate, in PEM.
    pub cert_file: Option<PathBuf>,
    /// `observability.metrics.otlp.key_file`: private key of the client certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// `observability.metrics.otlp.interval_seconds`: time between two exports.
    pub interval_seconds: Bounded<1, 3600>,
}

/// URL of an OTLP collector.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Endpoint(Uri);

/// A path that collides with no other route.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct MetricsPath(Cow<'static, str>);

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "String")]
pub struct Fraction(f64);

/// Level and format of the log.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct LogConfig {
    /// `observability.log.level`: least severe level that is logged; `RUST_LOG` overrides it per
    /// module.
    pub level: LogLevel,
    /// `observability.log.format`: text or JSON.
    pub format: LogFormat,
    /// `observability.log.access_sample`: fraction of answered requests that are logged.
    pub access_sample: Fraction,
}

/// Least severe level that is logged.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// Every request.
    Debug,
    /// Refused requests and changes of state.
    #[default]
    Info,
    /// Events that may need attention.
    Warn,
    /// Failures.
    Error,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain text; alias `pretty`.
    #[default]
    #[serde(alias = "pretty")]
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: Endpoint::default(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            sample_rate: Fraction(1.0),
        }
    }
}

// === impl TraceConfig ===

impl TraceConfig {
    /// Reports values that are valid by themselves but not in combination.
    pub fn contradictions(&self) -> Vec<Problem> {
        self.endpoint.contradictions(&self.tls_files(), "observability.trace")
    }

    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            path: MetricsPath(Cow::Borrowed("/metrics")),
            otlp: MetricsExportConfig::default(),
        }
    }
}

impl Default for MetricsExportConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: Endpoint::default(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            interval_seconds: Bounded::of::<60>(),
        }
    }
}

// === impl MetricsExportConfig ===

impl MetricsExportConfig {
    /// Reports values that are valid by themselves but not in combination.
    pub fn contradictions(&self) -> Vec<Problem> {
        self.endpoint.contradictions(&self.tls_files(), "observability.metrics.otlp")
    }

    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self(Uri::from_static("http://127.0.0.1:4317"))
    }
}

// === impl Endpoint ===

impl Endpoint {
    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == Some(&Scheme::HTTPS)
    }

    pub(crate) const fn get(&self) -> &Uri {
        &self.0
    }

    /// Reports certificate files of `section` that are not used, or not complete.
    fn contradictions(&self, files: &TlsFiles, section: &str) -> Vec<Problem> {
        let remedy = format!("set {section}.endpoint to an https:// URL");
        let without_tls = (!self.is_https()).then_some(remedy.as_str());
        let problems = files.contradictions(section, without_tls).into_iter();
        problems.map(|(key, message)| Problem::new(format!("{section}.{key}"), message)).collect()
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let uri = text.parse().ok().filter(|uri: &Uri| {
            let known = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
            // A password would be printed in messages.
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
    /// First segments of paths that are reserved for other routes.
    const TAKEN: [&str; 6] = ["actuator", "api", "api-docs", "console", "healthz", "readyz"];

    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MetricsPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // No characters that are invalid in a path, and no patterns of the router.
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
    /// Returns the number.
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
    LogConfig { level, format, access_sample }
    TraceConfig { enabled, endpoint, ca_file, cert_file, key_file, sample_rate }
    MetricsConfig { enabled, path, otlp }
    MetricsExportConfig { enabled, endpoint, ca_file, cert_file, key_file, interval_seconds }
}

impl Print for Fraction {
    fn print(&self) -> Printed {
        Printed::scalar(self.get())
    }
}

impl Print for Endpoint {
    fn print(&self) -> Printed {
        // `Uri` prints an empty path as `/`.
        let text = self.get().to_string();
        let text = text.trim_end_matches('/');
        match text.split_once('?') {
            // It may hold a secret.
            Some((url, _)) => Printed::masked(format!("{url}?***"), text),
            None => Printed::scalar(text),
        }
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
