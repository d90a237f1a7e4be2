//! The configuration as an operator reads it: every key with the value in effect, secrets masked.

mod names;
mod value;

use std::{fmt, path::PathBuf};

use serde::{Serialize, Serializer};

use self::value::Value;
use super::{
    AlgorithmName, AppConfig, AuditConfig, AuthConfig, AuthMode, Bounded, Config, ConsoleConfig,
    DatabaseConfig, Endpoint, EnvoyConfig, FailModeName, ForwardedByName, Fraction, JwksUrl,
    KafkaConfig, LeakyBucketConfig, LeakyBucketOverride, LogConfig, LogFormat, LogLevel,
    MemoryConfig, MetricsConfig, MetricsPath, ObservabilityConfig, OidcConfig, OverrideConfig,
    QuotaConfig, RateLimitConfig, RateLimiterConfig, RedisConfig, ResetSchedule, RetentionConfig,
    Role, Secret, ServerConfig, Stretch, TokenBucketConfig, TokenBucketOverride, TokenConfig,
    TraceConfig, TrustedProxy, WebhookConfig, WindowConfig, WindowOverride, WindowSize, XdsConfig,
};

/// A configuration that can be shown: as YAML by [`Display`](fmt::Display), as JSON by serde.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(Value);

/// Something that can be shown.
trait Show {
    fn show(&self) -> Value;
}

impl Config {
    /// Every key with the value that is in effect; secrets are masked.
    pub fn shown(&self) -> Shown {
        Shown(self.show())
    }
}

/// Shows every key of each section. Each is taken apart completely, so that a new key which is
/// not shown does not compile.
macro_rules! sections {
    ($($section:ident { $($key:ident),* $(,)? })*) => {$(
        impl Show for $section {
            fn show(&self) -> Value {
                let Self { $($key),* } = self;
                Value::Section(vec![$((stringify!($key), $key.show())),*])
            }
        }
    )*};
}

sections! {
    Config {
        app, server, auth, database, audit, redis, memory, ratelimit, rate_limiter, envoy, quota, kafka, webhooks,
        console, observability,
    }
    AppConfig { name, version, environment }
    AuthConfig { mode, jwks_url, issuer, audience, jwks_cache_seconds, leeway_seconds, tokens }
    TokenConfig { name, role, token }
    DatabaseConfig {
        url, host, port, name, user, password, ssl_mode, schema,
        max_open_conns, max_idle_conns, conn_max_lifetime, connect_timeout_seconds,
    }
    AuditConfig { retention_days }
    RedisConfig {
        url, urls, password, ca, cert, key, pool_size, timeout_ms, max_in_flight,
        max_new_subjects_per_second, key_prefix, connect_timeout_seconds,
    }
    MemoryConfig { capacity, overflow_bytes }
    RateLimitConfig {
        fail_open, default_limit, default_window_seconds, replicas, refresh_interval_seconds,
        max_rules,
    }
    RateLimiterConfig {
        algorithm, fail_mode, token_bucket, sliding_window, sliding_window_counter, fixed_window,
        leaky_bucket, overrides,
    }
    EnvoyConfig {
        enabled, auth, config_dir, config_file, reload_interval_seconds, xds, denied_consumes, shadow_mode,
        quota_mode, fail_mode, response_headers, dynamic_metadata,
    }
    XdsConfig {
        url, node_id, ca_file, cert_file, key_file, server_name, connect_timeout_seconds,
        initial_wait_seconds, max_message_bytes,
    }
    TokenBucketConfig { capacity, refill_rate }
    LeakyBucketConfig { capacity, leak_rate }
    WindowConfig { max_requests, window_size }
    OverrideConfig {
        prefix, token_bucket, sliding_window, sliding_window_counter, fixed_window, leaky_bucket,
    }
    TokenBucketOverride { capacity, refill_rate }
    LeakyBucketOverride { capacity, leak_rate }
    WindowOverride { max_requests, window_size }
    ResetSchedule { daily, monthly }
    RetentionConfig { periods_days, request_ids_days, events_days }
    KafkaConfig {
        brokers, security_protocol, topic_exceeded, topic_threshold, sasl_mechanism, username,
        password, ca_file, send_timeout_seconds,
    }
    WebhookConfig { url, secret, events, timeout_seconds, allow_insecure }
    QuotaConfig { queue_capacity, reconcile_interval_seconds, reset_schedule, retention }
    ConsoleConfig { enabled, session_ttl_seconds, idle_timeout_seconds, public_url, other_urls, oidc }
    OidcConfig { client_id, authorization_endpoint, token_endpoint, scope }
    ObservabilityConfig { log, trace, metrics }
    LogConfig { level, format }
    TraceConfig { enabled, endpoint, sample_rate }
    MetricsConfig { enabled, path }
}

impl Show for ServerConfig {
    fn show(&self) -> Value {
        let Self {
            host: _,
            port,
            grpc_port,
            data_dir,
            workers,
            trusted_proxies,
            forwarded_by,
            ipv6_prefix_length,
            request_timeout_seconds,
            idle_timeout_seconds,
            max_connections,
            max_buffered_bytes,
            shutdown_delay_seconds,
            shutdown_grace_seconds,
            shutdown_timeout_seconds,
        } = self;
        Value::Section(vec![
            ("host", self.address().ip().to_string().show()),
            ("port", port.show()),
            ("grpc_port", grpc_port.show()),
            ("data_dir", data_dir.show()),
            ("workers", workers.show()),
            ("trusted_proxies", trusted_proxies.show()),
            ("forwarded_by", forwarded_by.show()),
            ("ipv6_prefix_length", ipv6_prefix_length.show()),
            ("request_timeout_seconds", request_timeout_seconds.show()),
            ("idle_timeout_seconds", idle_timeout_seconds.show()),
            ("max_connections", max_connections.show()),
            ("max_buffered_bytes", max_buffered_bytes.show()),
            ("shutdown_delay_seconds", shutdown_delay_seconds.show()),
            ("shutdown_grace_seconds", shutdown_grace_seconds.show()),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds.show()),
        ])
    }
}

// === impl Show ===

impl<T: Show> Show for Option<T> {
    fn show(&self) -> Value {
        self.as_ref().map_or(Value::Scalar(serde_json::Value::Null), Show::show)
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> Value {
        Value::List(self.iter().map(Show::show).collect())
    }
}

impl Show for String {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for PathBuf {
    fn show(&self) -> Value {
        scalar(self.to_string_lossy())
    }
}

impl Show for bool {
    fn show(&self) -> Value {
        scalar(*self)
    }
}

impl<const MIN: u64, const MAX: u64> Show for Bounded<MIN, MAX> {
    fn show(&self) -> Value {
        scalar(self.get())
    }
}

impl Show for Fraction {
    fn show(&self) -> Value {
        scalar(self.get())
    }
}

impl Show for Stretch {
    fn show(&self) -> Value {
        match self.get().as_millis() {
            millis if millis.is_multiple_of(1000) => scalar(format!("{}s", millis / 1000)),
            millis => scalar(format!("{millis}ms")),
        }
    }
}

impl Show for TrustedProxy {
    fn show(&self) -> Value {
        scalar(self.get().to_string())
    }
}

impl Show for ForwardedByName {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for WindowSize {
    fn show(&self) -> Value {
        scalar(self.seconds())
    }
}

impl Show for AlgorithmName {
    fn show(&self) -> Value {
        scalar(self.get().name())
    }
}

impl Show for FailModeName {
    fn show(&self) -> Value {
        scalar(self.get().name())
    }
}

impl Show for Secret {
    fn show(&self) -> Value {
        // As in logs.
        scalar(format!("{self:?}"))
    }
}

impl Show for AuthMode {
    fn show(&self) -> Value {
        scalar(match self {
            Self::Off => "off",
        })
    }
}

impl Show for JwksUrl {
    fn show(&self) -> Value {
        scalar(self.get().as_str())
    }
}

impl Show for Endpoint {
    fn show(&self) -> Value {
        // Without the slash that a URL ends in where it has no path.
        scalar(self.get().to_string().trim_end_matches('/'))
    }
}

impl Show for MetricsPath {
    fn show(&self) -> Value {
        scalar(self.as_str())
    }
}

impl Show for Role {
    fn show(&self) -> Value {
        scalar(self.name())
    }
}

impl Show for LogLevel {
    fn show(&self) -> Value {
        scalar(self.to_string())
    }
}

impl Show for LogFormat {
    fn show(&self) -> Value {
        scalar(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

fn scalar(value: impl Into<serde_json::Value>) -> Value {
    Value::Scalar(value.into())
}

// === impl Shown ===

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, 0)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
