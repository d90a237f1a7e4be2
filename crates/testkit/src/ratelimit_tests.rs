//! The tests of envoyproxy/ratelimit, which `scripts/envoy-ratelimit-tests` builds for use with Headgate.

use std::{
    fs::{self, File},
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use crate::{
    Skip, cache,
    process::{self, Process},
    skip::find_program,
    wait_until,
};

const NAME: &str = "envoyproxy/ratelimit";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/envoy-ratelimit-tests");

/// Longer than any run takes that is not stuck.
const TIME_LIMIT: Duration = Duration::from_mins(18);

/// The tests, ready to run.
#[derive(Debug, Clone, Copy)]
pub struct RatelimitTests(());

impl RatelimitTests {
    /// Those that the test dependencies built.
    ///
    /// # Errors
    ///
    /// [`Skip`] if there are none, or no Redis for them.
    pub fn find() -> Result<Self, Skip> {
        find_program("redis-server")?;
        let stamp = cache::tool("envoy-ratelimit").map(|folder| folder.join("stamp"));
        if stamp.is_some_and(|stamp| stamp.is_file()) {
            return Ok(Self(()));
        }
        Err(Skip::new(NAME, "not built: run scripts/envoy-ratelimit-tests build, which needs Go"))
    }

    /// Runs them with this `headgate`: the numbers that the script says at its end.
    ///
    /// # Errors
    ///
    /// Its output, if something is wrong, it cannot run or does not end in time.
    pub fn run(self, headgate: &Path) -> Result<String, String> {
        Self::try_run(headgate).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_run(headgate: &Path) -> io::Result<Result<String, String>> {
        let folder = tempfile::Builder::new().prefix("headgate-ratelimit-tests-").tempdir()?;
        let log = folder.path().join("log");
        let output = File::create(&log)?;
        let mut command = process::command_ended_by("TERM", SCRIPT);
        command.arg("run").arg(headgate).env("TMPDIR", folder.path());
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);

        let mut process = Process::start(command)?;
        let ended = wait_until(TIME_LIMIT, || process.has_exited());
        if !ended {
            process.kill();
        }
        let log = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        if !ended {
            return Ok(Err(format!("{NAME} did not end within {TIME_LIMIT:?}:\n{log}")));
        }
        let succeeded = process.exit_status()?.is_some_and(|status| status.success());
        Ok(if succeeded { Ok(log) } else { Err(log) })
    }
}
