//! The clients that a configuration describes.

use redis::{
    Client, ConnectionAddr, ConnectionInfo, RedisResult, TlsCertificates, TlsMode,
    cluster::{ClusterClient, ClusterClientBuilder},
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};

use crate::RedisConfig;

pub(crate) fn standalone(config: &RedisConfig, redis: &ConnectionInfo) -> RedisResult<Client> {
    match certificates(config) {
        Some(certificates) if is_tls(redis) => Client::build_with_tls(redis.clone(), certificates),
        _ => Client::open(redis.clone()),
    }
}

pub(crate) fn cluster(
    config: &RedisConfig,
    nodes: &[ConnectionInfo],
) -> RedisResult<ClusterClient> {
    let builder = ClusterClientBuilder::new(nodes.iter().cloned())
        .connection_timeout(config.connect_timeout)
        .response_timeout(config.timeout)
        .overall_response_timeout(Some(config.timeout))
        .retries(4)
        .min_retry_wait(5)
        .max_retry_wait(50);
    match certificates(config) {
        Some(certificates) if nodes.iter().any(is_tls) => builder.certs(certificates).build(),
        _ => builder.build(),
    }
}

/// `redis` is how to talk to the master, wherever Sentinel says it is.
pub(crate) fn sentinel(
    config: &RedisConfig,
    nodes: &[ConnectionAddr],
    master: &str,
    redis: &ConnectionInfo,
) -> RedisResult<SentinelClient> {
    let settings = redis.redis_settings();
    let mut builder =
        SentinelClientBuilder::new(nodes.iter().cloned(), master, SentinelServerType::Master)?
            .set_client_to_redis_db(settings.db());
    if let Some(username) = settings.username() {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = settings.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if is_tls(redis) {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        if let Some(certificates) = certificates(config) {
            builder = builder.set_client_to_redis_certificates(certificates.clone());
            builder = builder.set_client_to_sentinel_certificates(certificates);
        }
    }
    builder.build()
}

fn is_tls(redis: &ConnectionInfo) -> bool {
    matches!(redis.addr(), ConnectionAddr::TcpTls { .. })
}

fn certificates(config: &RedisConfig) -> Option<TlsCertificates> {
    let root_cert = config.root_certificate.clone()?;
    Some(TlsCertificates { client_tls: None, root_cert: Some(root_cert) })
}
