//! One DynamoDB Local, from start to drop.

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

/// Each attempt takes another port; only another process, at the same moment, can take it from us.
const ATTEMPTS: usize = 10;

/// How long a dead server's port may stay open, and how long a restarted one may wait for its port.
const PORT_TIMEOUT: Duration = Duration::from_secs(10);

/// A DynamoDB Local of our own, Amazon's implementation for tests, without tables: killed when dropped.
///
/// It takes any region and any credentials, shows all of them the same tables, and keeps its data in memory. Where a table
/// has a TTL attribute it deletes what has expired by the machine's clock, within seconds: a test with a clock of its own
/// sets that to a time to come, or makes a table without. It takes two seconds to start. Methods take `&self`, so that one task can stop the server while others use it.
pub struct DynamoDb {
    // Dropped in this order: the process ends before its folder goes.
    process: Mutex<Process>,
    launch: Launch,
}

// === impl DynamoDb ===

impl DynamoDb {
    /// Starts a server and returns once it answers.
    ///
    /// # Errors
    ///
    /// [`Skip`] if Java 17 is not there, or the server's jars, which `scripts/install-test-deps` fetches.
    ///
    /// # Panics
    ///
    /// When the server is installed and does not start, with its log.
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

    /// The server that `HEADGATE_TEST_DYNAMODB_ENDPOINT` names, or else one that all who hold it share.
    ///
    /// Others use it too: take a [`new_table`](SharedDynamoDb::new_table), and leave the server alone.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), unless that variable is set.
    pub fn shared() -> Result<SharedDynamoDb, Skip> {
        SharedDynamoDb::get()
    }

    /// Where clients find it: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.launch.port())
    }

    /// The id of the running, or last running, process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// Kills the server (SIGKILL) and returns once nothing listens on its port.
    ///
    /// # Panics
    ///
    /// When something else listens there.
    #[track_caller]
    pub fn stop(&self) {
        self.process().kill();
        let port = self.launch.port();
        assert!(wait_until(PORT_TIMEOUT, || !port::is_open(port)), "{port} is still open");
    }

    /// Kills the server if it runs, and starts it again on the same port, without tables.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[track_caller]
    pub fn restart(&self) {
        let mut process = self.process();
        process.kill();
        let started = wait_until(PORT_TIMEOUT, || match self.launch.start() {
            Ok(fresh) => {
                *process = fresh;
                true
            }
            // Somebody's short-lived socket: it passes.
            Err(Failure::PortTaken) => false,
            Err(broken) => panic!("{broken}"),
        });
        assert!(started, "{} stays taken", self.launch.port());
    }

    /// Makes the server hang (SIGSTOP): it takes connections and answers nothing.
    ///
    /// # Panics
    ///
    /// When it does not run.
    #[track_caller]
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Lets a paused server go on.
    ///
    /// # Panics
    ///
    /// When it does not run.
    #[track_caller]
    pub fn resume(&self) {
        self.process().resume();
    }

    /// A panic elsewhere leaves the process handle as good as it was.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}
