//! A child process that ends with its handle and, where the system allows, with the process that started it.

mod spawner;

use std::{
    ffi::OsStr,
    fs, io,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use crate::wait_until;

/// How long the kernel may take to stop a process that was told to.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    paused: bool,
}

/// A command for a program that dies with us, to be started by [`Process::start`].
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    command_ended_by("KILL", program)
}

/// The same for a program that cleans up after itself when it gets this signal in place of SIGKILL.
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
        // An error means that there is no such child any more.
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Whether it runs and is not paused.
    pub(crate) fn is_awake(&mut self) -> bool {
        !self.paused && !self.has_exited()
    }

    /// Kills it (SIGKILL) and waits for its end. Does nothing to a process that has ended.
    pub(crate) fn kill(&mut self) {
        // Both fail only if it is gone already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.paused = false;
    }

    /// Tells it to end at once (SIGQUIT) and waits for that; kills it if it does not.
    pub(crate) fn quit(&mut self) {
        if !self.has_exited() && self.send("QUIT") {
            wait_until(SIGNAL_TIMEOUT, || self.has_exited());
        }
        self.kill();
    }

    /// Stops it (SIGSTOP) and waits until it stands still.
    pub(crate) fn pause(&mut self) {
        self.signal("STOP");
        self.paused = true;
        let stat = format!("/proc/{}/stat", self.id());
        wait_until(SIGNAL_TIMEOUT, || is_stopped(&stat));
    }

    /// Lets a paused process run on (SIGCONT).
    pub(crate) fn resume(&mut self) {
        self.signal("CONT");
        self.paused = false;
    }

    fn signal(&mut self, name: &str) {
        // The id of a process that was waited for may belong to another by now.
        assert!(!self.has_exited(), "the server is not running");
        assert!(self.send(name), "could not send {name} to the server");
    }

    fn send(&self, name: &str) -> bool {
        // The shell's own kill: the program of that name is in none of the packages that a small image must have.
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

/// Reads `pid (name) STATE ...`; true where there is no such file to ask.
fn is_stopped(stat: &str) -> bool {
    fs::read_to_string(stat)
        .map_or(true, |line| line.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}
