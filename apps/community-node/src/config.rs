//! Configuration by environment variables.

mod peers;

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use headgate_app_common::{Environment, Secret, TlsVariables, VariableError, program::Variable};
use headgate_guard::{Ipv6Prefix, TrustedProxies};
use headgate_persistence::DatabaseConfig;
use headgate_service_config::Reloader;
use headgate_tls::TlsConfig;
use uuid::Uuid;

pub use self::peers::IrohSecret;
use crate::gossip::Peer;

/// Configuration of the node.
#[derive(Clone, Debug)]
pub struct Config {
    /// `CN_LISTEN`: address for HTTP and WebSocket.
    pub listen: SocketAddr,
    /// `CN_METRICS_LISTEN`: the only address that serves `/metrics`; that of `CN_LISTEN` if `None`.
    pub metrics_listen: Option<SocketAddr>,
    /// `CN_TLS_CERT_FILE` and others: TLS of both addresses; plain text if `None`.
    pub tls: Option<TlsConfig>,
    /// `CN_SHUTDOWN_DELAY_SECONDS`: time for which requests are still accepted after a signal to
    /// stop.
    pub shutdown_delay: Duration,
    /// `CN_DATABASE_URL` or `CN_DATABASE_URL_FILE`: database of documents and quotas.
    pub database: DatabaseConfig,
    /// URL of the database, which may hold a password.
    pub database_url: Secret,
    /// `CN_TRUSTED_PROXIES` and `CN_FORWARDED_BY`: proxies whose header with the client's address
    /// is trusted, and the header.
    pub proxies: TrustedProxies,
    /// `CN_IPV6_PREFIX`: bits of an IPv6 address that identify a client.
    pub ipv6: Ipv6Prefix,
    /// `CN_BACKEND`, `CN_REDIS_URL` and `CN_REDIS_TIMEOUT_MS`: backend of the limits.
    pub backend: Backend,
    /// `CN_IROH_BIND`: address for gossip; no gossip if `None`.
    pub iroh_bind: Option<SocketAddr>,
    /// `CN_IROH_SECRET` or `CN_IROH_SECRET_FILE`: key of the node's id among peers, as 64
    /// hexadecimal digits; a new one at each start if `None`.
    pub iroh_secret: Option<IrohSecret>,
    /// `CN_GOSSIP_TOPICS`: topics that the node gossips about.
    pub topics: Vec<String>,
    /// `CN_GOSSIP_PEERS`: first peers, such as `id@192.0.2.1:11204`.
    pub peers: Vec<Peer>,
    /// `CN_PUBLIC_URL`: URL of the relay for clients, such as `wss://node.example/relay`.
    pub public_url: Option<String>,
    /// `CN_ADMIN_PASSWORD` or `CN_ADMIN_PASSWORD_FILE`: password of the admin API, which is closed
    /// without it.
    pub admin_password: Option<Secret>,
    /// `CN_TOKEN_SECRET` or `CN_TOKEN_SECRET_FILE`: signs tokens; nodes with the same secret accept
    /// each other's. A new one at each start if `None`.
    pub token_secret: Option<Secret>,
    /// `CN_REPLICAS`: number of nodes that share Redis, and its limits while it is unavailable.
    pub replicas: NonZeroU32,
    /// `CN_INSTANCE`: name of the process in reports.
    pub instance: String,
    /// `CN_MAX_QUOTAS`: maximum number of daily quotas, beyond which new keys share some.
    pub max_quotas: usize,
    /// `CN_CONFIG_POLL_SECONDS`: interval at which documents are read again, even without a
    /// notification.
    pub poll: Duration,
}

/// Backend of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Memory of this process.
    InMemory,
    /// Redis, shared by all processes.
    Redis {
        /// Its URL.
        url: Secret,
        /// Timeout of a call, after which the node counts by itself.
        timeout: Duration,
    },
}

/// The variable of [`Config::listen`].
pub const LISTEN: &str = "CN_LISTEN";
/// The variable of [`Config::metrics_listen`].
pub const METRICS_LISTEN: &str = "CN_METRICS_LISTEN";
/// The variables of [`Config::tls`].
pub const TLS: TlsVariables = TlsVariables {
    cert_file: "CN_TLS_CERT_FILE",
    key_file: "CN_TLS_KEY_FILE",
    client_ca_file: "CN_TLS_CLIENT_CA_FILE",
    client_certificates: "CN_TLS_CLIENT_CERTIFICATES",
    min_version: "CN_TLS_MIN_VERSION",
};
const SHUTDOWN_DELAY: &str = "CN_SHUTDOWN_DELAY_SECONDS";
const DATABASE_URL: &str = "CN_DATABASE_URL";
const DATABASE_URL_FILE: &str = "CN_DATABASE_URL_FILE";
const TRUSTED_PROXIES: &str = "CN_TRUSTED_PROXIES";
const FORWARDED_BY: &str = "CN_FORWARDED_BY";
const IPV6_PREFIX: &str = "CN_IPV6_PREFIX";
const BACKEND: &str = "CN_BACKEND";
const REDIS_URL: &str = "CN_REDIS_URL";
const REDIS_URL_FILE: &str = "CN_REDIS_URL_FILE";
const REDIS_TIMEOUT: &str = "CN_REDIS_TIMEOUT_MS";
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

/// All variables, with their help.
pub const VARIABLES: [Variable; 31] = [
    (LISTEN, "Address for HTTP and WebSocket [default: 127.0.0.1:8090]"),
    (METRICS_LISTEN, "Address for /metrics, which is then served nowhere else"),
    (TLS.cert_file, "Certificates in PEM, comma-separated; plain text without one"),
    (TLS.key_file, "Their private keys, in the same order"),
    (TLS.client_ca_file, "CA certificates that sign client certificates, in PEM"),
    (TLS.client_certificates, "none, optional or required [default: required with such a file]"),
    (TLS.min_version, "Lowest version of TLS, 1.2 or 1.3 [default: 1.2]"),
    (SHUTDOWN_DELAY, "Seconds to serve after a signal to stop, 0 to 3600 [default: 0]"),
    (DATABASE_URL, "sqlite:// or postgresql:// [default: sqlite://data/community-node.db]"),
    (DATABASE_URL_FILE, "File with that URL"),
    (TRUSTED_PROXIES, "Addresses and ranges of trusted proxies, comma-separated"),
    (
        FORWARDED_BY,
        "Header of trusted proxies: first_present, x_forwarded_for, forwarded, x_real_ip",
    ),
    (IPV6_PREFIX, "Bits of an IPv6 address that identify a client, 48 to 64 [default: 64]"),
    (BACKEND, "Where limits are counted: inmem or redis [default: inmem]"),
    (REDIS_URL, "URL of Redis"),
    (REDIS_URL_FILE, "File with that URL"),
    (REDIS_TIMEOUT, "Milliseconds that Redis may take to answer, 1 to 60000 [default: 100]"),
    (IROH_BIND, "Address for gossip; no gossip without it"),
    (IROH_SECRET, "Key of the node's id among peers, 64 hexadecimal digits"),
    (IROH_SECRET_FILE, "File with that key"),
    (GOSSIP_TOPICS, "Topics to gossip about, comma-separated"),
    (GOSSIP_PEERS, "First peers, such as id@192.0.2.1:11204, comma-separated"),
    (PUBLIC_URL, "URL of the relay for clients, such as wss://node.example/relay"),
    (ADMIN_PASSWORD, "Password of the admin API, which is closed without it"),
    (ADMIN_PASSWORD_FILE, "File with that password"),
    (TOKEN_SECRET, "Secret that signs tokens; a new one at each start without it"),
    (TOKEN_SECRET_FILE, "File with that secret"),
    (REPLICAS, "Number of nodes that share Redis [default: 1]"),
    (MAX_QUOTAS, "Most daily quotas [default: 100000]"),
    (INSTANCE, "Name of the process in reports [default: a random one]"),
    (POLL_SECONDS, "Seconds between reads of documents, 1 to 3600 [default: 30]"),
];

const DEFAULT_REDIS_TIMEOUT: Duration = Duration::from_millis(100);

const DEFAULT_DATABASE: &str = "sqlite://data/community-node.db";

/// Default maximum of quotas, which every node holds in memory.
const DEFAULT_MAX_QUOTAS: usize = 100_000;

// === impl Config ===

impl Config {
    /// Scheme of the node's URLs.
    pub fn scheme(&self) -> &'static str {
        self.tls.as_ref().map_or("http", TlsConfig::scheme)
    }

    /// Reads `variables`, the whole environment. Without any, the node runs on this machine alone,
    /// with limits in memory and the rest in a file.
    pub fn load(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, VariableError> {
        let environment = Environment::new(variables, "CN_", &VARIABLES)?;
        let address = |name, example| {
            environment.parse(name, &format!("an address and a port, such as {example}"))
        };
        let listen = address(LISTEN, "127.0.0.1:8090")?;
        let url = environment.value_or_file(DATABASE_URL, DATABASE_URL_FILE)?;
        let url = url.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
        let database = DatabaseConfig::from_url(&url);
        let instance = environment.get(INSTANCE).map(str::to_owned);
        let replicas = environment.parse(REPLICAS, "a number of nodes, at least 1")?;
        Ok(Self {
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8090))),
            metrics_listen: address(METRICS_LISTEN, "127.0.0.1:9090")?,
            tls: TLS.load(&environment)?,
            shutdown_delay: environment.seconds(SHUTDOWN_DELAY, 0..=3_600, Duration::ZERO)?,
            database: database
                .map_err(|error| VariableError::new(DATABASE_URL, error.to_string()))?,
            database_url: Secret::new(url),
            proxies: environment.proxies(TRUSTED_PROXIES, FORWARDED_BY)?,
            ipv6: environment.parse(IPV6_PREFIX, Ipv6Prefix::EXPECTED)?.unwrap_or_default(),
            backend: backend(&environment)?,
            iroh_bind: address(IROH_BIND, "0.0.0.0:11204")?,
            iroh_secret: peers::secret(&environment)?,
            topics: peers::topics(&environment)?,
            peers: peers::peers(&environment)?,
            public_url: environment.get(PUBLIC_URL).map(str::to_owned),
            admin_password: environment.secret(ADMIN_PASSWORD, ADMIN_PASSWORD_FILE)?,
            token_secret: environment.secret(TOKEN_SECRET, TOKEN_SECRET_FILE)?,
            replicas: replicas.unwrap_or(NonZeroU32::MIN),
            instance: instance.unwrap_or_else(|| format!("node-{}", Uuid::new_v4().simple())),
            max_quotas: max_quotas(&environment)?,
            poll: environment.seconds(POLL_SECONDS, 1..=3_600, Reloader::POLL)?,
        })
    }
}

fn backend(environment: &Environment) -> Result<Backend, VariableError> {
    let url = environment.value_or_file(REDIS_URL, REDIS_URL_FILE)?;
    let timeout = environment.milliseconds(REDIS_TIMEOUT, 1..=60_000, DEFAULT_REDIS_TIMEOUT)?;
    match (environment.get(BACKEND), url) {
        (None | Some("inmem"), None) => Ok(Backend::InMemory),
        (Some("redis"), Some(url)) => Ok(Backend::Redis { url: Secret::new(url), timeout }),
        (Some("redis"), None) => {
            Err(VariableError::new(REDIS_URL, "is missing: expected redis://host:port"))
        }
        (None | Some("inmem"), Some(_)) => {
            Err(VariableError::expected(BACKEND, "redis, since CN_REDIS_URL is set"))
        }
        (Some(_), _) => Err(VariableError::expected(BACKEND, "inmem or redis")),
    }
}

fn max_quotas(environment: &Environment) -> Result<usize, VariableError> {
    let expected = "a number of quotas, 1 to 10000000";
    match environment.parse(MAX_QUOTAS, expected)? {
        None => Ok(DEFAULT_MAX_QUOTAS),
        Some(max @ 1..=10_000_000) => Ok(max),
        Some(_) => Err(VariableError::expected(MAX_QUOTAS, expected)),
    }
}

#[cfg(test)]
mod tests;
