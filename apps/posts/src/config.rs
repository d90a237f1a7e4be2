//! Configuration by environment variables.

mod dynamodb;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use headgate_app_common::{Environment, Secret, TlsVariables, VariableError, program::Variable};
use headgate_guard::{Ipv6Prefix, TrustedProxies};
use headgate_store_dynamodb::DynamoDbConfig;
use headgate_tls::TlsConfig;

pub use self::dynamodb::Tables;

/// Configuration of the service.
#[derive(Debug)]
pub struct Config {
    /// `POSTS_LISTEN`: address to listen on.
    pub listen: SocketAddr,
    /// `POSTS_TLS_CERT_FILE` and others: TLS of that address; plain text if `None`.
    pub tls: Option<TlsConfig>,
    /// `POSTS_SHUTDOWN_DELAY_SECONDS`: time for which requests are still accepted after a signal to
    /// stop.
    pub shutdown_delay: Duration,
    /// `POSTS_STORE`: store of cooldowns.
    pub store: StoreKind,
    /// `POSTS_DATABASE`: database of posts.
    pub database: Database,
    /// `POSTS_TRUSTED_PROXIES` and `POSTS_FORWARDED_BY`: proxies whose header with the client's
    /// address is trusted, and the header.
    pub proxies: TrustedProxies,
    /// `POSTS_IPV6_PREFIX`: bits of an IPv6 address that identify an author.
    pub ipv6: Ipv6Prefix,
    /// `POSTS_HMAC_SECRET` or `POSTS_HMAC_SECRET_FILE`: key of the hashes in identifiers.
    pub secret: Option<Secret>,
    /// `POSTS_CREATE_TABLES`: creates DynamoDB tables at the start.
    pub create_tables: bool,
    /// `DYNAMODB_TABLE_PREFIX`: names of the DynamoDB tables.
    pub tables: Tables,
    /// `DYNAMODB_ENDPOINT`, `DYNAMODB_CA_FILE`, `DYNAMODB_TIMEOUT_MS`, `AWS_REGION` and credentials.
    pub dynamodb: DynamoDbConfig,
}

/// Store of cooldowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Memory of this process.
    Memory,
    /// DynamoDB, shared by all processes.
    DynamoDb,
}

/// Database of posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// DynamoDB.
    DynamoDb,
}

/// The variable of [`Config::listen`].
pub const LISTEN: &str = "POSTS_LISTEN";
/// The variables of [`Config::tls`].
pub const TLS: TlsVariables = TlsVariables {
    cert_file: "POSTS_TLS_CERT_FILE",
    key_file: "POSTS_TLS_KEY_FILE",
    client_ca_file: "POSTS_TLS_CLIENT_CA_FILE",
    client_certificates: "POSTS_TLS_CLIENT_CERTIFICATES",
    min_version: "POSTS_TLS_MIN_VERSION",
};
const SHUTDOWN_DELAY: &str = "POSTS_SHUTDOWN_DELAY_SECONDS";
const STORE: &str = "POSTS_STORE";
const DATABASE: &str = "POSTS_DATABASE";
const TRUSTED_PROXIES: &str = "POSTS_TRUSTED_PROXIES";
const FORWARDED_BY: &str = "POSTS_FORWARDED_BY";
const IPV6_PREFIX: &str = "POSTS_IPV6_PREFIX";
const CREATE_TABLES: &str = "POSTS_CREATE_TABLES";
const HMAC_SECRET: &str = "POSTS_HMAC_SECRET";
const HMAC_SECRET_FILE: &str = "POSTS_HMAC_SECRET_FILE";
const DYNAMODB: &str = "dynamodb";

/// All variables, with their help.
pub const VARIABLES: [Variable; 23] = [
    (LISTEN, "Address to listen on [default: 127.0.0.1:3000]"),
    (TLS.cert_file, "Certificates in PEM, comma-separated; plain text without one"),
    (TLS.key_file, "Their private keys, in the same order"),
    (TLS.client_ca_file, "CA certificates that sign client certificates, in PEM"),
    (TLS.client_certificates, "none, optional or required [default: required with such a file]"),
    (TLS.min_version, "Lowest version of TLS, 1.2 or 1.3 [default: 1.2]"),
    (SHUTDOWN_DELAY, "Seconds to serve after a signal to stop, 0 to 3600 [default: 0]"),
    (STORE, "Store of cooldowns: memory or dynamodb [default: memory]"),
    (DATABASE, "Database of posts: path of a SQLite file, or dynamodb [default: data/posts.db]"),
    (TRUSTED_PROXIES, "Addresses and ranges of trusted proxies, comma-separated"),
    (
        FORWARDED_BY,
        "Header of trusted proxies: first_present, x_forwarded_for, forwarded, x_real_ip",
    ),
    (IPV6_PREFIX, "Bits of an IPv6 address that identify an author, 48 to 64 [default: 64]"),
    (CREATE_TABLES, "Whether to create DynamoDB tables at the start [default: false]"),
    (HMAC_SECRET, "Key of the hashes in identifiers, at least 16 bytes"),
    (HMAC_SECRET_FILE, "File with that key"),
    (dynamodb::PREFIX, "Prefix of DynamoDB table names [default: aruaruarena]"),
    (dynamodb::ENDPOINT, "URL of DynamoDB, if it is not Amazon's"),
    (dynamodb::CA_FILE, "Certificate authorities of that URL, in PEM"),
    (dynamodb::TIMEOUT, "Timeout of DynamoDB in milliseconds, 1 to 60000 [default: 500]"),
    (dynamodb::REGION, "AWS region [default: ap-northeast-1]"),
    (dynamodb::KEY, "AWS credentials: access key id"),
    (dynamodb::KEY_SECRET, "AWS credentials: secret access key"),
    (dynamodb::SESSION, "AWS credentials: session token"),
];

// === impl Config ===

impl Config {
    /// Scheme of the service's URLs.
    pub fn scheme(&self) -> &'static str {
        self.tls.as_ref().map_or("http", TlsConfig::scheme)
    }

    /// Reads `variables`, the whole environment. Without any, the service runs on this machine
    /// alone, with cooldowns in memory and posts in a file.
    pub fn load(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, VariableError> {
        let environment = Environment::new(variables, "POSTS_", &VARIABLES)?;
        let listen = environment.parse(LISTEN, "an address and a port, such as 127.0.0.1:3000")?;
        let store = match environment.get(STORE) {
            None | Some("memory") => StoreKind::Memory,
            Some(DYNAMODB) => StoreKind::DynamoDb,
            Some(_) => return Err(VariableError::expected(STORE, "memory or dynamodb")),
        };
        let database = match (environment.get(DATABASE), store) {
            (Some(DYNAMODB), _) | (None, StoreKind::DynamoDb) => Database::DynamoDb,
            (None, StoreKind::Memory) => Database::Sqlite("data/posts.db".into()),
            (Some(path), _) => Database::Sqlite(path.into()),
        };
        let tables = Tables::load(&environment)?;
        Ok(Self {
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 3000))),
            tls: TLS.load(&environment)?,
            shutdown_delay: environment.seconds(SHUTDOWN_DELAY, 0..=3_600, Duration::ZERO)?,
            store,
            database,
            proxies: environment.proxies(TRUSTED_PROXIES, FORWARDED_BY)?,
            ipv6: environment.parse(IPV6_PREFIX, Ipv6Prefix::EXPECTED)?.unwrap_or_default(),
            secret: environment.secret(HMAC_SECRET, HMAC_SECRET_FILE)?,
            create_tables: environment.parse(CREATE_TABLES, "true or false")?.unwrap_or_default(),
            dynamodb: dynamodb::load(&environment, &tables)?,
            tables,
        })
    }
}

#[cfg(test)]
mod tests;
