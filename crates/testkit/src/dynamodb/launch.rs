use std::{
    fs::{self, File},
    io,
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use thiserror::Error;

use super::{probe, programs::Programs};
use crate::{free_port, java::JVM, process, process::Process, wait_until};

/// Timeout of a start, which takes 2 s on an idle machine.
const START_TIMEOUT: Duration = Duration::from_mins(5);

const MAIN: &str = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner";

/// Settings of a server: port, folder and programs.
#[derive(Debug)]
pub(super) struct Launch {
    programs: Programs,
    port: u16,
    folder: TempDir,
}

/// Error of a start.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("the port is taken")]
    PortTaken,
    #[error("java is too old")]
    OldJava,
    #[error("dynamodb does not start; its log:\n{log}")]
    Ended { log: String },
    #[error("dynamodb does not respond; its log:\n{log}")]
    Silent { log: String },
    #[error("dynamodb cannot be run: {0}")]
    Io(#[from] io::Error),
}

// === impl Launch ===

impl Launch {
    /// Prepares a server on a free port, in a new folder.
    pub(super) fn prepare(programs: Programs) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("headgate-dynamodb-").tempdir()?;
        Ok(Self { programs, port: free_port(), folder })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server without tables, and waits until it responds.
    pub(super) fn start(&self) -> Result<Process, Failure> {
        let log_file = self.folder.path().join("log");
        let log = File::create(&log_file)?;
        let mut command = process::command(&self.programs.java);
        command.args(JVM).arg(self.programs.native_libraries());
        command.arg("-cp").arg(self.programs.class_path()).arg(MAIN);
        // The same tables for all credentials and regions.
        command.args(["-inMemory", "-sharedDb", "-disableTelemetry"]);
        command.args(["-port", &self.port.to_string()]);
        command.current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);

        let mut process = Process::start(command)?;
        let pid = process.id();
        let mut ended = false;
        let answers = wait_until(START_TIMEOUT, || {
            ended = process.has_exited();
            ended || probe::is_served_by(pid, self.port)
        });
        if answers && !ended {
            return Ok(process);
        }
        let log = fs::read_to_string(log_file).unwrap_or_default();
        Err(match ended {
            true if log.contains("Failed to bind") => Failure::PortTaken,
            true if log.contains("UnsupportedClassVersionError") => Failure::OldJava,
            true => Failure::Ended { log },
            false => Failure::Silent { log },
        })
    }
}
