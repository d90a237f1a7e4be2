//! What the operator decided: a YAML file, overridden by the environment, read and checked as a
//! whole before anything starts.
//!
//! Each section owns its keys in a file of its own. Values stay text until the key that
//! wants them is known, so that `0.10` is a version where a text is wanted and the environment,
//! which knows only text, can say anything the file can.

mod app;
mod audit;
mod auth;
mod bounded;
mod console;
mod database;
mod de;
mod document;
mod duration;
mod environment;
mod envoy;
mod housekeeping;
mod kafka;
mod memory;
mod observability;
mod print;
mod problem;
mod quota;
mod rate_limiter;
mod ratelimit;
mod redis;
mod secret;
mod sections;
mod server;
mod tree;
mod webhooks;
mod window;
mod xds;
mod yaml;

use std::path::Path;

use serde::Deserialize;

pub use self::{
    app::AppConfig,
    audit::AuditConfig,
    auth::{AuthConfig, AuthMode, JwksUrl, Role, TokenConfig},
    bounded::Bounded,
    console::{ConsoleConfig, OidcConfig},
    database::DatabaseConfig,
    duration::Stretch,
    envoy::{DeniedConsumes, EnvoyAuth, EnvoyConfig, ResponseHeaders},
    housekeeping::{ResetSchedule, RetentionConfig, Schedule},
    kafka::{Broker, KafkaConfig, SaslMechanism, SecurityProtocol, Topic},
    memory::MemoryConfig,
    observability::{
        Endpoint, Fraction, LogConfig, LogFormat, LogLevel, MetricsConfig, MetricsPath,
        ObservabilityConfig, TraceConfig,
    },
    print::Shown,
    problem::{ConfigError, Problem},
    quota::{KeyPrefix, QuotaConfig},
    rate_limiter::{
        AlgorithmName, FailModeName, LeakyBucketConfig, LeakyBucketOverride, OverrideConfig,
        RateLimiterConfig, TokenBucketConfig, TokenBucketOverride, Units, WindowConfig,
        WindowOverride,
    },
    ratelimit::RateLimitConfig,
    redis::RedisConfig,
    secret::Secret,
    server::{ForwardedByName, Host, ServerConfig, TrustedProxy},
    webhooks::{EventName, WebhookConfig, WebhookUrl},
    window::WindowSize,
    xds::{NodeId, XdsConfig, XdsUrl},
};

pub(crate) use self::{de::TYPED, document::Document, problem::shown};

/// Everything that can be configured. The default needs no file: loopback, in memory.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct Config {
    /// `app`: who this is, for those who look at several.
    pub app: AppConfig,
    /// `server`: where it listens.
    pub server: ServerConfig,
    /// `auth`: who may use it.
    pub auth: AuthConfig,
    /// `database`: where rules are kept.
    pub database: DatabaseConfig,
    /// `audit`: how long the audit log is kept.
    pub audit: AuditConfig,
    /// `redis`: where counters are shared between instances.
    pub redis: RedisConfig,
    /// `memory`: how much this process remembers.
    pub memory: MemoryConfig,
    /// `ratelimit`: what is allowed where no rule says otherwise.
    pub ratelimit: RateLimitConfig,
    /// `rate_limiter`: what is allowed to keys that no rule is about.
    pub rate_limiter: RateLimiterConfig,
    /// `envoy`: whether and how Envoy's rate limit filters are answered.
    pub envoy: EnvoyConfig,
    /// `quota`: how quotas are kept.
    pub quota: QuotaConfig,
    /// `kafka`: where events are published.
    pub kafka: KafkaConfig,
    /// `webhooks`: who is told of events over HTTP.
    pub webhooks: Vec<WebhookConfig>,
    /// `console`: the pages for people.
    pub console: ConsoleConfig,
    /// `observability`: what it says about itself.
    pub observability: ObservabilityConfig,
}

impl Config {
    /// Reads `file`, if there is one, and lets `environment` override it.
    ///
    /// # Errors
    ///
    /// Says everything that is wrong, not just the first thing.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut tree = file.map_or_else(|| Ok(tree::Node::default()), yaml::read)?;
        let mut problems = environment::overlay(&mut tree, environment);
        problems.extend(sections::spell_out(&mut tree));
        problems.extend(secret::resolve(&mut tree));
        let config: Self = de::read(&tree, &mut problems);
        problems.extend(config.contradictions().map(|problem| problem.found_in(&tree)));
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::problems(problems)) }
    }

    /// What each section accepts by itself but the whole cannot.
    fn contradictions(&self) -> impl Iterator<Item = Problem> {
        [
            self.server.exposed_without(&self.auth),
            self.database.target(&self.server.data_dir).err(),
            self.redis.target().err(),
            self.rate_limiter.limits().err(),
            self.console.contradictions(&self.auth, &self.server),
        ]
        .into_iter()
        .flatten()
        .chain(self.auth.contradictions())
        .chain(self.envoy.contradictions(&self.server))
        .chain(self.kafka.contradictions())
        .chain(webhooks::contradictions(&self.webhooks))
    }
}

#[cfg(test)]
mod tests;
