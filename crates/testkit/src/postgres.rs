//! One PostgreSQL server, from start to drop.

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

/// The superuser that `initdb` makes, and the database that it makes for it.
const USER: &str = "postgres";
const DATABASE: &str = "postgres";

/// How long a dead server's port may stay open, and how long a restarted one may wait for its port.
const PORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A PostgreSQL server of our own: stopped, and its folder removed, when dropped.
///
/// It listens on 127.0.0.1 alone, trusts every client unless built with a password, and does not wait for the disk
/// unless built to: what it has committed outlives the server, not the machine. Methods take `&self`, so that one task can stop the
/// server while others use it.
pub struct Postgres {
    process: Mutex<Process>,
    launch: Launch,
}

// === impl Postgres ===

impl Postgres {
    /// Starts a server that trusts its clients.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `initdb`, `postgres` or `psql` is not installed, or if we are root and there is no user `postgres`
    /// to run the server.
    ///
    /// # Panics
    ///
    /// When the server is installed and does not start.
    pub fn start() -> Result<Self, Skip> {
        Self::builder().start()
    }

    /// Starts a server with options.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// A new, empty database on the server that `HEADGATE_TEST_POSTGRES_URL` names, or else on one that all who hold
    /// such a database share.
    ///
    /// It takes 0.1 to 0.2 s, a server of one's own about 1 s. The user must be allowed to create databases.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `psql` or, without that variable, what [`start`](Self::start) needs is missing.
    ///
    /// # Panics
    ///
    /// When the database cannot be created.
    pub fn shared() -> Result<Database, Skip> {
        Database::create()
    }

    /// The address for clients: `postgresql://USER@127.0.0.1:PORT/DATABASE`, with the password if there is one.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// The port, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.launch.port()
    }

    /// The superuser's name.
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

    /// The folder that holds all of the server's files.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// Where another program of the server's version would be, such as `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.launch.program(name)
    }

    /// Runs SQL through `psql` as the superuser and gives the rows, one a line, with `|` between columns.
    ///
    /// # Panics
    ///
    /// When the server cannot be reached or refuses it.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        self.launch.ask(sql)
    }

    /// Creates a database whose tables are on this disk, and gives its address.
    ///
    /// # Panics
    ///
    /// When the server cannot use the disk.
    #[track_caller]
    pub fn database_on(&self, disk: &SmallDisk, name: &str) -> String {
        let folder = self.launch.tablespace_folder(disk.path());
        self.psql(&format!("CREATE TABLESPACE {name} LOCATION '{}'", folder.display()));
        self.psql(&format!("CREATE DATABASE {name} TABLESPACE {name}"));
        database::with_database(&self.url(), name)
    }

    /// Ends the server and its sessions at once, as a crash would, and returns once nothing listens on its port.
    ///
    /// # Panics
    ///
    /// When something else listens there.
    #[track_caller]
    pub fn stop(&self) {
        self.process().quit();
        let closed = wait_until(PORT_TIMEOUT, || !port::is_open(self.port()));
        assert!(closed, "port {} is still open", self.port());
    }

    /// Starts a stopped server again, on the same port and with all that was committed; stops it first if it runs.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[track_caller]
    pub fn start_again(&self) {
        let mut process = self.process();
        process.quit();
        let started = wait_until(PORT_TIMEOUT, || match self.launch.start() {
            Ok(fresh) => {
                *process = fresh;
                true
            }
            // Somebody's short-lived socket: it passes.
            Err(Failure::PortTaken) => false,
            Err(broken) => panic!("{broken}"),
        });
        assert!(started, "port {} stays taken", self.port());
    }

    /// A panic elsewhere leaves the process handle as good as it was.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A killed server would leave its sessions and its shared memory behind.
        self.process().quit();
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("port", &self.port()).finish_non_exhaustive()
    }
}
