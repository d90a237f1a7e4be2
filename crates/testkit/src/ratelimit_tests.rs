//! The integration tests of envoyproxy/ratelimit, built by `scripts/envoy-ratelimit-tests`.

use std::{io, path::Path, time::Duration};

use crate::{Skip, cache, process, skip::find_program};

const NAME: &str = "envoyproxy/ratelimit";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/envoy-ratelimit-tests");

/// Longer than any run that is not stuck.
const TIME_LIMIT: Duration = Duration::from_mins(18);

/// The tests, ready to run.
#[derive(Debug, Clone, Copy)]
pub struct RatelimitTests(());

impl RatelimitTests {
    /// Finds the tests that the test dependencies built.
    ///
    /// # Errors
    ///
    /// [`Skip`] if they are not built, or if `redis-server` is not installed.
    pub fn find() -> Result<Self, Skip> {
        find_program("redis-server")?;
        let stamp = cache::tool("envoy-ratelimit").map(|folder| folder.join("stamp"));
        if stamp.is_some_and(|stamp| stamp.is_file()) {
            return Ok(Self(()));
        }
        Err(Skip::new(NAME, "not built: run scripts/envoy-ratelimit-tests build, which needs Go"))
    }

    /// Runs the tests against this `headgate` program. Returns the output, with a summary at its
    /// end.
    ///
    /// # Errors
    ///
    /// The output, if a test fails or the run does not end in time.
    pub fn run(self, headgate: &Path) -> Result<String, String> {
        Self::try_run(headgate).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_run(headgate: &Path) -> io::Result<Result<String, String>> {
        let folder = tempfile::Builder::new().prefix("headgate-ratelimit-tests-").tempdir()?;
        let mut command = process::command_ended_by("TERM", SCRIPT);
        command.arg("run").arg(headgate).env("TMPDIR", folder.path());
        process::run(NAME, command, folder.path(), TIME_LIMIT)
    }
}
