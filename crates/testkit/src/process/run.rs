use std::{
    fs::{self, File},
    io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use super::Process;
use crate::wait_until;

/// Runs a command to its end, with its log in `folder`. Returns its output: `Err` if it failed or
/// did not end in time.
pub(crate) fn run(
    name: &str,
    mut command: Command,
    folder: &Path,
    time_limit: Duration,
) -> io::Result<Result<String, String>> {
    let log = folder.join("log");
    let output = File::create(&log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut process = Process::start(command)?;
    let ended = wait_until(time_limit, || process.has_exited());
    if !ended {
        process.kill();
    }
    let log = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    if !ended {
        return Ok(Err(format!("{name} did not end within {time_limit:?}:\n{log}")));
    }
    let succeeded = process.exit_status()?.is_some_and(|status| status.success());
    Ok(if succeeded { Ok(log) } else { Err(log) })
}
