use std::time::Duration;

use headgate_store_redis::{ConfigError, RedisConfig as Target};
use serde::Deserialize;

use super::{Bounded, KeyPrefix, Problem, Secret};

/// Where counters are shared between instances. Without an address they stay in memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RedisConfig {
    /// `redis.url`: one server, or a master behind Sentinels.
    pub url: Option<Secret>,
    /// `redis.urls`: nodes of a Redis Cluster.
    pub urls: Option<Vec<Secret>>,
    /// `redis.password`: completes addresses that have none.
    pub password: Option<Secret>,
    /// `redis.ca`: the authority that signed Redis's certificate, in PEM.
    pub ca: Option<Secret>,
    /// `redis.pool_size`: how many connections share the load.
    pub pool_size: Bounded<1, 1024>,
    /// `redis.timeout_ms`: how long a decision may take before it counts as failed.
    pub timeout_ms: Bounded<1, 60_000>,
    /// `redis.key_prefix`: what the keys of quotas' counters begin with.
    pub key_prefix: KeyPrefix,
    /// `redis.connect_timeout_seconds`: how long to wait for a connection.
    pub connect_timeout_seconds: Bounded<1, 60>,
}

impl RedisConfig {
    /// Where Redis is, if it is to be used.
    pub(crate) fn target(&self) -> Result<Option<Target>, Problem> {
        let (key, parsed) = match (&self.url, &self.urls) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let both = "set redis.url for one server or redis.urls for a cluster, not both";
                return Err(Problem::new("redis.urls", both));
            }
            (Some(url), None) => ("redis.url", Target::from_url(url.expose())),
            (None, Some(urls)) => ("redis.urls", cluster(urls)),
        };
        let target = parsed.map_err(|error| Problem::new(key, told(&error)))?;
        let timeout = Duration::from_millis(self.timeout_ms.get());
        let target = target
            .connections(self.pool_size.get() as usize)
            .timeout(timeout)
            .connect_timeout(Duration::from_secs(self.connect_timeout_seconds.get()));
        let target = match &self.password {
            Some(password) if !password.expose().is_empty() => target.password(password.expose()),
            _ => target,
        };
        Ok(Some(match &self.ca {
            Some(ca) => target.root_certificate(ca.expose()),
            None => target,
        }))
    }
}

/// What is wrong, without the URL: it may hold a password.
fn told(error: &ConfigError) -> String {
    match error {
        ConfigError::Url(_) => "expected a URL such as redis://127.0.0.1:6379".to_owned(),
        other => other.to_string(),
    }
}

fn cluster(urls: &[Secret]) -> Result<Target, ConfigError> {
    let urls: Vec<&str> = urls.iter().map(Secret::expose).collect();
    Target::cluster(&urls)
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: None,
            urls: None,
            password: None,
            ca: None,
            pool_size: Bounded::of::<4>(),
            timeout_ms: Bounded::of::<100>(),
            key_prefix: KeyPrefix::default(),
            connect_timeout_seconds: Bounded::of::<3>(),
        }
    }
}
