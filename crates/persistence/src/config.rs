//! Where the database is, and how patient to be with it.

use std::{fmt, path::PathBuf, time::Duration};

use sqlx::postgres::PgConnectOptions;
use thiserror::Error;

/// Where the database is, and how patient to be with it.
#[derive(Clone)]
pub struct DatabaseConfig {
    pub(crate) place: Place,
    /// Whether the URL says with which password.
    has_password: bool,
    pub(crate) max_connections: u32,
    pub(crate) min_connections: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_lifetime: Duration,
    pub(crate) schema: String,
    pub(crate) max_rules: u64,
}

#[derive(Clone)]
pub(crate) enum Place {
    Postgres(Box<PgConnectOptions>),
    File(PathBuf),
    Memory,
}

/// Where a PostgreSQL database is, in parts.
#[derive(Clone, Copy)]
pub struct PostgresParts<'p> {
    /// A name, an address, or the folder of a Unix socket.
    pub host: &'p str,
    /// The server's port.
    pub port: u16,
    /// The database.
    pub name: &'p str,
    /// Who logs in.
    pub user: &'p str,
    /// With which password, if one is asked for.
    pub password: Option<&'p str>,
    /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
    pub ssl_mode: &'p str,
}

/// Why there is no such database. No message repeats what was given: it may hold a password.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A URL of something else.
    #[error("a database URL begins with postgresql://, postgres:// or sqlite://")]
    Scheme,
    /// The URL does not parse.
    #[error(
        "a PostgreSQL URL reads postgresql://[user[:password]@]host[:port]/name[?sslmode=mode]; \
         other characters than letters and digits in a password are written as %XX"
    )]
    Postgres,
    /// SQLite is one file, and has no options.
    #[error("a SQLite URL reads sqlite://path, sqlite:///path from the root, or sqlite::memory:")]
    Sqlite,
    /// No mode has this name.
    #[error("ssl_mode must be one of: disable, allow, prefer, require, verify-ca, verify-full")]
    SslMode,
    /// Names that need quotes everywhere are no good names.
    #[error("schema must be a lower-case name of up to 63 letters, digits and underscores")]
    Schema,
}

/// What a URL's query may say. Others are refused, since the driver would log them.
const PARAMETERS: [&str; 16] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

// === impl DatabaseConfig ===

impl DatabaseConfig {
    /// The schema of what no area owns, unless another is named.
    pub const DEFAULT_SCHEMA: &'static str = "headgate";

    /// The most rules, unless another number is named.
    pub const DEFAULT_MAX_RULES: u64 = 200_000;

    /// The database at `url`: `postgresql://`, `postgres://`, `sqlite://path`, or for tests
    /// `sqlite::memory:`.
    pub fn from_url(url: &str) -> Result<Self, ConfigError> {
        let place = match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => postgres_place(url)?,
            Some(("sqlite", ":memory:")) => Place::Memory,
            Some(("sqlite", path)) => sqlite_place(path)?,
            _ => return Err(ConfigError::Scheme),
        };
        Ok(Self { has_password: names_password(url), ..Self::new(place) })
    }

    /// The SQLite database in this file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(Place::File(path.into()))
    }

    /// The PostgreSQL database with these parts.
    pub fn from_parts(parts: &PostgresParts<'_>) -> Result<Self, ConfigError> {
        let ssl_mode = parts.ssl_mode.parse().map_err(|_| ConfigError::SslMode)?;
        let options = PgConnectOptions::new_without_pgpass()
            .port(parts.port)
            .database(parts.name)
            .username(parts.user)
            .ssl_mode(ssl_mode);
        let options = match parts.host {
            folder if folder.starts_with('/') => options.socket(folder),
            host => options.host(host),
        };
        let options = match parts.password {
            Some(password) => options.password(password),
            None => options,
        };
        Ok(Self::new(Place::Postgres(Box::new(options))))
    }

    fn new(place: Place) -> Self {
        Self {
            place,
            has_password: false,
            max_connections: 10,
            min_connections: 0,
            connect_timeout: Duration::from_secs(5),
            max_lifetime: Duration::from_secs(30 * 60),
            schema: Self::DEFAULT_SCHEMA.to_owned(),
            max_rules: Self::DEFAULT_MAX_RULES,
        }
    }

    /// The same database, with this password if its URL has none; an empty one is none, and a
    /// file asks for none.
    #[must_use]
    pub fn password_if_missing(self, password: &str) -> Self {
        if self.has_password || password.is_empty() {
            return self;
        }
        let place = match self.place {
            Place::Postgres(options) => Place::Postgres(Box::new(options.password(password))),
            other => other,
        };
        Self { place, ..self }
    }

    /// The most connections at a time, 10 unless said; at least 1. Up to three more listen.
    #[must_use]
    pub fn max_connections(self, max_connections: u32) -> Self {
        Self { max_connections: max_connections.max(1), ..self }
    }

    /// How many connections are kept open when nobody needs them, none unless said.
    /// SQLite keeps none.
    #[must_use]
    pub fn min_connections(self, min_connections: u32) -> Self {
        Self { min_connections, ..self }
    }

    /// How long to wait for a connection, 5 s unless said.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// When a connection is replaced by a new one, after 30 minutes unless said.
    #[must_use]
    pub fn max_lifetime(self, max_lifetime: Duration) -> Self {
        Self { max_lifetime, ..self }
    }

    /// The most rules that may be written, 200,000 unless said.
    #[must_use]
    pub fn max_rules(self, max_rules: u64) -> Self {
        Self { max_rules, ..self }
    }

    /// Schema in which a new PostgreSQL database keeps what no area owns, by default `headgate`. A
    /// database that has it elsewhere goes on with that. SQLite has no schemas.
    pub fn schema(self, schema: &str) -> Result<Self, ConfigError> {
        let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        // PostgreSQL keeps names that begin so to itself.
        if !begins || schema.starts_with("pg_") || schema.len() > 63 || !schema.chars().all(plain) {
            return Err(ConfigError::Schema);
        }
        Ok(Self { schema: schema.to_owned(), ..self })
    }
}

fn postgres_place(url: &str) -> Result<Place, ConfigError> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let known = |pair: &str| {
        let key = pair.split('=').next().unwrap_or_default();
        PARAMETERS.contains(&key)
    };
    let mut pairs = query.split('&').filter(|pair| !pair.is_empty());
    if !address.contains("://") || !pairs.all(known) {
        return Err(ConfigError::Postgres);
    }
    let options = url.parse().map_err(|_| ConfigError::Postgres)?;
    Ok(Place::Postgres(Box::new(options)))
}

/// Whether a PostgreSQL URL holds a password. The driver does not tell, and may have one from the
/// environment.
fn names_password(url: &str) -> bool {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let authority = address.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
    let in_login = login.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    in_login || pairs.any(|(key, value)| key == "password" && !value.is_empty())
}

fn sqlite_place(path: &str) -> Result<Place, ConfigError> {
    match path.strip_prefix("//").unwrap_or(path) {
        ":memory:" => Ok(Place::Memory),
        path if path.is_empty() || path.ends_with('/') || path.contains('?') => {
            Err(ConfigError::Sqlite)
        }
        path => Ok(Place::File(path.into())),
    }
}

impl fmt::Debug for DatabaseConfig {
    /// Says nothing of the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Place::Postgres(_) => "postgresql",
            Place::File(_) => "sqlite",
            Place::Memory => "memory",
        };
        f.debug_struct("DatabaseConfig")
            .field("place", &place)
            .field("max_connections", &self.max_connections)
            .field("min_connections", &self.min_connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_lifetime", &self.max_lifetime)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
