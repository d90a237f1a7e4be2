//! One Apache Kafka broker, from start to drop.

mod builder;
mod certificates;
mod launch;
mod ports;
mod probe;
mod programs;
mod properties;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::builder::KafkaBuilder;
use self::launch::{Failure, Launch};
use crate::{SharedKafka, Skip, port, process::Process, wait_until};

/// The user that secure listeners know.
const USER: &str = "headgate";
const PASSWORD: &str = "correct-horse";

/// How long a dead broker's port may stay open, and how long a restarted one may wait for its port.
const PORT_TIMEOUT: Duration = Duration::from_secs(10);

/// An Apache Kafka broker of our own, which is its own controller: killed, and its folder removed, when dropped.
///
/// It listens on 127.0.0.1 alone and takes a few seconds to start. A topic that nobody has created comes into being
/// when it is first asked for, with 3 partitions. Methods take `&self`, so that one task can stop the broker while
/// others use it.
pub struct Kafka {
    // Dropped in this order: the process ends before its folder goes.
    process: Mutex<Process>,
    launch: Launch,
}

/// Where a broker built with [`KafkaBuilder::secure`] takes TLS connections, and whom it lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecureListeners {
    /// TLS for everybody (`SSL`), as `host:port`.
    pub ssl: String,
    /// TLS for the user (`SASL_SSL`; SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN), as `host:port`.
    pub sasl_ssl: String,
    /// The authority that signed the broker's certificate, in PEM.
    pub ca_file: PathBuf,
    /// The only user's name.
    pub username: &'static str,
    /// And password.
    pub password: &'static str,
}

// === impl Kafka ===

impl Kafka {
    /// Starts a broker that takes all clients.
    ///
    /// # Errors
    ///
    /// [`Skip`] if Java 17 is not there, or Kafka's jars, which `scripts/install-test-deps` fetches.
    ///
    /// # Panics
    ///
    /// When the broker is installed and does not start.
    pub fn start() -> Result<Self, Skip> {
        Self::builder().start()
    }

    /// Starts a broker with options.
    pub fn builder() -> KafkaBuilder {
        KafkaBuilder::default()
    }

    /// The brokers that `HEADGATE_TEST_KAFKA_BROKERS` names, or else one that all who hold it share.
    ///
    /// Others use it too: take a [`new_topic`](SharedKafka::new_topic), and leave the broker alone.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), unless that variable is set.
    pub fn shared() -> Result<SharedKafka, Skip> {
        SharedKafka::get()
    }

    /// The address for clients without TLS: `127.0.0.1:PORT`.
    pub fn brokers(&self) -> String {
        self.launch.ports().plain()
    }

    /// The addresses for clients with TLS, and what they need.
    ///
    /// # Panics
    ///
    /// When the broker was not built with [`KafkaBuilder::secure`].
    #[track_caller]
    pub fn secure(&self) -> SecureListeners {
        self.launch.secure().expect("a broker built with secure listeners")
    }

    /// The id of the running, or last running, process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// The folder that holds all of the broker's files.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// Kills the broker (SIGKILL) and returns once nothing listens on its ports.
    ///
    /// # Panics
    ///
    /// When something else listens there.
    #[track_caller]
    pub fn stop(&self) {
        self.process().kill();
        let ports = self.launch.ports().all();
        let closed = wait_until(PORT_TIMEOUT, || !ports.iter().any(|&port| port::is_open(port)));
        assert!(closed, "one of {ports:?} is still open");
    }

    /// Kills the broker if it runs, and starts it again: same ports and options, and all that it had acknowledged.
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
        assert!(started, "one of {:?} stays taken", self.launch.ports().all());
    }

    /// A panic elsewhere leaves the process handle as good as it was.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("brokers", &self.brokers()).finish_non_exhaustive()
    }
}
