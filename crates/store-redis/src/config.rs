//! Where Redis is, and how patient to be with it.

use std::time::Duration;

use headgate::Circuit;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use thiserror::Error;

use crate::tls::{CertificateProblem, Certificates};

/// Where Redis is, and how patient to be with it.
#[derive(Clone)]
pub struct RedisConfig {
    pub(crate) topology: Topology,
    pub(crate) connections: usize,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_in_flight: usize,
    pub(crate) tolerance: u32,
    pub(crate) pause: Duration,
    /// For `rediss://`.
    pub(crate) certificates: Certificates,
}

#[derive(Clone)]
pub(crate) enum Topology {
    Standalone(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel { nodes: Vec<ConnectionInfo>, master: String, redis: Box<ConnectionInfo> },
}

/// Why an address is not one of Redis.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The URL does not parse.
    #[error("not a Redis URL: {0}")]
    Url(#[from] redis::RedisError),
    /// A Sentinel URL names its master after the addresses.
    #[error(
        "a Sentinel URL reads redis+sentinel://[user:password@]host:port[,host:port]/master[/db]"
    )]
    Sentinel,
    /// Certificates are of no use.
    #[error(transparent)]
    Certificates(#[from] CertificateProblem),
    /// A cluster needs a place to begin.
    #[error("a cluster needs at least one URL")]
    NoNodes,
}

impl RedisConfig {
    /// Redis at `url`: `redis://`, `rediss://`, `unix://`, or through Sentinel
    /// `redis+sentinel://[user:password@]host:port[,host:port]/master[/db]`
    /// (`rediss+sentinel://` for TLS).
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        let topology = match url.split_once("+sentinel://") {
            Some((scheme @ ("redis" | "rediss"), rest)) => sentinel(scheme, rest)?,
            _ => Topology::Standalone(Box::new(url.into_connection_info()?)),
        };
        Ok(Self::new(topology))
    }

    /// The Redis Cluster that any of these nodes knows.
    pub fn cluster<S: AsRef<str>>(urls: &[S]) -> Result<Self, ConfigError> {
        if urls.is_empty() {
            return Err(ConfigError::NoNodes);
        }
        let nodes: Result<Vec<_>, _> =
            urls.iter().map(|url| url.as_ref().into_connection_info()).collect();
        Ok(Self::new(Topology::Cluster(nodes?)))
    }

    fn new(topology: Topology) -> Self {
        Self {
            topology,
            connections: 4,
            timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(1),
            max_in_flight: 4_096,
            tolerance: Circuit::FAILURE_THRESHOLD,
            pause: Circuit::RETRY_INTERVAL,
            certificates: Certificates::default(),
        }
    }

    /// How many connections share the load, 4 unless said; each carries any number
    /// of calls at a time. A cluster has one to each node instead.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections: connections.clamp(1, 1024), ..self }
    }

    /// How long a decision may take, 100 ms unless said.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// How long it may take to connect, 1 s unless said.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// With which password, where an address has none.
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

    /// How many calls to a server may be in flight, 4,096 unless said; more are refused at once with
    /// [`StoreError::Overloaded`](headgate::StoreError::Overloaded).
    #[must_use]
    pub fn max_in_flight(self, calls: usize) -> Self {
        Self { max_in_flight: calls.clamp(1, 1 << 24), ..self }
    }

    /// After how many failures in a row a server is left alone, and how long between tries; 5 and
    /// 500 ms unless said. Every node of a cluster is counted by itself.
    #[must_use]
    pub fn breaker(self, tolerance: u32, pause: Duration) -> Self {
        Self { tolerance, pause, ..self }
    }

    /// The authorities that sign Redis's certificate, in PEM; the system's
    /// authorities unless said. Only `rediss://` asks for it.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Result<Self, ConfigError> {
        self.certificates.authorities = Some(pem.into());
        self.certificates.check()?;
        Ok(self)
    }

    /// The certificate that a Redis wants to see which knows its clients by theirs, and its private
    /// key, in PEM.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, ConfigError> {
        self.certificates.client = Some((certificate.into(), key.into()));
        self.certificates.check()?;
        Ok(self)
    }

    /// Whether any address is `rediss://`.
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

/// Reads what follows `redis+sentinel://`.
fn sentinel(scheme: &str, rest: &str) -> Result<Topology, ConfigError> {
    let (authority, path) = rest.split_once('/').ok_or(ConfigError::Sentinel)?;
    let (credentials, hosts) = match authority.rsplit_once('@') {
        Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
        None => (String::new(), authority),
    };
    let (master, db) = path.split_once('/').unwrap_or((path, "0"));
    if master.is_empty() {
        return Err(ConfigError::Sentinel);
    }
    let node = |host: &str| format!("{scheme}://{host}").into_connection_info();
    let nodes: Result<Vec<_>, _> = hosts.split(',').map(node).collect();
    let nodes = nodes?;
    // The master's address is Sentinel's to tell; the rest of this one is how to talk to it.
    let redis = format!("{scheme}://{credentials}master/{db}").into_connection_info()?;
    Ok(Topology::Sentinel { nodes, master: master.to_owned(), redis: Box::new(redis) })
}

impl std::fmt::Debug for RedisConfig {
    /// Says nothing of addresses: URLs carry passwords.
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
    fn a_password_completes_every_address_that_has_none() {
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
    fn what_is_no_redis_url_is_refused_without_repeating_it() {
        for url in ["", "http://localhost", "redis+sentinel://127.0.0.1:1", "redis+sentinel://h:1/"]
        {
            assert!(RedisConfig::from_url(url).is_err(), "{url}");
        }
        let error = RedisConfig::from_url("nonsense://user:hunter2@host").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(RedisConfig::cluster::<&str>(&[]).is_err());
    }

    #[test]
    fn debugging_a_configuration_shows_no_password() {
        let config = RedisConfig::from_url("redis://:hunter2@127.0.0.1").unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
