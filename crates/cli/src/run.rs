//! `headgate run`

mod lease;
mod signals;
mod watchdog;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::{Command, ExitCode, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use clap::Args;

use self::{
    lease::{Answer, Keeper, Lease},
    signals::{Signals, Target},
};
use crate::{client::ServerOptions, failure::Failure};

/// No place was free: a temporary failure, as in `sysexits.h`.
const DENIED: u8 = 75;
/// The command was not started, or its place was lost.
const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a command while holding a place of a concurrency limit.
///
/// Takes a place, renews its lease while the command runs, and releases it afterwards. Signals are
/// passed on to the command. If the place is lost, because the server could not be reached until
/// shortly before the lease ends, the command is terminated.
///
/// Exits with the code of the command, or with 128 and the number of the signal that killed it; with
/// 75 if no place is free, 125 if the server does not answer or the place is lost, 126 if the command
/// cannot be executed and 127 if it is not found.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Subject whose limits apply, such as service:export; may be repeated: all or nothing.
    #[arg(long = "limit", value_name = "SCOPE:IDENTIFIER", required = true, value_parser = subject)]
    limits: Vec<(String, String)>,
    /// Seconds after which the place is free if this machine dies: 1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    lease: u64,
    /// Seconds to wait for a free place; without a number, as long as it takes.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "31536000")]
    wait: Option<u64>,
    /// Let the command go on if its place is lost.
    #[arg(long)]
    keep_running: bool,
    /// Command to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    options: ServerOptions,
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        let lease = match self.acquire() {
            Ok(Ok(lease)) => lease,
            Ok(Err(reason)) => return complain(DENIED, &reason),
            Err(failure) => return complain(FAILED, &failure.to_string()),
        };
        let Some((program, arguments)) = self.command.split_first() else {
            return ExitCode::SUCCESS;
        };
        let signals = Signals::catch();
        let mut child = match Command::new(program).args(arguments).spawn() {
            Ok(child) => child,
            Err(error) => {
                lease.release();
                let code = match error.kind() {
                    io::ErrorKind::NotFound => NOT_FOUND,
                    _ => NOT_EXECUTABLE,
                };
                let reason = format!("cannot run {}: {error}", program.to_string_lossy());
                return complain(code, &reason);
            }
        };
        let target = Target::of(&child);
        signals.pass_on(target);
        let keeper = Keeper::start(lease, target, self.keep_running);
        let status = child.wait();
        let was_lost = keeper.stop();
        match status {
            Ok(_) if was_lost && !self.keep_running => ExitCode::from(FAILED),
            Ok(status) => code_of(status),
            Err(error) => complain(FAILED, &format!("cannot wait for the command: {error}")),
        }
    }

    /// Takes a place, or returns why there is none.
    fn acquire(&self) -> Result<Result<Lease, String>, Failure> {
        let length = Duration::from_secs(self.lease);
        let deadline = self.wait.map(|seconds| now() + Duration::from_secs(seconds));
        let client = self.options.connect_within(length.min(Duration::from_secs(10)))?;
        let mut request = lease::Request::new(client, &self.limits, self.lease);
        loop {
            let (retry_after, reason) = match request.send()? {
                Answer::Held(lease) => return Ok(Ok(lease)),
                Answer::Denied { client, retry_after, reason } => {
                    request.client = Some(client);
                    (retry_after, reason)
                }
            };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
            let Some(left) = left.filter(|left| !left.is_zero()) else {
                return Ok(Err(reason));
            };
            // A place may be released long before a lease ends.
            let pause = retry_after.clamp(Duration::from_millis(100), Duration::from_secs(1));
            wait(pause.min(left));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a lease ends by the real time of this machine")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a place becomes free without notice")]
fn wait(time: Duration) {
    thread::sleep(time);
}

fn complain(code: u8, reason: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "headgate: {reason}");
    ExitCode::from(code)
}

#[cfg(unix)]
fn code_of(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

#[cfg(not(unix))]
fn code_of(status: ExitStatus) -> ExitCode {
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

/// Parses `SCOPE:IDENTIFIER`.
fn subject(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((scope, identifier)) if !scope.is_empty() && !identifier.is_empty() => {
            Ok((scope.to_owned(), identifier.to_owned()))
        }
        _ => Err("expected SCOPE:IDENTIFIER, such as service:export".to_owned()),
    }
}
