//! Schemathesis, which sends an HTTP API the requests that its own description allows, and those that it forbids.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use crate::{
    Skip, cache,
    process::{self, Process},
    skip::find_program,
    wait_until,
};

const NAME: &str = "schemathesis";

/// Longer than any run takes that is not stuck.
const TIME_LIMIT: Duration = Duration::from_mins(10);

/// The program, ready to run.
#[derive(Debug, Clone)]
pub struct Schemathesis {
    program: PathBuf,
    time_limit: Duration,
}

// === impl Schemathesis ===

impl Schemathesis {
    /// The version that the test dependencies pin, or else the one on `PATH`.
    ///
    /// # Errors
    ///
    /// [`Skip`] if it is not installed.
    pub fn find() -> Result<Self, Skip> {
        let installed = cache::tool(NAME).map(|folder| folder.join("bin").join(NAME));
        let program = match installed.filter(|program| program.is_file()) {
            Some(program) => program,
            None => find_program(NAME)?,
        };
        Ok(Self { program, time_limit: TIME_LIMIT })
    }

    /// Ends a run that takes longer than this; without it, ten minutes.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Tests the API that the document at this address describes: `schemathesis run`, with more arguments.
    ///
    /// # Errors
    ///
    /// Its output, if it finds a fault, cannot run or does not end in time.
    pub fn run(&self, openapi_url: &str, extra_args: &[&str]) -> Result<(), String> {
        self.try_run(openapi_url, extra_args).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_run(&self, openapi_url: &str, extra_args: &[&str]) -> io::Result<Result<(), String>> {
        // It keeps what it has found in its current folder, and looks for settings there.
        let folder = tempfile::Builder::new().prefix("headgate-schemathesis-").tempdir()?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let mut command = process::command(&self.program);
        command.arg("run").arg(openapi_url).args(extra_args).current_dir(&folder);
        command.env("NO_COLOR", "1").env("COLUMNS", "120").env("NO_PROXY", "127.0.0.1,localhost");
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);

        let mut process = Process::start(command)?;
        let ended = wait_until(self.time_limit, || process.has_exited());
        if !ended {
            process.kill();
        }
        let log = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        if !ended {
            return Ok(Err(format!("{NAME} did not end within {:?}:\n{log}", self.time_limit)));
        }
        let succeeded = process.exit_status()?.is_some_and(|status| status.success());
        Ok(if succeeded { Ok(()) } else { Err(log) })
    }
}
