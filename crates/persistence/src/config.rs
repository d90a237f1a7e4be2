//! Connection options.

use std::{fmt, path::PathBuf, time::Duration};

use headgate_tls_client::{TlsFileError, TlsFiles};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use thiserror::Error;

/// Connection options of a database.
#[derive(Clone)]
pub struct DatabaseConfig {
    pub(crate) location: Location,
    /// True if the URL contains a password.
    has_password: bool,
    pub(crate) max_connections: u32,
    pub(crate) min_connections: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_lifetime: Duration,
    pub(crate) schema: String,
    pub(crate) max_rules: u64,
    pub(crate) max_policies: u64,
}

#[derive(Clone)]
pub(crate) enum Location {
    Postgres(Box<PgConnectOptions>),
    File(PathBuf),
    Memory,
}

/// Connection options of a PostgreSQL database, in parts.
#[derive(Clone, Copy)]
pub struct PostgresParts<'p> {
    /// Host name, address, or folder of a Unix socket.
    pub host: &'p str,
    /// Port.
    pub port: u16,
    /// Name of the database.
    pub name: &'p str,
    /// User.
    pub user: &'p str,
    /// Password, if the server requires one.
    pub password: Option<&'p str>,
    /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
    pub ssl_mode: &'p str,
}

/// Invalid connection options. Messages do not repeat the input, which may contain a password.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DatabaseConfigError {
    /// Unknown scheme.
    #[error("a database URL must begin with postgresql://, postgres:// or sqlite://")]
    Scheme,
    /// Invalid PostgreSQL URL.
    #[error(
        "a PostgreSQL URL must have the form postgresql://[user[:password]@]host[:port]/name[?sslmode=mode]; \
         percent-encode special characters in a password"
    )]
    Postgres,
    /// Invalid SQLite URL.
    #[error(
        "a SQLite URL must have the form sqlite://path, sqlite:///path from the root, or sqlite::memory:"
    )]
    Sqlite,
    /// Unknown SSL mode.
    #[error("ssl_mode must be one of: disable, allow, prefer, require, verify-ca, verify-full")]
    SslMode,
    /// Invalid schema name.
    #[error("schema must be a lower-case name of up to 63 letters, digits and underscores")]
    Schema,
    /// Certificate files for a connection that would not use them.
    #[error(
        "certificate files need a PostgreSQL server that is verified: set the TLS mode verify-full \
         (or verify-ca)"
    )]
    Unverified,
    /// A certificate file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
}

/// Allowed query parameters. Others are rejected, because the driver would log them.
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
    /// Default schema of shared tables.
    pub const DEFAULT_SCHEMA: &'static str = "headgate";

    /// Default maximum number of rules.
    pub const DEFAULT_MAX_RULES: u64 = 200_000;

    /// Default maximum number of quota policies.
    pub const DEFAULT_MAX_POLICIES: u64 = 1_000_000;

    /// Parses a URL: `postgresql://`, `postgres://`, `sqlite://path`, or for tests
    /// `sqlite::memory:`.
    pub fn from_url(url: &str) -> Result<Self, DatabaseConfigError> {
        let location = match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => postgres_location(url)?,
            Some(("sqlite", ":memory:")) => Location::Memory,
            Some(("sqlite", path)) => sqlite_location(path)?,
            _ => return Err(DatabaseConfigError::Scheme),
        };
        Ok(Self { has_password: has_password(url), ..Self::new(location) })
    }

    /// Returns the options of a SQLite file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::new(Location::File(path.into()))
    }

    /// Returns the options of a PostgreSQL database with these parts.
    pub fn from_parts(parts: &PostgresParts<'_>) -> Result<Self, DatabaseConfigError> {
        let ssl_mode = parts.ssl_mode.parse().map_err(|_| DatabaseConfigError::SslMode)?;
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
        Ok(Self::new(Location::Postgres(Box::new(options))))
    }

    /// Returns the name of the database system: `postgresql` or `sqlite`.
    pub fn system(&self) -> &'static str {
        match self.location {
            Location::Postgres(_) => "postgresql",
            Location::File(_) | Location::Memory => "sqlite",
        }
    }

    /// Returns the host and port of PostgreSQL.
    pub fn server(&self) -> Option<(String, u16)> {
        match &self.location {
            Location::Postgres(options) => {
                Some((options.get_host().to_owned(), options.get_port()))
            }
            Location::File(_) | Location::Memory => None,
        }
    }

    fn new(location: Location) -> Self {
        Self {
            location,
            has_password: false,
            max_connections: 10,
            min_connections: 0,
            connect_timeout: Duration::from_secs(5),
            max_lifetime: Duration::from_secs(30 * 60),
            schema: Self::DEFAULT_SCHEMA.to_owned(),
            max_rules: Self::DEFAULT_MAX_RULES,
            max_policies: Self::DEFAULT_MAX_POLICIES,
        }
    }

    /// Sets the password if the URL has none. An empty password is ignored, as is any for SQLite.
    #[must_use]
    pub fn password_if_missing(self, password: &str) -> Self {
        if self.has_password || password.is_empty() {
            return self;
        }
        let location = match self.location {
            Location::Postgres(options) => Location::Postgres(Box::new(options.password(password))),
            other => other,
        };
        Self { location, ..self }
    }

    /// Sets the certificate files of the connection to PostgreSQL. They are validated here, and read
    /// again for each connection, so that renewed certificates are used.
    ///
    /// # Errors
    ///
    /// If a file is invalid, or if an authority is given and the TLS mode does not verify the
    /// server: it would not be used.
    pub fn tls_files(self, files: &TlsFiles) -> Result<Self, DatabaseConfigError> {
        if *files == TlsFiles::default() {
            return Ok(self);
        }
        let Location::Postgres(mut options) = self.location else {
            return Err(DatabaseConfigError::Unverified);
        };
        let is_verified =
            matches!(options.get_ssl_mode(), PgSslMode::VerifyCa | PgSslMode::VerifyFull);
        if !is_verified {
            return Err(DatabaseConfigError::Unverified);
        }
        files.load()?;
        if let Some(file) = &files.ca_file {
            *options = options.ssl_root_cert(file);
        }
        if let (Some(cert), Some(key)) = (&files.cert_file, &files.key_file) {
            *options = options.ssl_client_cert(cert).ssl_client_key(key);
        }
        Ok(Self { location: Location::Postgres(options), ..self })
    }

    /// Sets the maximum number of connections, by default 10; at least 1. Up to three more listen.
    #[must_use]
    pub fn max_connections(self, max_connections: u32) -> Self {
        Self { max_connections: max_connections.max(1), ..self }
    }

    /// Sets the number of idle connections that are kept open, by default 0. SQLite keeps none.
    #[must_use]
    pub fn min_connections(self, min_connections: u32) -> Self {
        Self { min_connections, ..self }
    }

    /// Sets the timeout for a connection, by default 5 s.
    #[must_use]
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// Sets the maximum age of a connection, by default 30 minutes.
    #[must_use]
    pub fn max_lifetime(self, max_lifetime: Duration) -> Self {
        Self { max_lifetime, ..self }
    }

    /// Sets the maximum number of rules, by default 200,000.
    #[must_use]
    pub fn max_rules(self, max_rules: u64) -> Self {
        Self { max_rules, ..self }
    }

    /// Sets the maximum number of quota policies, by default a million.
    #[must_use]
    pub fn max_policies(self, max_policies: u64) -> Self {
        Self { max_policies, ..self }
    }

    /// Sets the schema of shared tables in a new PostgreSQL database, by default `headgate`. A
    /// database that has them in another schema keeps them there. SQLite has no schemas.
    pub fn schema(self, schema: &str) -> Result<Self, DatabaseConfigError> {
        let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        // PostgreSQL reserves names with this prefix.
        if !begins || schema.starts_with("pg_") || schema.len() > 63 || !schema.chars().all(plain) {
            return Err(DatabaseConfigError::Schema);
        }
        Ok(Self { schema: schema.to_owned(), ..self })
    }
}

fn postgres_location(url: &str) -> Result<Location, DatabaseConfigError> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let known = |pair: &str| {
        let key = pair.split('=').next().unwrap_or_default();
        PARAMETERS.contains(&key)
    };
    let mut pairs = query.split('&').filter(|pair| !pair.is_empty());
    if !address.contains("://") || !pairs.all(known) {
        return Err(DatabaseConfigError::Postgres);
    }
    let options = url.parse().map_err(|_| DatabaseConfigError::Postgres)?;
    Ok(Location::Postgres(Box::new(options)))
}

/// Returns true if a PostgreSQL URL contains a password. The driver does not expose it, and may
/// have one from the environment.
fn has_password(url: &str) -> bool {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let authority = address.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
    let in_login = login.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    in_login || pairs.any(|(key, value)| key == "password" && !value.is_empty())
}

fn sqlite_location(path: &str) -> Result<Location, DatabaseConfigError> {
    match path.strip_prefix("//").unwrap_or(path) {
        ":memory:" => Ok(Location::Memory),
        path if path.is_empty() || path.ends_with('/') || path.contains('?') => {
            Err(DatabaseConfigError::Sqlite)
        }
        path => Ok(Location::File(path.into())),
    }
}

impl fmt::Debug for DatabaseConfig {
    /// Leaves out the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = match &self.location {
            Location::Postgres(_) => "postgresql",
            Location::File(_) => "sqlite",
            Location::Memory => "memory",
        };
        f.debug_struct("DatabaseConfig")
            .field("location", &location)
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
