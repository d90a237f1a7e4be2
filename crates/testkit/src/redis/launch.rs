use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use thiserror::Error;

use super::{
    RedisBuilder,
    cli::Cli,
    clock::{self, FakeClock},
    probe,
};
use crate::{free_port, process, process::Process, wait_until};

/// Timeout of a start, which takes 20 ms on an idle machine.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// Settings of a server: port, folder and command line.
#[derive(Debug)]
pub(super) struct Launch {
    server: PathBuf,
    options: RedisBuilder,
    cli: Cli,
    clock: Option<(FakeClock, PathBuf)>,
    folder: TempDir,
}

/// Error of a start.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("the port is taken")]
    PortTaken,
    #[error("redis-server does not start; its log:\n{log}")]
    Ended { log: String },
    #[error("redis-server does not answer; its log:\n{log}")]
    Silent { log: String },
    #[error("redis-server's clock says {found} where {expected} was set")]
    Clock { expected: u64, found: String },
    #[error("redis-server cannot be run: {0}")]
    Io(#[from] io::Error),
}

// === impl Launch ===

impl Launch {
    /// Prepares a server on a free port, in a new folder.
    pub(super) fn new(
        options: &RedisBuilder,
        server: &Path,
        cli: &Path,
        library: Option<&Path>,
    ) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("headgate-redis-")
            .tempdir()
            .expect("create a temporary folder");
        let clock = options
            .fake_clock
            .zip(library)
            .map(|(start, library)| (FakeClock::new(folder.path(), start), library.to_owned()));
        Self {
            server: server.to_owned(),
            cli: Cli {
                program: cli.to_owned(),
                port: free_port(),
                password: options.password.clone(),
            },
            options: options.clone(),
            clock,
            folder,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.cli.port
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn clock(&self) -> Option<&FakeClock> {
        self.clock.as_ref().map(|(clock, _)| clock)
    }

    pub(super) fn url(&self) -> String {
        match &self.options.password {
            Some(password) => format!("redis://:{password}@127.0.0.1:{}", self.port()),
            None => format!("redis://127.0.0.1:{}", self.port()),
        }
    }

    pub(super) fn ask(&self, command: &[&str]) -> io::Result<String> {
        self.cli.ask(command)
    }

    /// Starts the server without data, and waits until it responds.
    pub(super) fn start(&self) -> Result<Process, Failure> {
        let mut process = Process::start(self.command()?)?;
        let pid = process.id();
        let mut ended = false;
        let answers = wait_until(START_TIMEOUT, || {
            ended = process.has_exited();
            ended || probe::is_served_by(pid, self.port(), self.options.password.as_deref())
        });
        clock::forget_shared_memory(pid);

        let log = || fs::read_to_string(self.log_file()).unwrap_or_default();
        if ended {
            let log = log();
            return Err(if log.contains("Address already in use") {
                Failure::PortTaken
            } else {
                Failure::Ended { log }
            });
        }
        if !answers {
            return Err(Failure::Silent { log: log() });
        }
        self.check_clock()?;
        Ok(process)
    }

    fn command(&self) -> io::Result<Command> {
        let data = self.fresh_data_folder()?;
        let mut command = process::command(&self.server);
        if let Some(config) = &self.options.sentinel {
            let file = data.join("sentinel.conf");
            fs::write(&file, config)?;
            command.arg(file).arg("--sentinel");
        } else {
            command.args(["--save", "", "--appendonly", "no"]);
        }
        command.args(["--bind", "127.0.0.1", "--port", &self.port().to_string()]);
        command.arg("--dir").arg(&data);
        if let Some(password) = &self.options.password {
            command.args(["--requirepass", password]);
        }
        command.args(&self.options.args);
        if let Some((clock, library)) = &self.clock {
            clock.govern(&mut command, library);
        }
        let log = File::create(self.log_file())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Empties the folder, except for the cluster configuration of a node.
    fn fresh_data_folder(&self) -> io::Result<PathBuf> {
        let data = self.folder().join("data");
        let nodes = data.join("nodes.conf");
        let known = fs::read(&nodes).ok();
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir(&data)?;
        if let Some(known) = known {
            fs::write(nodes, known)?;
        }
        Ok(data)
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("log")
    }

    fn check_clock(&self) -> Result<(), Failure> {
        let Some(clock) = self.clock() else {
            return Ok(());
        };
        let expected = clock.now();
        let found = self.ask(&["TIME"])?;
        let is_exact = found.split_once('\n').is_some_and(|(seconds, micros)| {
            seconds.parse() == Ok(expected / 1_000_000)
                && micros.parse() == Ok(expected % 1_000_000)
        });
        if is_exact { Ok(()) } else { Err(Failure::Clock { expected, found }) }
    }
}
