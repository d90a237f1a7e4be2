//! A Redis server, stopped when dropped.

mod builder;
mod cli;
mod clock;
mod launch;
mod probe;

use std::{
    fmt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub(crate) use self::cli::field;
use self::launch::{Failure, Launch};
pub use self::{
    builder::RedisBuilder,
    clock::{FakeClock, skewed_clock},
};
use crate::{SharedRedis, Skip, port, process::Process, wait_until};

/// Time for the port of a dead server to close, and for a restarted one to bind it.
const PORT_TIMEOUT: Duration = Duration::from_secs(60);

/// A Redis server. Killed when dropped, and its folder removed.
///
/// It listens on 127.0.0.1 and persists nothing. Methods take `&self`, so that one task can kill
/// the server while others use it.
pub struct Redis {
    // Dropped in this order: the process before its folder.
    process: Mutex<Process>,
    launch: Launch,
}

// === impl Redis ===

impl Redis {
    /// Starts a server without a password, on the system clock.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server` or `redis-cli` is not installed.
    ///
    /// # Panics
    ///
    /// If the server is installed but does not start.
    pub fn start() -> Result<Self, Skip> {
        Self::builder().start()
    }

    /// Starts a server with options.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    /// The server that `HEADGATE_TEST_REDIS_URL` names, or one shared within the process.
    ///
    /// Use unique keys, and do not stop the server.
    pub fn shared() -> Result<SharedRedis, Skip> {
        SharedRedis::get()
    }

    /// The address for clients: `redis://127.0.0.1:PORT`, with the password if there is one.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// The port, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.launch.port()
    }

    /// The id of the running, or last running, process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// The folder of the server.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// The fake clock of the server.
    ///
    /// # Panics
    ///
    /// If the server was not built with [`RedisBuilder::fake_clock`].
    #[track_caller]
    pub fn clock(&self) -> &FakeClock {
        self.launch.clock().expect("a server built with a fake clock")
    }

    /// Runs a command with `redis-cli`. Returns the reply, also if it is an error, without trailing
    /// newlines.
    ///
    /// # Panics
    ///
    /// If the server cannot be reached.
    #[track_caller]
    pub fn cli(&self, command: &[&str]) -> String {
        match self.launch.ask(command) {
            Ok(answer) => answer,
            Err(error) => panic!("redis-cli {command:?} to port {}: {error}", self.port()),
        }
    }

    /// Kills the server (SIGKILL), and waits until its port is closed.
    ///
    /// # Panics
    ///
    /// If another process listens on the port.
    #[track_caller]
    pub fn kill(&self) {
        self.process().kill();
        let closed = wait_until(PORT_TIMEOUT, || !port::is_open(self.port()));
        assert!(closed, "port {} is still open", self.port());
    }

    /// Restarts the server on the same port, with the same options and cluster, without data.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[track_caller]
    pub fn restart(&self) {
        let mut process = self.process();
        process.kill();
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

    /// Pauses the server (SIGSTOP): connections stay open, but nothing responds, not even
    /// [`cli`](Self::cli).
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Resumes a paused server (SIGCONT).
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn resume(&self) {
        self.process().resume();
    }

    /// Returns true if the server runs and is not paused.
    pub fn is_awake(&self) -> bool {
        self.process().is_awake()
    }

    /// The reply to a command; `None` if the server is down or paused.
    pub(crate) fn ask(&self, command: &[&str]) -> Option<String> {
        self.is_awake().then(|| self.launch.ask(command).ok()).flatten()
    }

    /// The process handle is valid even after a panic elsewhere.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("port", &self.port()).finish_non_exhaustive()
    }
}
