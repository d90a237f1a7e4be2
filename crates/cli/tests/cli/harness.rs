//! Runs the binary.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read as _, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

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

/// What a command that did what it was asked printed.
pub(crate) fn printed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    stdout(output)
}

/// What a command that failed said.
pub(crate) fn failure(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(stdout(output), "");
    stderr(output)
}

/// The JSON that a command printed.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(printed(output)).expect("JSON")
}

/// Sends a request as it is written here, and reads all of the answer.
pub(crate) fn http(server: &Server, line: &str, headers: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let headers = [headers, &[""]].concat().join("\r\n");
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// `headgate serve` on a free port, in a folder of its own; ends with the test.
pub(crate) struct Server {
    process: Child,
    folder: TempDir,
    /// Kept open, so that the server can go on writing.
    _stdout: BufReader<ChildStdout>,
    /// The line in which it said where it listens.
    pub(crate) greeting: String,
}

impl Server {
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), variables, Stdio::inherit())
    }

    /// The same, with a log that can be read.
    pub(crate) fn start_with_log(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        Self::start_in(folder, variables, log.into())
    }

    /// The same, with files that may not grow beyond so many half kilobytes.
    pub(crate) fn start_limited(blocks: u32) -> Self {
        let mut command = Command::new("sh");
        // Without the trap the system would end the server.
        let limited = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" serve");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_headgate")]);
        command.env_clear().stdin(Stdio::null());
        Self::launch(command, tempfile::tempdir().expect("a folder"), Stdio::inherit())
    }

    fn start_in(folder: TempDir, variables: &[(&str, &str)], log: Stdio) -> Self {
        Self::launch(headgate(&["serve"], variables), folder, log)
    }

    fn launch(mut command: Command, folder: TempDir, log: Stdio) -> Self {
        for port in ["HEADGATE__SERVER__PORT", "HEADGATE__SERVER__GRPC_PORT"] {
            if !command.get_envs().any(|(name, _)| name == port) {
                command.env(port, "0");
            }
        }
        command.current_dir(&folder).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().expect("the server starts");
        let mut stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).expect("a greeting");
        Self { process, folder, _stdout: stdout, greeting }
    }

    /// Where it runs: a command that runs here too finds the server's admin token.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command that asks this server, from its folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = headgate(arguments, &[("HEADGATE_SERVER", self.url())]);
        command.current_dir(&self.folder);
        command
    }

    /// Runs such a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command runs")
    }

    /// The same, with something to read.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the command starts");
        let mut stdin = process.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("the command reads");
        drop(stdin);
        process.wait_with_output().expect("the command ends")
    }

    /// The JSON that such a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        json(&self.run(&[arguments, &["--output", "json"]].concat()))
    }

    /// Where it listens, as a URL.
    pub(crate) fn url(&self) -> &str {
        let url = self.greeting.split(' ').find(|word| word.starts_with("http://"));
        url.expect("a URL").trim_end_matches(',')
    }

    /// Where it listens for gRPC, as a URL.
    pub(crate) fn grpc_url(&self) -> String {
        let address = self.greeting.split("gRPC on ").nth(1).expect("an address");
        format!("http://{}", address.split(' ').next().expect("an address"))
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Sends it a signal.
    pub(crate) fn send(&self, signal: &str) {
        let pid = self.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Asks it to end as an operating system would, and waits.
    pub(crate) fn signal(mut self, signal: &str) -> ExitStatus {
        self.stop(signal)
    }

    /// The same; its folder stays.
    pub(crate) fn stop(&mut self, signal: &str) -> ExitStatus {
        self.send(signal);
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
