//! Address, timeouts and certificates.

use std::time::Duration;

use headgate::Circuit;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use thiserror::Error;

use headgate_tls_client::{CertificateError as RedisCertificateError, Certificates};

/// Address, timeouts and certificates of a Redis server, cluster or Sentinel.
#[derive(Clone)]
pub struct RedisConfig {
    pub(crate) topology: Topology,
    pub(crate) connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_in_flight: usize,
    pub(crate) tolerance: u32,
    pub(crate) pause: Duration,
    /// Used for `rediss://`.
    pub(crate) certificates: Certificates,
}

#[derive(Clone)]
pub(crate) enum Topology {
    Standalone(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel { nodes: Vec<ConnectionInfo>, master: String, redis: Box<ConnectionInfo> },
}

/// Invalid configuration of a Redis store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// Invalid URL.
    #[error("invalid Redis URL: {0}")]
    Url(#[from] RedisUrlError),
    /// Invalid Sentinel URL.
    #[error(
        "invalid Sentinel URL: expected \
         redis+sentinel://[user:password@]host:port[,host:port]/master[/db]"
    )]
    Sentinel,
    /// Invalid certificates.
    #[error(transparent)]
    Certificates(#[from] RedisCertificateError),
    /// A cluster without nodes.
    #[error("a cluster needs at least one URL")]
    NoNodes,
}

/// Invalid URL. The message does not contain it: URLs have passwords.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RedisUrlError(redis::RedisError);

impl RedisConfig {
    /// Default timeout of a connection attempt.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

    /// A single server at `url`: `redis://`, `rediss://`, `unix://`, or through Sentinel
    /// `redis+sentinel://[user:password@]host:port[,host:port]/master[/db]`
    /// (`rediss+sentinel://` for TLS).
    pub fn from_url(url: &str) -> Result<Self, RedisConfigError> {
        let topology = match url.split_once("+sentinel://") {
            Some((scheme @ ("redis" | "rediss"), rest)) => sentinel(scheme, rest)?,
            _ => Topology::Standalone(Box::new(connection_info(url)?)),
        };
        Ok(Self::new(topology))
    }

    /// The Redis Cluster of these nodes. One that is up is enough to find the others.
    pub fn cluster<S: AsRef<str>>(urls: &[S]) -> Result<Self, RedisConfigError> {
        if urls.is_empty() {
            return Err(RedisConfigError::NoNodes);
        }
        let nodes: Result<Vec<_>, _> =
            urls.iter().map(|url| connection_info(url.as_ref())).collect();
        Ok(Self::new(Topology::Cluster(nodes?)))
    }

    fn new(topology: Topology) -> Self {
        Self {
            topology,
            connections: 4,
            timeout: Duration::from_millis(100),
            connect_timeout: Self::CONNECT_TIMEOUT,
            max_in_flight: 4_096,
            tolerance: Circuit::FAILURE_THRESHOLD,
            pause: Circuit::RETRY_INTERVAL,
            certificates: Certificates::default(),
        }
    }

    /// Returns the host and port of a single server; `None` for clusters, Sentinel and Unix sockets.
    pub fn server(&self) -> Option<(String, u16)> {
        let Topology::Standalone(server) = &self.topology else { return None };
        match server.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some((host.clone(), *port))
            }
            _ => None,
        }
    }

    /// Number of pipelined connections to a server. Default: 4. A cluster has one to each node
    /// instead.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections: connections.clamp(1, 1024), ..self }
    }

    /// Timeout of a call. Default: 100 ms.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Timeout of a connection attempt. Default: 1 s.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// Password for addresses without one.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        match &mut self.topology {
            Topology::Standalone(redis) | Topology::Sentinel { redis, .. } => {
                **redis = with_password((**redis).clone(), password);
            }
            Topology::Cluster(nodes) => {
                *nodes = nodes.drain(..).map(|node| with_password(node, password)).collect();
            }
        }
        self
    }

    /// Maximum number of checks in flight to a server: a batch counts as many as it has. Default:
    /// 4,096. Excess calls fail at once with
    /// [`StoreError::Overloaded`](headgate::StoreError::Overloaded); one with more checks than half
    /// of a connection's share is sent if half of that is free.
    #[must_use]
    pub fn max_in_flight(self, checks: usize) -> Self {
        Self { max_in_flight: checks.clamp(1, 1 << 24), ..self }
    }

    /// Circuit breaker of each server: the number of consecutive failures that open it, and the
    /// time between retries. Default: 5, and 500 ms.
    #[must_use]
    pub fn breaker(self, tolerance: u32, pause: Duration) -> Self {
        Self { tolerance, pause, ..self }
    }

    /// Certificate authorities to trust, in PEM. Default: those of the system. Used for
    /// `rediss://`.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, RedisConfigError> {
        self.certificates = self.certificates.trusting(pem)?;
        Ok(self)
    }

    /// Client certificate and its private key, in PEM, for a server that requires one.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, RedisConfigError> {
        self.certificates = self.certificates.presenting(certificate, key)?;
        Ok(self)
    }

    /// Returns `true` if any address uses TLS (`rediss://`).
    pub fn is_tls(&self) -> bool {
        let is_tls = |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        match &self.topology {
            Topology::Standalone(redis) | Topology::Sentinel { redis, .. } => is_tls(redis),
            Topology::Cluster(nodes) => nodes.iter().any(is_tls),
        }
    }
}

fn with_password(info: ConnectionInfo, password: &str) -> ConnectionInfo {
    if info.redis_settings().password().is_some() {
        return info;
    }
    let settings = info.redis_settings().clone().set_password(password);
    info.set_redis_settings(settings)
}

fn connection_info(url: &str) -> Result<ConnectionInfo, RedisUrlError> {
    url.into_connection_info().map_err(RedisUrlError)
}

/// Parses the part after `redis+sentinel://`.
fn sentinel(scheme: &str, rest: &str) -> Result<Topology, RedisConfigError> {
    let (authority, path) = rest.split_once('/').ok_or(RedisConfigError::Sentinel)?;
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
        None => (String::new(), authority),
    };
    let (master, db) = path.split_once('/').unwrap_or((path, "0"));
    if master.is_empty() {
        return Err(RedisConfigError::Sentinel);
    }
    let node = |host: &str| connection_info(&format!("{scheme}://{host}"));
    let nodes: Result<Vec<_>, _> = hosts.split(',').map(node).collect();
    let nodes = nodes?;
    // Settings of the connection to the master. Sentinel provides its address.
    let redis = connection_info(&format!("{scheme}://{credentials}master/{db}"))?;
    Ok(Topology::Sentinel { nodes, master: master.to_owned(), redis: Box::new(redis) })
}

impl std::fmt::Debug for RedisConfig {
    /// Omits addresses: URLs have passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let topology = match &self.topology {
            Topology::Standalone(_) => "standalone",
            Topology::Cluster(_) => "cluster",
            Topology::Sentinel { .. } => "sentinel",
        };
        f.debug_struct("RedisConfig")
            .field("topology", &topology)
            .field("connections", &self.connections)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_used_for_addresses_without_one() {
        let password = |info: &ConnectionInfo| info.redis_settings().password().map(str::to_owned);
        for (url, expected) in [
            ("redis://127.0.0.1", "given"),
            ("redis://u@127.0.0.1", "given"),
            ("redis://u:own@127.0.0.1", "own"),
            ("redis+sentinel://127.0.0.1:26379/mymaster", "given"),
        ] {
            let config = RedisConfig::from_url(url).unwrap().password("given");
            let (Topology::Standalone(redis) | Topology::Sentinel { redis, .. }) = config.topology
            else {
                panic!("{url}")
            };
            assert_eq!(password(&redis).as_deref(), Some(expected), "{url}");
        }
        let cluster = RedisConfig::cluster(&["redis://a", "redis://:own@b"]).unwrap();
        let Topology::Cluster(nodes) = cluster.password("given").topology else { panic!() };
        let passwords: Vec<_> = nodes.iter().filter_map(password).collect();
        assert_eq!(passwords, ["given", "own"]);
    }

    #[test]
    fn a_sentinel_url_names_nodes_master_and_database() {
        let url = "redis+sentinel://u:p@127.0.0.1:26379,127.0.0.1:26380/mymaster/2";
        let config = RedisConfig::from_url(url).unwrap();
        let Topology::Sentinel { nodes, master, redis } = config.topology else { panic!() };
        assert_eq!(nodes.len(), 2);
        assert_eq!(master, "mymaster");
        assert_eq!(redis.redis_settings().db(), 2);
        assert_eq!(redis.redis_settings().password(), Some("p"));
    }

    #[test]
    fn an_error_about_an_invalid_url_does_not_quote_it() {
        for url in ["", "http://localhost", "redis+sentinel://127.0.0.1:1", "redis+sentinel://h:1/"]
        {
            assert!(RedisConfig::from_url(url).is_err(), "{url}");
        }
        let error = RedisConfig::from_url("nonsense://user:hunter2@host").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(RedisConfig::cluster::<&str>(&[]).is_err());
    }

    #[test]
    fn debug_output_has_no_password() {
        let config = RedisConfig::from_url("redis://:hunter2@127.0.0.1").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
