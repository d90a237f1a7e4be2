//! The server's configuration: a YAML file, overridden by the environment, read and validated as a
//! whole before anything starts.
//!
//! Each section has a file of its own. `headgate-config` merges files and variables, and reports
//! problems.

mod audit;
mod database;
mod effect;
mod quota;
mod rate_limiter;
mod ratelimit;
mod server;
mod window;

use std::path::Path;

use headgate_auth::AuthConfig;
use headgate_config::{ConfigError, Print, Printed, Problem, Schema, SectionList, print_sections};
use headgate_console::{ConsoleConfig, assets::fingerprint};
use headgate_envoy::EnvoyConfig;
use headgate_events::{EventsConfig, KafkaConfig, WebhookConfig, webhook_contradictions};
use headgate_stores::{MemoryConfig, RedisConfig};
use headgate_telemetry::{AppConfig, ObservabilityConfig};
use serde::Deserialize;

pub use self::{
    audit::AuditConfig,
    database::DatabaseConfig,
    effect::Effect,
    quota::QuotaConfig,
    rate_limiter::{
        AlgorithmName, LeakyBucketConfig, LeakyBucketOverride, OverrideConfig, RateLimiterConfig,
        TokenBucketConfig, TokenBucketOverride, Units, WindowConfig, WindowOverride,
    },
    ratelimit::RateLimitConfig,
    server::{ForwardedByName, Host, ServerConfig, SocketMode, TrustedProxy},
    window::WindowSize,
};

/// A list of certificates that is valid, for error messages.
const CERTIFICATES: &str = "[{cert_file: /etc/headgate/tls.crt, key_file: /etc/headgate/tls.key}]";

/// Prefix of variables, secret keys, and other properties that the types do not express.
const SCHEMA: Schema = Schema {
    variable_prefix: "HEADGATE__",
    secrets: &[
        "database.url",
        "database.password",
        "redis.url",
        "redis.urls",
        "redis.password",
        "redis.ca",
        "redis.cert",
        "redis.key",
        "kafka.username",
        "kafka.password",
    ],
    section_lists: &[
        SectionList {
            key: "auth.tokens",
            example: "[{name: ci, role: sys_operator, token_file: /run/secrets/ci}]",
            secret: Some("token"),
        },
        SectionList {
            key: "auth.client_certificates",
            example: "[{name: 'spiffe://cluster.local/ns/*/sa/gateway', role: sys_operator}]",
            secret: None,
        },
        SectionList { key: "server.tls.certificates", example: CERTIFICATES, secret: None },
        SectionList { key: "server.grpc_tls.certificates", example: CERTIFICATES, secret: None },
        SectionList {
            key: "rate_limiter.overrides",
            example: "[{prefix: 'api_key:', token_bucket: {capacity: 1000, refill_rate: 100}}]",
            secret: None,
        },
        SectionList {
            key: "webhooks",
            example: "[{url: 'https://alerts.example/quota', secret_file: /run/secrets/webhook}]",
            secret: Some("secret"),
        },
    ],
};

/// The whole configuration. The default needs no file: it listens on loopback and stores in memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct Config {
    /// `app`: name, version and environment of this deployment.
    pub app: AppConfig,
    /// `server`: addresses, timeouts and other bounds of the listeners.
    pub server: ServerConfig,
    /// `auth`: how callers are authenticated.
    pub auth: AuthConfig,
    /// `database`: the database of rules and quotas.
    pub database: DatabaseConfig,
    /// `audit`: retention of the audit log.
    pub audit: AuditConfig,
    /// `redis`: Redis, where replicas share counters.
    pub redis: RedisConfig,
    /// `memory`: bounds of the memory store.
    pub memory: MemoryConfig,
    /// `ratelimit`: defaults where no rule matches.
    pub ratelimit: RateLimitConfig,
    /// `rate_limiter`: limits of checks by key, which need no rules.
    pub rate_limiter: RateLimiterConfig,
    /// `envoy`: the rate limit service for Envoy.
    pub envoy: EnvoyConfig,
    /// `quota`: bounds, schedule and retention of quotas.
    pub quota: QuotaConfig,
    /// `kafka`: the Kafka cluster that events are published to.
    pub kafka: KafkaConfig,
    /// `webhooks`: receivers of events over HTTP.
    pub webhooks: Vec<WebhookConfig>,
    /// `console`: the web console.
    pub console: ConsoleConfig,
    /// `observability`: logs, traces and metrics.
    pub observability: ObservabilityConfig,
}

impl Config {
    /// Reads `file`, if given, and applies `environment` on top.
    ///
    /// # Errors
    ///
    /// Returns every problem at once, not just the first one.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        SCHEMA.load(file, environment, |config: &Self| config.contradictions().collect())
    }

    /// Loads the configuration again for a running server. An empty file is refused.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), and for an empty file.
    pub fn load_again(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        SCHEMA.load_again(file, environment, |config: &Self| config.contradictions().collect())
    }

    /// Reports what each section accepts by itself but the whole does not.
    ///
    /// # Errors
    ///
    /// Returns every problem at once.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let problems: Vec<Problem> = self.contradictions().collect();
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::problems(problems)) }
    }

    /// Returns a fingerprint of the printed configuration, in which secrets are masked: sixteen
    /// hexadecimal digits.
    pub(crate) fn version(&self) -> String {
        fingerprint(&self.printed().to_string())
    }

    /// Returns every key with the value in effect, secrets masked.
    pub fn printed(&self) -> Printed {
        self.print()
    }

    /// Returns the settings of event delivery and of the scheduler.
    pub(crate) fn events(&self) -> EventsConfig<'_> {
        EventsConfig {
            kafka: &self.kafka,
            webhooks: &self.webhooks,
            reset_schedule: &self.quota.reset_schedule,
            retention: &self.quota.retention,
            audit_retention: self.audit.retention(),
        }
    }

    /// Reports what each section accepts by itself but the whole does not.
    fn contradictions(&self) -> impl Iterator<Item = Problem> {
        [
            self.server.exposed_without(&self.auth),
            self.database.target(&self.server.data_dir).err(),
            self.redis.target().err(),
            self.rate_limiter.limits(self.ratelimit.lease()).err(),
            self.console.contradictions(&self.auth, self.server.address().ip().is_loopback()),
        ]
        .into_iter()
        .flatten()
        .chain(self.auth.contradictions())
        .chain(self.server.empty_paths())
        .chain(self.server.tls_problems(&self.auth))
        .chain(self.envoy.validate(!self.server.grpc_address().ip().is_loopback()))
        .chain(self.kafka.contradictions())
        .chain(self.observability.trace.contradictions())
        .chain(self.observability.metrics.otlp.contradictions())
        .chain(webhook_contradictions(&self.webhooks))
    }
}

print_sections! {
    Config {
        app, server, auth, database, audit, redis, memory, ratelimit, rate_limiter, envoy, quota,
        kafka, webhooks, console, observability,
    }
}

#[cfg(test)]
mod tests;
