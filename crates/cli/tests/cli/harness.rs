//! Runs the binary.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read as _, Write},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use headgate_testkit::wait_until;
use serde_json::Value;
use tempfile::TempDir;

/// The command with no other environment than `variables`.
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

/// Standard output of a command that must succeed.
pub(crate) fn printed(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    stdout(output)
}

/// Standard error of a command that must fail.
pub(crate) fn failure(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(stdout(output), "");
    stderr(output)
}

/// Standard output, parsed as JSON.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(printed(output)).expect("JSON")
}

/// Sends a raw HTTP/1.1 request and reads the whole response.
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

/// `headgate serve` on a free port in a temporary folder; killed when dropped.
pub(crate) struct Server {
    process: Child,
    folder: TempDir,
    /// Kept open, so that the server can go on writing.
    _stdout: BufReader<ChildStdout>,
    /// First line of its output, which names the addresses.
    pub(crate) greeting: String,
}

impl Server {
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), variables, Stdio::inherit())
    }

    /// Starts a server whose log the test can read.
    pub(crate) fn start_with_log(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = File::create(folder.path().join("log")).expect("a file");
        Self::start_in(folder, variables, log.into())
    }

    /// Starts a server whose log goes to `stderr`.
    pub(crate) fn start_with_stderr(stderr: Stdio, variables: &[(&str, &str)]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), variables, stderr)
    }

    /// Starts a server whose files may not grow beyond `blocks` of 512 bytes.
    pub(crate) fn start_limited(blocks: u32) -> Self {
        let mut command = Command::new("sh");
        // Without the trap, the signal would kill the server.
        let limited = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" serve");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_headgate")]);
        command.env_clear().stdin(Stdio::null());
        Self::launch(command, tempfile::tempdir().expect("a folder"), Stdio::inherit())
    }

    /// Starts a server on listening sockets that it inherits, as the service manager starts it.
    pub(crate) fn start_on(sockets: [&TcpListener; 2], variables: &[(&str, &str)]) -> Self {
        let [rest, grpc] = sockets.map(|socket| OwnedFd::from(socket.try_clone().unwrap()));
        let mut command = Command::new("sh");
        // The shell becomes the server and has its process id.
        let activated = "exec 3<&0 4<&2 0</dev/null 2>log; \
                         LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" serve";
        command.args(["-c", activated, env!("CARGO_BIN_EXE_headgate")]);
        command.env_clear().envs(variables.iter().copied()).stdin(rest);
        Self::launch(command, tempfile::tempdir().expect("a folder"), grpc.into())
    }

    /// Starts a server that `launcher` runs. Its log is that of the test.
    pub(crate) fn start_by(mut launcher: Command) -> Self {
        launcher.stdin(Stdio::null());
        Self::launch(launcher, tempfile::tempdir().expect("a folder"), Stdio::inherit())
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

    /// Its working directory: commands that run there find the admin token.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A command against this server, run in its folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = headgate(arguments, &[("HEADGATE_SERVER", self.url())]);
        command.current_dir(&self.folder);
        command
    }

    /// Runs a command against this server to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command runs")
    }

    /// Runs a command with `input` on its standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the command starts");
        let mut stdin = process.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("the command reads");
        drop(stdin);
        process.wait_with_output().expect("the command ends")
    }

    /// Runs a command with `--output json` and parses its output.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        json(&self.run(&[arguments, &["--output", "json"]].concat()))
    }

    /// Its REST URL.
    pub(crate) fn url(&self) -> &str {
        let url = self.greeting.split(' ').find(|word| word.contains("://"));
        url.expect("a URL").trim_end_matches(',')
    }

    /// Its gRPC URL.
    pub(crate) fn grpc_url(&self) -> String {
        let address = self.greeting.split("gRPC on ").nth(1).expect("an address");
        format!("http://{}", address.split(' ').next().expect("an address"))
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        assert!(wait_until(Duration::from_secs(60), || !self.is_writing_log()), "it is written");
        fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Returns true if the thread that writes its log runs.
    fn is_writing_log(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten();
        let states = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("stat")));
        states.flatten().any(|state| state.contains("(log) R") || state.contains("(log) D"))
    }

    /// Sends it a signal.
    pub(crate) fn send(&self, signal: &str) {
        let pid = self.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Sends a signal and waits for the exit.
    pub(crate) fn signal(mut self, signal: &str) -> ExitStatus {
        self.stop(signal)
    }

    /// Waits for the exit.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("the server ends")
    }

    /// Like [`Self::signal`], but keeps the folder.
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
