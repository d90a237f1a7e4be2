//! A new database on a shared server.

use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{Postgres, programs, psql};
use crate::Skip;

/// Environment variable with the URL of a server to use instead.
const URL_VARIABLE: &str = "HEADGATE_TEST_POSTGRES_URL";

/// Weak, because statics are never dropped: the server ends with the last test that holds it.
static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

/// An empty database, dropped with its handle: see [`Postgres::shared`].
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    server_url: String,
    psql: PathBuf,
    _server: Option<Arc<Postgres>>,
}

// === impl Database ===

impl Database {
    pub(super) fn create() -> Result<Self, Skip> {
        let psql = programs::find("psql")?;
        let (server_url, server) = match env::var(URL_VARIABLE) {
            Ok(url) => (url, None),
            Err(_) => shared_server().map(|server| (server.url(), Some(server)))?,
        };
        // Unique, also among other machines that test on the same server.
        let name = format!("headgate_test_{:016x}", RandomState::new().build_hasher().finish());
        if let Err(error) = psql::ask(&psql, &server_url, &format!("CREATE DATABASE {name}")) {
            panic!("create a database at {server_url}: {error}");
        }
        let url = with_database(&server_url, &name);
        Ok(Self { name, url, server_url, psql, _server: server })
    }

    /// The address for clients, with the database's name in it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs SQL with `psql`. Returns a line per row, with `|` between columns.
    ///
    /// # Panics
    ///
    /// If the server cannot be reached or returns an error.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        psql::ask(&self.psql, &self.url, sql)
            .unwrap_or_else(|error| panic!("psql to {}: {error}", self.name))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Ends open sessions, too: a pool may close later than the test that used it. If the server
        // has stopped, this fails, but the database is gone, too.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = psql::ask(&self.psql, &self.server_url, &drop);
    }
}

/// Returns the shared server, which starts on first use. Tests that start together get the same
/// one.
fn shared_server() -> Result<Arc<Postgres>, Skip> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(Postgres::start()?);
    *shared = Arc::downgrade(&server);
    Ok(server)
}

/// Replaces the database in the URL of a server.
pub(super) fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(a, q)| (a, Some(q)));
    let (scheme, rest) = address.split_once("://").unwrap_or(("postgresql", address));
    let authority = rest.split('/').next().unwrap_or_default();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{authority}/{name}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_another_database_into_a_url() {
        for (url, expected) in [
            ("postgresql://me:pw@host:5433/db", "postgresql://me:pw@host:5433/new"),
            ("postgres://host", "postgres://host/new"),
            ("postgres://host/db?sslmode=disable", "postgres://host/new?sslmode=disable"),
            ("postgresql:///db?host=/run/pg", "postgresql:///new?host=/run/pg"),
        ] {
            assert_eq!(with_database(url, "new"), expected);
        }
    }
}
