//! A child process that ends with its handle and, if the system allows it, with its parent process.

mod run;
mod spawner;

use std::{
    ffi::OsStr,
    fs, io,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

pub(crate) use self::run::run;
use crate::wait_until;

/// Time that a process may take to react to a signal.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    paused: bool,
}

/// A command for [`Process::start`] whose program is killed when this process ends.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    command_ended_by("KILL", program)
}

/// A command whose program gets this signal instead of SIGKILL, to clean up after itself.
pub(crate) fn command_ended_by(signal: &str, program: impl AsRef<OsStr>) -> Command {
    spawner::tied_command(signal, program.as_ref())
}

// === impl Process ===

impl Process {
    pub(crate) fn start(command: Command) -> io::Result<Self> {
        Ok(Self { child: spawner::spawn(command)?, paused: false })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_exited(&mut self) -> bool {
        // An error means that the child is gone.
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    /// The exit status; `None` while it runs.
    pub(crate) fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Returns true if it runs and is not paused.
    pub(crate) fn is_awake(&mut self) -> bool {
        !self.paused && !self.has_exited()
    }

    /// Kills it (SIGKILL) and waits for its end. Does nothing if it has ended.
    pub(crate) fn kill(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.paused = false;
    }

    /// Sends SIGQUIT and waits for its end; kills it if it does not end.
    pub(crate) fn quit(&mut self) {
        if !self.has_exited() && self.send("QUIT") {
            wait_until(SIGNAL_TIMEOUT, || self.has_exited());
        }
        self.kill();
    }

    /// Stops it (SIGSTOP) and waits until it is stopped.
    pub(crate) fn pause(&mut self) {
        self.signal("STOP");
        self.paused = true;
        let stat = format!("/proc/{}/stat", self.id());
        wait_until(SIGNAL_TIMEOUT, || is_stopped(&stat));
    }

    /// Resumes a paused process (SIGCONT).
    pub(crate) fn resume(&mut self) {
        self.signal("CONT");
        self.paused = false;
    }

    fn signal(&mut self, name: &str) {
        // The id of an ended process may belong to another one by now.
        assert!(!self.has_exited(), "the server is not running");
        assert!(self.send(name), "could not send {name} to the server");
    }

    fn send(&self, name: &str) -> bool {
        // The builtin of the shell: a small image may have no `kill` program.
        Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &self.id().to_string()])
            .status()
            .is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns true if the state in `pid (name) STATE ...` is stopped; true if there is no such file.
fn is_stopped(stat: &str) -> bool {
    fs::read_to_string(stat)
        .map_or(true, |line| line.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}
