//! What the environment says.

mod dynamodb;
mod secret;
mod variables;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use headgate_guard::{Cidr, ForwardedBy, Ipv6Prefix, TrustedProxies};
use headgate_store_dynamodb::DynamoDbConfig;
use thiserror::Error;

use self::variables::Variables;
pub use self::{dynamodb::Tables, secret::Secret};

/// How the service runs.
#[derive(Debug)]
pub struct Config {
    /// `POSTS_LISTEN`: where it listens.
    pub listen: SocketAddr,
    /// `POSTS_SHUTDOWN_DELAY_SECONDS`: how long everything is served after a signal to stop.
    pub shutdown_delay: Duration,
    /// `POSTS_STORE`: who keeps cooldowns.
    pub store: StoreKind,
    /// `POSTS_DATABASE`: who keeps posts.
    pub database: Database,
    /// `POSTS_TRUSTED_PROXIES` and `POSTS_FORWARDED_BY`: whose word about a client's address is believed, and
    /// in which header.
    pub proxies: TrustedProxies,
    /// `POSTS_IPV6_PREFIX`: how many bits of an IPv6 address make an author.
    pub ipv6: Ipv6Prefix,
    /// `POSTS_HMAC_SECRET` or `POSTS_HMAC_SECRET_FILE`: what keys the hashes.
    pub secret: Option<Secret>,
    /// `POSTS_CREATE_TABLES`: whether tables in DynamoDB are made at the start.
    pub create_tables: bool,
    /// `DYNAMODB_TABLE_PREFIX`: what tables in DynamoDB are called.
    pub tables: Tables,
    /// `DYNAMODB_ENDPOINT`, `DYNAMODB_TIMEOUT_MS`, `AWS_REGION` and credentials.
    pub dynamodb: DynamoDbConfig,
}

/// Who keeps cooldowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// This process.
    Memory,
    /// DynamoDB, for all processes.
    DynamoDb,
}

/// Who keeps posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// DynamoDB.
    DynamoDb,
}

/// A variable that is set wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{variable}: {problem}")]
pub struct ConfigError {
    variable: String,
    problem: String,
}

const LISTEN: &str = "POSTS_LISTEN";
const SHUTDOWN_DELAY: &str = "POSTS_SHUTDOWN_DELAY_SECONDS";
const STORE: &str = "POSTS_STORE";
const DATABASE: &str = "POSTS_DATABASE";
const TRUSTED_PROXIES: &str = "POSTS_TRUSTED_PROXIES";
const FORWARDED_BY: &str = "POSTS_FORWARDED_BY";
const IPV6_PREFIX: &str = "POSTS_IPV6_PREFIX";
const CREATE_TABLES: &str = "POSTS_CREATE_TABLES";
const DYNAMODB: &str = "dynamodb";

/// Every variable that begins as ours do.
const OURS: [&str; 10] = [
    LISTEN,
    SHUTDOWN_DELAY,
    STORE,
    DATABASE,
    TRUSTED_PROXIES,
    FORWARDED_BY,
    IPV6_PREFIX,
    CREATE_TABLES,
    Secret::VARIABLE,
    Secret::FILE_VARIABLE,
];

// === impl Config ===

impl Config {
    /// Reads the environment, of which `variables` are all. Without any: memory and a file, on this machine alone.
    pub fn load(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let variables = Variables::new(variables, "POSTS_", &OURS)?;
        let listen = variables.parse(LISTEN, "an address and a port, such as 127.0.0.1:3000")?;
        let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 3000)));
        let store = match variables.get(STORE) {
            None | Some("memory") => StoreKind::Memory,
            Some(DYNAMODB) => StoreKind::DynamoDb,
            Some(_) => return Err(ConfigError::new(STORE, "expected memory or dynamodb")),
        };
        let database = match (variables.get(DATABASE), store) {
            (Some(DYNAMODB), _) | (None, StoreKind::DynamoDb) => Database::DynamoDb,
            (None, StoreKind::Memory) => Database::Sqlite("data/posts.db".into()),
            (Some(path), _) => Database::Sqlite(path.into()),
        };
        let tables = Tables::load(&variables)?;
        Ok(Self {
            listen,
            shutdown_delay: shutdown_delay(&variables)?,
            store,
            database,
            proxies: proxies(&variables)?,
            ipv6: variables.parse(IPV6_PREFIX, Ipv6Prefix::EXPECTED)?.unwrap_or_default(),
            secret: Secret::load(&variables)?,
            create_tables: variables.parse(CREATE_TABLES, "true or false")?.unwrap_or_default(),
            dynamodb: dynamodb::load(&variables, &tables)?,
            tables,
        })
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

fn proxies(variables: &Variables) -> Result<TrustedProxies, ConfigError> {
    let ranges = variables.get(TRUSTED_PROXIES).unwrap_or_default().split(',').map(str::trim);
    let ranges = ranges.filter(|range| !range.is_empty()).map(str::parse::<Cidr>);
    let proxies: TrustedProxies = ranges
        .collect::<Result<_, _>>()
        .map_err(|error| ConfigError::new(TRUSTED_PROXIES, error.to_string()))?;
    let header: Option<ForwardedBy> = variables.parse(FORWARDED_BY, ForwardedBy::EXPECTED)?;
    Ok(proxies.forwarded_by(header.unwrap_or_default()))
}

// === impl ConfigError ===

impl ConfigError {
    fn new(variable: &str, problem: impl Into<String>) -> Self {
        Self { variable: variable.to_owned(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests;
