//! Schemathesis: tests an HTTP API with requests generated from its `OpenAPI` document.

use std::{io, path::PathBuf, time::Duration};

use crate::{Skip, cache, process, skip::find_program};

const NAME: &str = "schemathesis";

/// Longer than any run that is not stuck.
const TIME_LIMIT: Duration = Duration::from_mins(10);

/// The program, ready to run.
#[derive(Debug, Clone)]
pub struct Schemathesis {
    program: PathBuf,
    time_limit: Duration,
}

// === impl Schemathesis ===

impl Schemathesis {
    /// Finds the version that the test dependencies pin, or else the one on `PATH`.
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

    /// Maximum time of a run. Default: ten minutes.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Runs `schemathesis run` with the `OpenAPI` document at this URL and more arguments.
    ///
    /// # Errors
    ///
    /// The output, if it finds a fault or does not end in time.
    pub fn run(&self, openapi_url: &str, extra_args: &[&str]) -> Result<(), String> {
        self.try_run(openapi_url, extra_args).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_run(&self, openapi_url: &str, extra_args: &[&str]) -> io::Result<Result<(), String>> {
        // It reads settings from its current folder, and stores examples there.
        let folder = tempfile::Builder::new().prefix("headgate-schemathesis-").tempdir()?;
        let mut command = process::command(&self.program);
        command.arg("run").arg(openapi_url).args(extra_args).current_dir(&folder);
        command.env("NO_COLOR", "1").env("COLUMNS", "120").env("NO_PROXY", "127.0.0.1,localhost");
        let result = process::run(NAME, command, folder.path(), self.time_limit)?;
        Ok(result.map(|_| ()))
    }
}
