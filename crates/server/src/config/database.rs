use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use headgate_config::{Bounded, ConfigDuration, Problem, Secret, print_sections};
use headgate_persistence::{DatabaseConfig as Target, DatabaseConfigError, PostgresParts};
use headgate_tls_client::TlsFiles;
use serde::Deserialize;

/// The database of rules, quotas and the audit log. The default is a local SQLite file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct DatabaseConfig {
    /// `database.url`: `postgresql://…` or `sqlite://…`; replaces the keys for its parts.
    pub url: Option<Secret>,
    /// `database.host`: host name of the PostgreSQL server.
    pub host: Option<String>,
    /// `database.port`: its port.
    pub port: Bounded<1, 65_535>,
    /// `database.name`: name of the database.
    pub name: String,
    /// `database.user`: user name.
    pub user: String,
    /// `database.password`: password of the user.
    pub password: Option<Secret>,
    /// `database.ssl_mode`: TLS mode of the connection.
    pub ssl_mode: String,
    /// `database.ca_file`: authorities of the PostgreSQL server's certificate, in PEM; default: the
    /// system's.
    pub ca_file: Option<PathBuf>,
    /// `database.cert_file`: client certificate, in PEM.
    pub cert_file: Option<PathBuf>,
    /// `database.key_file`: private key of the client certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// `database.schema`: schema of the tables that all parts of the server share.
    pub schema: String,
    /// `database.max_open_conns`: maximum number of connections; alias `max_connections`.
    #[serde(alias = "max_connections")]
    pub max_open_conns: Bounded<1, 1000>,
    /// `database.max_idle_conns`: idle connections that are kept open; alias `min_connections`.
    #[serde(alias = "min_connections")]
    pub max_idle_conns: Bounded<0, 1000>,
    /// `database.conn_max_lifetime`: age at which a connection is replaced.
    pub conn_max_lifetime: ConfigDuration,
    /// `database.connect_timeout_seconds`: timeout of connecting.
    pub connect_timeout_seconds: Bounded<1, 60>,
}

impl DatabaseConfig {
    /// Returns the address of the database; the default is a file in `data_dir`.
    pub fn target(&self, data_dir: &Path) -> Result<Target, Problem> {
        let target = match (&self.url, &self.host) {
            (Some(_), Some(_)) => {
                let both = "set database.url, or database.host and the keys beside it, not both";
                return Err(Problem::new("database.url", both));
            }
            (Some(url), None) => Target::from_url(url.expose()).map_err(wrong("database.url")),
            (None, Some(host)) => {
                Target::from_parts(&self.parts(host)).map_err(wrong("database.ssl_mode"))
            }
            (None, None) => Ok(Target::file(data_dir.join("headgate.db"))),
        }?;
        let target = match (&self.url, &self.password) {
            // `database.password` applies if the URL has no password.
            (Some(_), Some(password)) => target.password_if_missing(password.expose()),
            _ => target,
        };
        let files = self.tls_files();
        if let Some((key, message)) = files.contradictions("database", None).into_iter().next() {
            return Err(Problem::new(format!("database.{key}"), message));
        }
        let target = target.tls_files(&files).map_err(|error| {
            let key = match &error {
                DatabaseConfigError::File(file) => file.key,
                _ if self.url.is_some() => "url",
                _ => "ssl_mode",
            };
            Problem::new(format!("database.{key}"), error.to_string())
        })?;
        let target = target
            .max_connections(self.max_open_conns.get() as u32)
            .min_connections(self.max_idle_conns.get().min(self.max_open_conns.get()) as u32)
            .max_lifetime(self.conn_max_lifetime.get())
            .connect_timeout(Duration::from_secs(self.connect_timeout_seconds.get()));
        target.schema(&self.schema).map_err(wrong("database.schema"))
    }

    fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }

    fn parts<'a>(&'a self, host: &'a str) -> PostgresParts<'a> {
        let password = self.password.as_ref().map(Secret::expose);
        PostgresParts {
            host,
            port: self.port.get() as u16,
            name: &self.name,
            user: &self.user,
            password: password.filter(|password| !password.is_empty()),
            ssl_mode: &self.ssl_mode,
        }
    }
}

fn wrong(key: &'static str) -> impl Fn(DatabaseConfigError) -> Problem {
    move |error| Problem::new(key, error.to_string())
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            host: None,
            port: Bounded::of::<5432>(),
            name: "headgate".to_owned(),
            user: "headgate".to_owned(),
            password: None,
            ssl_mode: "prefer".to_owned(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            schema: Target::DEFAULT_SCHEMA.to_owned(),
            max_open_conns: Bounded::of::<10>(),
            max_idle_conns: Bounded::of::<2>(),
            conn_max_lifetime: ConfigDuration::from_secs(30 * 60),
            connect_timeout_seconds: Bounded::of::<5>(),
        }
    }
}

// === impl Print ===

print_sections! {
    DatabaseConfig {
        url, host, port, name, user, password, ssl_mode, ca_file, cert_file, key_file, schema, max_open_conns, max_idle_conns,
        conn_max_lifetime, connect_timeout_seconds,
    }
}
