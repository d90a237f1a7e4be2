//! The Envoy proxy.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    Skip, cache, port,
    process::{self, Process},
    skip::find_program,
    wait_until,
};

const NAME: &str = "envoy";

/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// An Envoy with the configuration of a test.
#[derive(Debug)]
pub struct Envoy {
    /// Dropped before its folder.
    _process: Process,
    folder: TempDir,
}

// === impl Envoy ===

impl Envoy {
    /// Starts with this configuration, and waits until it accepts connections on `port`.
    ///
    /// # Errors
    ///
    /// [`Skip`] if it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not accept the configuration, with its log.
    pub fn start(config: &str, port: u16) -> Result<Self, Skip> {
        let program = program()?;
        Ok(launch(program, config, port).unwrap_or_else(|error| panic!("{NAME}: {error}")))
    }

    /// The log so far.
    pub fn log(&self) -> String {
        read_log(&self.folder)
    }
}

/// The version that the test dependencies pin, or else the one on `PATH`.
fn program() -> Result<PathBuf, Skip> {
    let pythons = cache::tool(NAME).and_then(|folder| fs::read_dir(folder.join("lib")).ok());
    let installed = pythons.into_iter().flatten().filter_map(Result::ok);
    let installed = installed.map(|python| python.path().join("site-packages/envoy/_bin/envoy"));
    installed.into_iter().find(|program| program.is_file()).map_or_else(|| find_program(NAME), Ok)
}

fn launch(program: PathBuf, config: &str, port: u16) -> io::Result<Envoy> {
    let folder = tempfile::Builder::new().prefix("headgate-envoy-").tempdir()?;
    let file = folder.path().join("envoy.yaml");
    fs::write(&file, config)?;
    let log = File::create(folder.path().join("log"))?;
    let mut command = process::command(program);
    command.arg("-c").arg(file).args(["--use-dynamic-base-id", "--concurrency", "1", "-l", "warn"]);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut process = Process::start(command)?;
    let ended = || io::Error::other(read_log(&folder));
    let mut exited = false;
    let started = wait_until(START_TIMEOUT, || {
        exited = process.has_exited();
        exited || port::is_open(port)
    });
    if exited || !started {
        return Err(ended());
    }
    Ok(Envoy { _process: process, folder })
}

fn read_log(folder: &TempDir) -> String {
    fs::read(folder.path().join("log"))
        .map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned())
}
