//! Apache Kafka.

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

/// The only user of secure listeners.
const USER: &str = "headgate";
const PASSWORD: &str = "correct-horse";

/// Time for the port of a dead broker to close, and for a restarted one to bind it.
const PORT_TIMEOUT: Duration = Duration::from_secs(60);

/// An Apache Kafka broker that is its own controller. Killed when dropped, and its folder removed.
///
/// It listens on 127.0.0.1 and takes a few seconds to start. Missing topics are created on first
/// use, with 3 partitions. Methods take `&self`, so that one task can stop the broker while others
/// use it.
pub struct Kafka {
    // Dropped in this order: the process before its folder.
    process: Mutex<Process>,
    launch: Launch,
}

/// TLS listeners and credentials of a broker built with [`KafkaBuilder::secure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecureListeners {
    /// TLS without authentication (`SSL`), as `host:port`.
    pub ssl: String,
    /// TLS with authentication (`SASL_SSL`; SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN), as `host:port`.
    pub sasl_ssl: String,
    /// Certificate authority of the broker, in PEM.
    pub ca_file: PathBuf,
    /// Certificate and key of a client, in PEM, from the same authority.
    pub client: (PathBuf, PathBuf),
    /// Name of the only user.
    pub username: &'static str,
    /// Password of the user.
    pub password: &'static str,
}

// === impl Kafka ===

impl Kafka {
    /// Starts a broker without authentication.
    ///
    /// # Errors
    ///
    /// [`Skip`] without Java 17 or the jars of Kafka, which `scripts/install-test-deps` installs.
    ///
    /// # Panics
    ///
    /// If the broker is installed but does not start.
    pub fn start() -> Result<Self, Skip> {
        Self::builder().start()
    }

    /// Starts a broker with options.
    pub fn builder() -> KafkaBuilder {
        KafkaBuilder::default()
    }

    /// The brokers that `HEADGATE_TEST_KAFKA_BROKERS` names, or one shared within the process.
    ///
    /// Use a [`new_topic`](SharedKafka::new_topic), and do not stop the broker.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), unless the variable is set.
    pub fn shared() -> Result<SharedKafka, Skip> {
        SharedKafka::get()
    }

    /// The address for clients without TLS: `127.0.0.1:PORT`.
    pub fn brokers(&self) -> String {
        self.launch.ports().plain()
    }

    /// The listeners with TLS.
    ///
    /// # Panics
    ///
    /// If the broker was not built with [`KafkaBuilder::secure`].
    #[track_caller]
    pub fn secure(&self) -> SecureListeners {
        self.launch.secure().expect("a broker built with secure listeners")
    }

    /// The id of the running, or last running, process.
    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    /// The folder of the broker.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// Kills the broker (SIGKILL), and waits until its ports are closed.
    ///
    /// # Panics
    ///
    /// If another process listens on a port.
    #[track_caller]
    pub fn stop(&self) {
        self.process().kill();
        let ports = self.launch.ports().all();
        let closed = wait_until(PORT_TIMEOUT, || !ports.iter().any(|&port| port::is_open(port)));
        assert!(closed, "one of {ports:?} is still open");
    }

    /// Restarts the broker with the same ports, options and data.
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
        assert!(started, "one of {:?} stays taken", self.launch.ports().all());
    }

    /// The process handle is valid even after a panic elsewhere.
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("brokers", &self.brokers()).finish_non_exhaustive()
    }
}
