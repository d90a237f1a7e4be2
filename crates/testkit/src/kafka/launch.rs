use std::{
    fs::{self, File},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use thiserror::Error;

use super::{
    KafkaBuilder, PASSWORD, SecureListeners, USER, certificates,
    ports::{Ports, address},
    probe,
    programs::Programs,
    properties,
};
use crate::{java::JVM, process, process::Process, wait_until};

/// Timeout of a start, which takes 3 s on an idle machine.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// Log only warnings and errors.
const LOG_LEVEL: &str = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn";

/// Settings of a broker: ports, folder and programs.
#[derive(Debug)]
pub(super) struct Launch {
    programs: Programs,
    ports: Ports,
    cluster: String,
    secure: bool,
    folder: TempDir,
}

/// Error of a start.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("a port is taken")]
    PortTaken,
    #[error("java is too old")]
    OldJava,
    #[error("kafka cannot format its folder:\n{output}")]
    Format { output: String },
    #[error("kafka does not start; its log:\n{log}")]
    Ended { log: String },
    #[error("kafka does not get ready; its log:\n{log}")]
    Silent { log: String },
    #[error("kafka cannot be run: {0}")]
    Io(#[from] io::Error),
}

// === impl Launch ===

impl Launch {
    /// Prepares a broker on free ports, with an empty log in a new folder.
    pub(super) fn prepare(options: &KafkaBuilder, programs: Programs) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("headgate-kafka-").tempdir()?;
        let ports = Ports::free();
        if options.secure {
            certificates::make(folder.path())?;
        }
        let text = properties::text(options, ports, folder.path());
        fs::write(properties_file(folder.path()), text)?;
        // 22 characters of base64, unique.
        let cluster = format!("hgtest{:016x}", RandomState::new().build_hasher().finish());
        let launch = Self { programs, ports, cluster, secure: options.secure, folder };
        launch.format()?;
        Ok(launch)
    }

    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn secure(&self) -> Option<SecureListeners> {
        self.secure.then(|| SecureListeners {
            ssl: address(self.ports.ssl),
            sasl_ssl: address(self.ports.sasl_ssl),
            ca_file: certificates::authority(self.folder()),
            client: certificates::client(self.folder()),
            username: USER,
            password: PASSWORD,
        })
    }

    /// Starts the broker with its data, and waits until it lists itself.
    pub(super) fn start(&self) -> Result<Process, Failure> {
        let mut command = self.java("kafka.Kafka");
        let log_file = self.folder().join("log");
        let log = File::create(&log_file)?;
        command.arg(properties_file(self.folder()));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);

        let mut process = Process::start(command)?;
        let mut ended = false;
        let ready = wait_until(START_TIMEOUT, || {
            ended = process.has_exited();
            ended || probe::is_served_by(&self.cluster, self.ports.plain)
        });
        if ready && !ended {
            return Ok(process);
        }
        let log = fs::read_to_string(log_file).unwrap_or_default();
        Err(match ended {
            true if log.contains("Address already in use") => Failure::PortTaken,
            true => Failure::Ended { log },
            false => Failure::Silent { log },
        })
    }

    /// Formats the data folder, with the user of secure listeners.
    fn format(&self) -> Result<(), Failure> {
        let mut format = self.java("kafka.tools.StorageTool");
        format.args(["format", "--cluster-id", &self.cluster, "--config"]);
        format.arg(properties_file(self.folder()));
        if self.secure {
            for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
                let user = format!("{mechanism}=[name={USER},password={PASSWORD}]");
                format.args(["--add-scram", &user]);
            }
        }
        let output = format.stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let output = [output.stdout, output.stderr].concat();
        let output = String::from_utf8_lossy(&output).into_owned();
        let is_old = output.contains("UnsupportedClassVersionError");
        Err(if is_old { Failure::OldJava } else { Failure::Format { output } })
    }

    fn java(&self, class: &str) -> Command {
        let mut command = process::command(&self.programs.java);
        // Unpacked libraries are removed with the folder.
        let temporary = format!("-Djava.io.tmpdir={}", self.folder().display());
        command
            .args(JVM)
            .args([LOG_LEVEL, &temporary])
            .arg("-cp")
            .arg(self.programs.class_path())
            .arg(class);
        command.current_dir(self.folder());
        command
    }
}

fn properties_file(folder: &Path) -> PathBuf {
    folder.join("server.properties")
}
