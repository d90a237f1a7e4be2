//! What the environment says.

mod peers;
mod secret;
mod variables;

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use headgate_guard::{Cidr, ForwardedBy, Ipv6Prefix, TrustedProxies};
use headgate_persistence::DatabaseConfig;
use headgate_service_config::Reloader;
use thiserror::Error;
use uuid::Uuid;

use self::variables::Variables;
pub use self::{peers::IrohSecret, secret::Secret};
use crate::gossip::Peer;

/// How the node runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// `CN_LISTEN`: where it listens for HTTP and WebSocket.
    pub listen: SocketAddr,
    /// `CN_METRICS_LISTEN`: where it answers `/metrics` and nowhere else; where it listens for HTTP if
    /// nothing is said.
    pub metrics_listen: Option<SocketAddr>,
    /// `CN_SHUTDOWN_DELAY_SECONDS`: how long everything is served after a signal to stop.
    pub shutdown_delay: Duration,
    /// `CN_DATABASE_URL` or `CN_DATABASE_URL_FILE`: where documents and quotas are kept.
    pub database: DatabaseConfig,
    /// The URL of it, for an entrance that keeps something of its own; it may hold a password.
    pub database_url: Secret,
    /// `CN_TRUSTED_PROXIES` and `CN_FORWARDED_BY`: whose word about a client's address is believed, and
    /// in which header.
    pub proxies: TrustedProxies,
    /// `CN_IPV6_PREFIX`: how many bits of an IPv6 address make a client.
    pub ipv6: Ipv6Prefix,
    /// `CN_BACKEND` and `CN_REDIS_URL`: who counts.
    pub backend: Backend,
    /// `CN_IROH_BIND`: where it gossips; nowhere if nothing is said.
    pub iroh_bind: Option<SocketAddr>,
    /// `CN_IROH_SECRET` or `CN_IROH_SECRET_FILE`: what makes its id, as 64 hexadecimal digits; another one at each start if nothing is said.
    pub iroh_secret: Option<IrohSecret>,
    /// `CN_GOSSIP_TOPICS`: which topics it gossips about.
    pub topics: Vec<String>,
    /// `CN_GOSSIP_PEERS`: whom it gossips with at first, such as `id@192.0.2.1:11204`.
    pub peers: Vec<Peer>,
    /// `CN_PUBLIC_URL`: what clients call it, such as `wss://node.example/relay`.
    pub public_url: Option<String>,
    /// `CN_ADMIN_PASSWORD` or `CN_ADMIN_PASSWORD_FILE`: what opens the admin API; without it that is closed.
    pub admin_password: Option<Secret>,
    /// `CN_TOKEN_SECRET` or `CN_TOKEN_SECRET_FILE`: what signs tokens; nodes with the same one believe each
    /// other's. Another one at each start if nothing is said.
    pub token_secret: Option<Secret>,
    /// `CN_REPLICAS`: how many nodes share Redis, and its limits while it is away.
    pub replicas: NonZeroU32,
    /// `CN_INSTANCE`: what the process is called where others see it.
    pub instance: String,
    /// `CN_MAX_QUOTAS`: how many daily quotas are kept before newcomers share one.
    pub max_quotas: usize,
    /// `CN_CONFIG_POLL_SECONDS`: how often documents are read again, even if nobody tells of a change.
    pub poll: Duration,
}

/// Who counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// This process.
    InMemory,
    /// Redis at this URL, for all processes.
    Redis(Secret),
}

/// A variable that is set wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{variable}: {problem}")]
pub struct ConfigError {
    variable: String,
    problem: String,
}

const LISTEN: &str = "CN_LISTEN";
const METRICS_LISTEN: &str = "CN_METRICS_LISTEN";
const SHUTDOWN_DELAY: &str = "CN_SHUTDOWN_DELAY_SECONDS";
const DATABASE_URL: &str = "CN_DATABASE_URL";
const DATABASE_URL_FILE: &str = "CN_DATABASE_URL_FILE";
const TRUSTED_PROXIES: &str = "CN_TRUSTED_PROXIES";
const FORWARDED_BY: &str = "CN_FORWARDED_BY";
const IPV6_PREFIX: &str = "CN_IPV6_PREFIX";
const BACKEND: &str = "CN_BACKEND";
const REDIS_URL: &str = "CN_REDIS_URL";
const REDIS_URL_FILE: &str = "CN_REDIS_URL_FILE";
const IROH_BIND: &str = "CN_IROH_BIND";
const IROH_SECRET: &str = "CN_IROH_SECRET";
const IROH_SECRET_FILE: &str = "CN_IROH_SECRET_FILE";
const GOSSIP_TOPICS: &str = "CN_GOSSIP_TOPICS";
const GOSSIP_PEERS: &str = "CN_GOSSIP_PEERS";
const PUBLIC_URL: &str = "CN_PUBLIC_URL";
const ADMIN_PASSWORD: &str = "CN_ADMIN_PASSWORD";
const ADMIN_PASSWORD_FILE: &str = "CN_ADMIN_PASSWORD_FILE";
const TOKEN_SECRET: &str = "CN_TOKEN_SECRET";
const TOKEN_SECRET_FILE: &str = "CN_TOKEN_SECRET_FILE";
const REPLICAS: &str = "CN_REPLICAS";
const MAX_QUOTAS: &str = "CN_MAX_QUOTAS";
const INSTANCE: &str = "CN_INSTANCE";
const POLL_SECONDS: &str = "CN_CONFIG_POLL_SECONDS";

/// Every variable that begins as ours do.
const OURS: [&str; 25] = [
    LISTEN,
    METRICS_LISTEN,
    SHUTDOWN_DELAY,
    DATABASE_URL,
    DATABASE_URL_FILE,
    TRUSTED_PROXIES,
    FORWARDED_BY,
    IPV6_PREFIX,
    BACKEND,
    REDIS_URL,
    REDIS_URL_FILE,
    IROH_BIND,
    IROH_SECRET,
    IROH_SECRET_FILE,
    GOSSIP_TOPICS,
    GOSSIP_PEERS,
    PUBLIC_URL,
    ADMIN_PASSWORD,
    ADMIN_PASSWORD_FILE,
    TOKEN_SECRET,
    TOKEN_SECRET_FILE,
    REPLICAS,
    MAX_QUOTAS,
    INSTANCE,
    POLL_SECONDS,
];

/// Where everything is kept if nothing is said.
const DEFAULT_DATABASE: &str = "sqlite://data/community-node.db";

/// How many quotas are kept if nothing is said: every node holds them in memory.
const DEFAULT_MAX_QUOTAS: usize = 100_000;

// === impl Config ===

impl Config {
    /// Reads the environment, of which `variables` are all. Without any: memory and a file, on this
    /// machine alone.
    pub fn load(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let variables = Variables::new(variables, "CN_", &OURS)?;
        let listen = variables.parse(LISTEN, "an address and a port, such as 127.0.0.1:8090")?;
        let url = variables.written_or_in_file(DATABASE_URL, DATABASE_URL_FILE)?;
        let url = url.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
        let database = DatabaseConfig::from_url(&url);
        let instance = variables.get(INSTANCE).map(str::to_owned);
        let replicas = variables.parse(REPLICAS, "a number of nodes, at least 1")?;
        Ok(Self {
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8090))),
            metrics_listen: variables
                .parse(METRICS_LISTEN, "an address and a port, such as 127.0.0.1:9090")?,
            shutdown_delay: shutdown_delay(&variables)?,
            database: database
                .map_err(|error| ConfigError::new(DATABASE_URL, error.to_string()))?,
            database_url: Secret::new(url),
            proxies: proxies(&variables)?,
            ipv6: variables.parse(IPV6_PREFIX, Ipv6Prefix::EXPECTED)?.unwrap_or_default(),
            backend: backend(&variables)?,
            iroh_bind: variables
                .parse(IROH_BIND, "an address and a port, such as 0.0.0.0:11204")?,
            iroh_secret: peers::secret(&variables)?,
            topics: peers::topics(&variables)?,
            peers: peers::peers(&variables)?,
            public_url: variables.get(PUBLIC_URL).map(str::to_owned),
            admin_password: strong(&variables, ADMIN_PASSWORD, ADMIN_PASSWORD_FILE)?,
            token_secret: strong(&variables, TOKEN_SECRET, TOKEN_SECRET_FILE)?,
            replicas: replicas.unwrap_or(NonZeroU32::MIN),
            instance: instance.unwrap_or_else(|| format!("node-{}", Uuid::new_v4().simple())),
            max_quotas: max_quotas(&variables)?,
            poll: poll(&variables)?,
        })
    }
}

fn proxies(variables: &Variables) -> Result<TrustedProxies, ConfigError> {
    let ranges = variables.get(TRUSTED_PROXIES).unwrap_or_default().split(',').map(str::trim);
    let ranges = ranges.filter(|range| !range.is_empty()).map(str::parse::<Cidr>);
    let proxies: TrustedProxies = ranges
        .collect::<Result<_, _>>()
        .map_err(|error| ConfigError::new(TRUSTED_PROXIES, error.to_string()))?;
    let header: Option<ForwardedBy> = variables.parse(FORWARDED_BY, ForwardedBy::EXPECTED)?;
    Ok(proxies.forwarded_by(header.unwrap_or_default()))
}

fn backend(variables: &Variables) -> Result<Backend, ConfigError> {
    let url = variables.written_or_in_file(REDIS_URL, REDIS_URL_FILE)?;
    match (variables.get(BACKEND), url) {
        (None | Some("inmem"), None) => Ok(Backend::InMemory),
        (Some("redis"), Some(url)) => Ok(Backend::Redis(Secret::new(url))),
        (Some("redis"), None) => {
            Err(ConfigError::new(REDIS_URL, "is missing: expected redis://host:port"))
        }
        (None | Some("inmem"), Some(_)) => {
            Err(ConfigError::new(BACKEND, "expected redis, since CN_REDIS_URL is set"))
        }
        (Some(_), _) => Err(ConfigError::new(BACKEND, "expected inmem or redis")),
    }
}

/// A secret that cannot be guessed.
fn strong(variables: &Variables, name: &str, file: &str) -> Result<Option<Secret>, ConfigError> {
    let secret = variables.written_or_in_file(name, file)?;
    if secret.as_ref().is_some_and(|secret| secret.len() < Secret::MIN_BYTES) {
        let problem = "expected at least 16 bytes, such as `openssl rand -hex 32` makes";
        return Err(ConfigError::new(name, problem));
    }
    Ok(secret.map(Secret::new))
}

fn max_quotas(variables: &Variables) -> Result<usize, ConfigError> {
    let expected = "a number of quotas, 1 to 10000000";
    match variables.parse(MAX_QUOTAS, expected)? {
        None => Ok(DEFAULT_MAX_QUOTAS),
        Some(max @ 1..=10_000_000) => Ok(max),
        Some(_) => Err(ConfigError::new(MAX_QUOTAS, format!("expected {expected}"))),
    }
}

fn shutdown_delay(variables: &Variables) -> Result<Duration, ConfigError> {
    let expected = "seconds, 0 to 3600";
    match variables.parse::<u64>(SHUTDOWN_DELAY, expected)? {
        None => Ok(Duration::ZERO),
        Some(seconds @ 0..=3600) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(ConfigError::new(SHUTDOWN_DELAY, format!("expected {expected}"))),
    }
}

fn poll(variables: &Variables) -> Result<Duration, ConfigError> {
    let expected = "seconds, 1 to 3600";
    match variables.parse::<u64>(POLL_SECONDS, expected)? {
        None => Ok(Reloader::POLL),
        Some(seconds @ 1..=3600) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err(ConfigError::new(POLL_SECONDS, format!("expected {expected}"))),
    }
}

// === impl ConfigError ===

impl ConfigError {
    fn new(variable: &str, problem: impl Into<String>) -> Self {
        Self { variable: variable.to_owned(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests;
