use std::{fmt, num::NonZeroU32, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections, quoted};
use headgate_quota::StoreCounter;
use headgate_store_redis::{RedisConfig as Target, RedisConfigError};
use serde::Deserialize;

/// Redis, where replicas share counters. Without an address, counters are in memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RedisConfig {
    /// `redis.url`: one server, or a master behind Sentinels.
    pub url: Option<Secret>,
    /// `redis.urls`: nodes of a Redis Cluster.
    pub urls: Option<Vec<Secret>>,
    /// `redis.password`: password for addresses that have none.
    pub password: Option<Secret>,
    /// `redis.ca`: CA certificate of Redis, in PEM.
    pub ca: Option<Secret>,
    /// `redis.cert`: client certificate, in PEM.
    pub cert: Option<Secret>,
    /// `redis.key`: private key of the client certificate, in PEM.
    pub key: Option<Secret>,
    /// `redis.pool_size`: connections per Redis server.
    pub pool_size: Bounded<1, 1024>,
    /// `redis.timeout_ms`: timeout of a decision.
    pub timeout_ms: Bounded<1, 60_000>,
    /// `redis.max_in_flight`: maximum number of checks in flight per Redis server; more are shed.
    pub max_in_flight: Bounded<1, 1_000_000>,
    /// `redis.max_new_subjects_per_second`: new subjects that this instance adds per second.
    pub max_new_subjects_per_second: Option<Bounded<1, 1_000_000_000>>,
    /// `redis.key_prefix`: prefix of the keys of quota counters.
    pub key_prefix: KeyPrefix,
    /// `redis.connect_timeout_seconds`: timeout of connecting.
    pub connect_timeout_seconds: Bounded<1, 60>,
}

/// Prefix of the keys of quota counters.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct KeyPrefix(String);

impl RedisConfig {
    /// Returns the address of Redis, if one is configured.
    pub fn target(&self) -> Result<Option<Target>, Problem> {
        let (key, parsed) = match (&self.url, &self.urls) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let both = "set redis.url for one server or redis.urls for a cluster, not both";
                return Err(Problem::new("redis.urls", both));
            }
            (Some(url), None) => ("redis.url", Target::from_url(url.expose())),
            (None, Some(urls)) => ("redis.urls", cluster(urls)),
        };
        let target = parsed.map_err(|error| Problem::new(key, describe(&error)))?;
        let timeout = Duration::from_millis(self.timeout_ms.get());
        let target = target
            .connections(self.pool_size.get() as usize)
            .timeout(timeout)
            .max_in_flight(self.max_in_flight.get() as usize)
            .connect_timeout(Duration::from_secs(self.connect_timeout_seconds.get()));
        let target = match &self.password {
            Some(password) if !password.expose().is_empty() => target.password(password.expose()),
            _ => target,
        };
        self.with_certificates(target).map(Some)
    }

    fn with_certificates(&self, target: Target) -> Result<Target, Problem> {
        let problem = |key: &str, error: RedisConfigError| Problem::new(key, describe(&error));
        let target = match &self.ca {
            Some(ca) => {
                target.root_certificate(ca.expose()).map_err(|error| problem("redis.ca", error))?
            }
            None => target,
        };
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => target
                .client_certificate(cert.expose(), key.expose())
                .map_err(|error| problem("redis.cert", error)),
            (None, None) => Ok(target),
            (Some(_), None) => Err(Problem::new("redis.key", "redis.cert needs its private key")),
            (None, Some(_)) => Err(Problem::new("redis.cert", "redis.key needs its certificate")),
        }
    }

    /// Returns the bound of new subjects per second, if there is one.
    pub fn new_subjects_per_second(&self) -> Option<NonZeroU32> {
        let bound = self.max_new_subjects_per_second.as_ref()?.get();
        u32::try_from(bound).ok().and_then(NonZeroU32::new)
    }
}

/// Describes the error without the URL, which may contain a password.
fn describe(error: &RedisConfigError) -> String {
    match error {
        RedisConfigError::Url(_) => "expected a URL such as redis://127.0.0.1:6379".to_owned(),
        other => other.to_string(),
    }
}

fn cluster(urls: &[Secret]) -> Result<Target, RedisConfigError> {
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
            cert: None,
            key: None,
            pool_size: Bounded::of::<4>(),
            timeout_ms: Bounded::of::<100>(),
            max_in_flight: Bounded::of::<4_096>(),
            max_new_subjects_per_second: None,
            key_prefix: KeyPrefix::default(),
            connect_timeout_seconds: Bounded::of::<3>(),
        }
    }
}

// === impl KeyPrefix ===

impl KeyPrefix {
    const MAX_BYTES: usize = 64;

    /// Returns the prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for KeyPrefix {
    fn default() -> Self {
        Self(StoreCounter::PREFIX.to_owned())
    }
}

impl TryFrom<String> for KeyPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Braces are a hash tag in Redis Cluster.
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}');
        if (1..=Self::MAX_BYTES).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(Self(text));
        }
        let max = Self::MAX_BYTES;
        Err(format!(
            "expected 1 to {max} visible ASCII characters other than braces, such as quota:, got {}",
            quoted(&text)
        ))
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Print ===

print_sections! {
    RedisConfig {
        url, urls, password, ca, cert, key, pool_size, timeout_ms, max_in_flight,
        max_new_subjects_per_second, key_prefix, connect_timeout_seconds,
    }
}

impl Print for KeyPrefix {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}
