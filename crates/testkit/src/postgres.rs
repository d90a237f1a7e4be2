//! PostgreSQL.

mod account;
mod builder;
mod database;
mod launch;
mod programs;
mod psql;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use self::launch::{Failure, Launch};
pub use self::{builder::PostgresBuilder, database::Database};
use crate::{Skip, SmallDisk, port, process::Process, wait_until};

/// The superuser that `initdb` creates, and its database.
const USER: &str = "postgres";
const DATABASE: &str = "postgres";

/// Time for the port of a dead server to close, and for a restarted one to bind it.
const PORT_TIMEOUT: Duration = Duration::from_secs(60);

/// A PostgreSQL server. Stopped when dropped, and its folder removed.
///
/// It listens on 127.0.0.1. By default it trusts every client, and does not sync to disk: commits
/// survive a crash of the server, but not of the machine. Methods take `&self`, so that one task
/// can stop the server while others use it.
pub struct Postgres {
    process: Mutex<Process>,
    launch: Launch,
}

// === impl Postgres ===

impl Postgres {
    /// Starts a server without a password.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `initdb`, `postgres` or `psql` is not installed, or if we are root and there is
    /// no user `postgres` to run the server.
    ///
    /// # Panics
    ///
    /// If the server is installed but does not start.
    pub fn start() -> Result<Self, Skip> {
        Self::builder().start()
    }

    /// Starts a server with options.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// A new database on the server that `HEADGATE_TEST_POSTGRES_URL` names, or on one shared
    /// within the process.
    ///
    /// Takes 0.1 to 0.2 s; starting a server takes about 1 s. The user needs the right to create
    /// databases.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `psql` or, without that variable, what [`start`](Self::start) needs is missing.
    ///
    /// # Panics
    ///
    /// If the database cannot be created.
    pub fn shared() -> Result<Database, Skip> {
        Database::create()
    }

    /// The address for clients: `postgresql://USER@127.0.0.1:PORT/DATABASE`, with the password if
    /// there is one.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// The port, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.launch.port()
    }

    /// Name of the superuser.
    pub fn user(&self) -> &'static str {
        USER
    }

    /// The database that [`url`](Self::url) names, empty at first.
    pub fn database(&self) -> &'static str {
        DATABASE
    }

    /// The id of the running, or last running, main process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// The folder of the server.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// Path of another program of the same version, such as `pgbench`. It may not exist.
    pub fn program(&self, name: &str) -> PathBuf {
        self.launch.program(name)
    }

    /// Runs SQL with `psql` as the superuser. Returns a line per row, with `|` between columns.
    ///
    /// # Panics
    ///
    /// If the server cannot be reached or returns an error.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        self.launch.ask(sql)
    }

    /// Creates a database on this disk. Returns its URL.
    ///
    /// # Panics
    ///
    /// If the server cannot use the disk.
    #[track_caller]
    pub fn database_on(&self, disk: &SmallDisk, name: &str) -> String {
        let folder = self.launch.tablespace_folder(disk.path());
        self.psql(&format!("CREATE TABLESPACE {name} LOCATION '{}'", folder.display()));
        self.psql(&format!("CREATE DATABASE {name} TABLESPACE {name}"));
        database::with_database(&self.url(), name)
    }

    /// Crashes the server, and waits until its port is closed.
    ///
    /// # Panics
    ///
    /// If another process listens on the port.
    #[track_caller]
    pub fn stop(&self) {
        self.process().quit();
        let closed = wait_until(PORT_TIMEOUT, || !port::is_open(self.port()));
        assert!(closed, "port {} is still open", self.port());
    }

    /// Restarts the server on the same port, with all committed data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[track_caller]
    pub fn start_again(&self) {
        let mut process = self.process();
        process.quit();
        let started = wait_until(PORT_TIMEOUT, || match self.launch.start() {
            Ok(fresh) => {
                *process = fresh;
                true
            }
            // Another socket holds the port for a moment.
            Err(Failure::PortTaken) => false,
            Err(broken) => panic!("{broken}"),
        });
        assert!(started, "port {} stays taken", self.port());
    }

    /// The process handle is valid even after a panic elsewhere.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Killing it would leak sessions and shared memory.
        self.process().quit();
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("port", &self.port()).finish_non_exhaustive()
    }
}
