//! A database of one's own on a server that others use too.

use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{Postgres, programs, psql};
use crate::Skip;

/// Names a server for tests that only need a database, wherever it is.
const URL_VARIABLE: &str = "HEADGATE_TEST_POSTGRES_URL";

/// Weak, since a static is never dropped: the server goes with the last test that holds it.
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

    /// Runs SQL through `psql` and gives the rows, one a line, with `|` between columns.
    ///
    /// # Panics
    ///
    /// When the server cannot be reached or refuses it.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        psql::ask(&self.psql, &self.url, sql)
            .unwrap_or_else(|error| panic!("psql to {}: {error}", self.name))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // With its sessions: a pool may close later than the test that used it. A server that is
        // gone by now took the database with it.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = psql::ask(&self.psql, &self.server_url, &drop);
    }
}

/// Held while the server starts: tests that begin together get the same one.
fn shared_server() -> Result<Arc<Postgres>, Skip> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(Postgres::start()?);
    *shared = Arc::downgrade(&server);
    Ok(server)
}

/// The same server's URL with another database in its path.
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
