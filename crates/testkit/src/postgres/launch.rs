use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use thiserror::Error;

use super::{DATABASE, USER, account::Account, programs::Programs, psql};
use crate::{free_port, process, process::Process, wait_until};

/// Timeout of a start, which takes 0.1 s on an idle machine.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// Loopback only, no socket file, many connections.
const SETTINGS: &[&str] =
    &["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300"];

/// With fsync off a commit still reaches the page cache, so it survives a crash of the server.
const HASTY: &[&str] = &["fsync=off", "full_page_writes=off"];

/// Settings of a server: port, folder and programs.
#[derive(Debug)]
pub(super) struct Launch {
    programs: Programs,
    account: Option<Account>,
    password: Option<String>,
    durable: bool,
    port: u16,
    folder: TempDir,
}

/// Error of a start.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("the port is taken")]
    PortTaken,
    #[error("initdb fails:\n{output}")]
    Initdb { output: String },
    #[error("postgres does not start; its log:\n{log}")]
    Ended { log: String },
    #[error("postgres does not get ready; its log:\n{log}")]
    Silent { log: String },
    #[error("postgres cannot be run: {0}")]
    Io(#[from] io::Error),
}

// === impl Launch ===

impl Launch {
    /// Prepares a server on a free port, with new data in a new folder.
    pub(super) fn prepare(
        programs: Programs,
        account: Option<Account>,
        password: Option<String>,
        durable: bool,
    ) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("headgate-postgres-").tempdir()?;
        if let Some(account) = account {
            account.own(folder.path())?;
        }
        let launch = Self { programs, account, password, durable, port: free_port(), folder };
        launch.initdb()?;
        Ok(launch)
    }

    pub(super) fn move_to_another_port(&mut self) {
        self.port = free_port();
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of another program of the same version. It may not exist.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.server.with_file_name(name)
    }

    pub(super) fn url(&self) -> String {
        let port = self.port;
        match &self.password {
            Some(password) => format!("postgresql://{USER}:{password}@127.0.0.1:{port}/{DATABASE}"),
            None => format!("postgresql://{USER}@127.0.0.1:{port}/{DATABASE}"),
        }
    }

    /// Creates an empty folder on another disk, which the server may use.
    #[track_caller]
    pub(super) fn tablespace_folder(&self, disk: &Path) -> PathBuf {
        let folder = disk.join("postgres");
        fs::create_dir(&folder).expect("a folder on the disk");
        if let Some(account) = self.account {
            account.own(&folder).expect("the server may use the folder");
        }
        folder
    }

    #[track_caller]
    pub(super) fn ask(&self, sql: &str) -> String {
        psql::ask(&self.programs.psql, &self.url(), sql)
            .unwrap_or_else(|error| panic!("psql to port {}: {error}", self.port))
    }

    /// Starts the server with its data, and waits until it accepts connections.
    pub(super) fn start(&self) -> Result<Process, Failure> {
        let mut process = Process::start(self.command()?)?;
        let pid = process.id();
        let mut ended = false;
        let ready = wait_until(START_TIMEOUT, || {
            ended = process.has_exited();
            ended || self.is_ready(pid)
        });
        if ready && !ended {
            return Ok(process);
        }
        // It may have started session processes, which only it can end.
        process.quit();
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        Err(match ended {
            true if log.contains("Address already in use") => Failure::PortTaken,
            true => Failure::Ended { log },
            false => Failure::Silent { log },
        })
    }

    fn initdb(&self) -> Result<(), Failure> {
        let mut initdb = process::command(&self.programs.initdb);
        initdb.arg("--pgdata").arg(self.data_folder());
        initdb.args(["--no-sync", "--username", USER, "--encoding", "UTF8", "--locale", "C"]);
        if let Some(password) = &self.password {
            initdb.args(["--auth", "scram-sha-256"]).arg("--pwfile").arg(self.write(password)?);
        } else {
            initdb.args(["--auth", "trust"]);
        }
        self.prepare_command(&mut initdb);
        let output = initdb.output()?;
        if output.status.success() {
            return Ok(());
        }
        let output = [output.stdout, output.stderr].concat();
        Err(Failure::Initdb { output: String::from_utf8_lossy(&output).into_owned() })
    }

    /// Writes the password to a file in the server's folder.
    fn write(&self, password: &str) -> io::Result<PathBuf> {
        let file = self.folder().join("password");
        fs::write(&file, password)?;
        if let Some(account) = self.account {
            account.own(&file)?;
        }
        Ok(file)
    }

    fn command(&self) -> io::Result<Command> {
        // Killing it would leak sessions and shared memory.
        let mut command = process::command_ended_by("QUIT", &self.programs.server);
        command.arg("-D").arg(self.data_folder()).args(["-p", &self.port.to_string()]);
        let hasty = if self.durable { &[] } else { HASTY };
        command.args([SETTINGS, hasty].concat().iter().flat_map(|setting| ["-c", setting]));
        self.prepare_command(&mut command);
        let log = File::create(self.log_file())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    fn prepare_command(&self, command: &mut Command) {
        // Another user may have no access to our current folder. Messages are in English.
        command.current_dir(self.folder()).env("LC_ALL", "C");
        if let Some(account) = self.account {
            account.run(command);
        }
    }

    /// Reads the server's pid file: its process id is in the first line, its state in the eighth.
    fn is_ready(&self, pid: u32) -> bool {
        let file = fs::read_to_string(self.data_folder().join("postmaster.pid"));
        file.is_ok_and(|text| {
            let lines: Vec<_> = text.lines().map(str::trim).collect();
            lines.first() == Some(&pid.to_string().as_str()) && lines.get(7) == Some(&"ready")
        })
    }

    fn data_folder(&self) -> PathBuf {
        self.folder().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder().join("log")
    }
}
