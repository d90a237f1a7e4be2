//! DynamoDB Local.

mod launch;
mod probe;
mod programs;

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use self::{
    launch::{Failure, Launch},
    programs::Programs,
};
use crate::{SharedDynamoDb, Skip, port, process::Process, wait_until};

/// Each attempt uses another port, which only another process can take in between.
const ATTEMPTS: usize = 10;

/// Time for the port of a dead server to close, and for a restarted one to bind it.
const PORT_TIMEOUT: Duration = Duration::from_secs(60);

/// A DynamoDB Local without tables, killed when dropped.
///
/// It accepts any region and credentials, with the same tables for all, and keeps its data in
/// memory. With a TTL attribute, it deletes expired items by the clock of the machine within
/// seconds: a test with another clock sets it to the future, or uses a table without TTL. It takes
/// two seconds to start. Methods take `&self`, so that one task can stop the server while others
/// use it.
pub struct DynamoDb {
    // Dropped in this order: the process before its folder.
    process: Mutex<Process>,
    launch: Launch,
}

// === impl DynamoDb ===

impl DynamoDb {
    /// Starts a server, and waits until it responds.
    ///
    /// # Errors
    ///
    /// [`Skip`] without Java 17 or the jars of the server, which `scripts/install-test-deps`
    /// installs.
    ///
    /// # Panics
    ///
    /// If the server is installed but does not start, with its log.
    pub fn start() -> Result<Self, Skip> {
        let programs = Programs::find()?;
        for _ in 0..ATTEMPTS {
            let started = Launch::prepare(programs.clone())
                .and_then(|launch| launch.start().map(|process| (launch, process)));
            match started {
                Ok((launch, process)) => return Ok(Self { process: Mutex::new(process), launch }),
                Err(Failure::PortTaken) => {}
                Err(Failure::OldJava) => return Err(programs::skip("it needs Java 17 or newer")),
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("{ATTEMPTS} ports in a row were taken");
    }

    /// The server that `HEADGATE_TEST_DYNAMODB_ENDPOINT` names, or one shared within the process.
    ///
    /// Use a [`new_table`](SharedDynamoDb::new_table), and do not stop the server.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), unless the variable is set.
    pub fn shared() -> Result<SharedDynamoDb, Skip> {
        SharedDynamoDb::get()
    }

    /// The URL for clients: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.launch.port())
    }

    /// The id of the running, or last running, process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// Kills the server (SIGKILL), and waits until its port is closed.
    ///
    /// # Panics
    ///
    /// If another process listens on the port.
    #[track_caller]
    pub fn stop(&self) {
        self.process().kill();
        let port = self.launch.port();
        assert!(wait_until(PORT_TIMEOUT, || !port::is_open(port)), "{port} is still open");
    }

    /// Restarts the server on the same port, without tables.
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
        assert!(started, "{} stays taken", self.launch.port());
    }

    /// Pauses the server (SIGSTOP): it accepts connections but does not respond.
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Resumes a paused server.
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn resume(&self) {
        self.process().resume();
    }

    /// The process handle is valid even after a panic elsewhere.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}
