//! Runs the binary.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
};

/// The command, in an environment that holds only `variables`.
pub(crate) fn headgate(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headgate"));
    command.args(arguments).env_clear().envs(variables.iter().copied()).stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    headgate(arguments, variables).output().expect("the command runs")
}

pub(crate) fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).expect("a text")
}

pub(crate) fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).expect("a text")
}

/// `headgate serve` on a free port; ends with the test.
pub(crate) struct Server {
    process: Child,
    /// Kept open, so that the server can go on writing.
    _stdout: BufReader<ChildStdout>,
    /// The line in which it said where it listens.
    pub(crate) greeting: String,
}

impl Server {
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        let mut command = headgate(&["serve"], variables);
        command.env("HEADGATE__SERVER__PORT", "0").stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).expect("a greeting");
        Self { process, _stdout: stdout, greeting }
    }

    /// Where it listens, as a URL.
    pub(crate) fn url(&self) -> &str {
        self.greeting.split(' ').find(|word| word.starts_with("http://")).expect("a URL")
    }

    /// Asks it to end as an operating system would, and waits.
    pub(crate) fn signal(mut self, signal: &str) -> ExitStatus {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(sent.success());
        self.process.wait().expect("the server ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
