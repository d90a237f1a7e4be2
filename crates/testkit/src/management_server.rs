//! An xDS management server: a small program around go-control-plane.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    Skip, cache, port,
    process::{self, Process},
    skip::find_program,
    wait_until,
};

const NAME: &str = "go-control-plane";

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/management-server");

/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// A management server. It keeps its port when it is restarted.
#[derive(Debug)]
pub struct ManagementServer {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
    certificates: Option<Certificates>,
}

/// PEM files for mutual TLS.
#[derive(Debug, Clone)]
pub struct Certificates {
    /// Certificate of the server.
    pub cert: PathBuf,
    /// Private key of the server.
    pub key: PathBuf,
    /// Authority of client certificates.
    pub client_ca: PathBuf,
}

/// An event of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// `listening`, `serving`, `subscribed`, `accepted` or `refused`.
    pub event: String,
    /// The version that is served, or the last one that the client accepted.
    pub version: String,
    /// Error of the client.
    pub message: String,
    /// The subscriber.
    pub node: String,
}

// === impl ManagementServer ===

impl ManagementServer {
    /// Starts the server without a configuration, for the node `default`.
    ///
    /// # Errors
    ///
    /// [`Skip`] if Go is not installed, or if the build fails.
    pub fn start() -> Result<Self, Skip> {
        Self::launch(None)
    }

    /// Starts the server with mutual TLS.
    ///
    /// # Errors
    ///
    /// [`Skip`] if Go is not installed, or if the build fails.
    pub fn start_with_tls(certificates: Certificates) -> Result<Self, Skip> {
        Self::launch(Some(certificates))
    }

    fn launch(certificates: Option<Certificates>) -> Result<Self, Skip> {
        let program = program()?;
        let folder = tempfile::Builder::new().prefix("headgate-xds-").tempdir();
        let folder = folder.expect("a folder");
        let port = port::free_port();
        let mut server = Self { process: None, folder, port, certificates };
        server.run(&program).unwrap_or_else(|error| panic!("{NAME}: {error}"));
        Ok(server)
    }

    fn run(&mut self, program: &Path) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(self.log_file())?;
        let mut command = process::command(program);
        command.arg("-address").arg(format!("127.0.0.1:{}", self.port));
        command.arg("-snapshot").arg(self.snapshot_file());
        if let Some(Certificates { cert, key, client_ca }) = &self.certificates {
            command.arg("-cert").arg(cert).arg("-key").arg(key).arg("-client-ca").arg(client_ca);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut process = Process::start(command)?;
        let mut exited = false;
        let started = wait_until(START_TIMEOUT, || {
            exited = process.has_exited();
            exited || port::is_open(self.port)
        });
        if exited || !started {
            return Err(io::Error::other(self.log()));
        }
        self.process = Some(process);
        Ok(())
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves this version: a JSON list of `RateLimitConfig`.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn serve(&self, version: &str, resources: &str) {
        let text = format!("{{\"version\": \"{version}\", \"resources\": {resources}}}");
        let draft = self.folder.path().join("draft");
        let written =
            fs::write(&draft, text).and_then(|()| fs::rename(draft, self.snapshot_file()));
        written.expect("write the snapshot");
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Restarts it with its last configuration.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        let program = program().expect("the program that ran before");
        self.run(&program).unwrap_or_else(|error| panic!("{NAME}: {error}"));
    }

    /// The events so far.
    pub fn heard(&self) -> Vec<Heard> {
        let log = self.log();
        let objects = log.lines().filter_map(|line| serde_json::from_str(line).ok());
        let text = |object: &serde_json::Value, key: &str| {
            object[key].as_str().unwrap_or_default().to_owned()
        };
        let heard = |object: serde_json::Value| Heard {
            event: text(&object, "event"),
            version: text(&object, "version"),
            message: text(&object, "message"),
            node: text(&object, "node"),
        };
        objects.map(heard).collect()
    }

    /// Returns true if a client accepted this version.
    pub fn is_accepted(&self, version: &str) -> bool {
        self.heard().iter().any(|it| it.event == "accepted" && it.version == version)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_else(|error| error.to_string())
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn snapshot_file(&self) -> PathBuf {
        self.folder.path().join("snapshot.json")
    }
}

/// The program, built once per version of its source.
fn program() -> Result<PathBuf, Skip> {
    static PROGRAM: LazyLock<Result<PathBuf, Skip>> = LazyLock::new(build);
    PROGRAM.clone()
}

fn build() -> Result<PathBuf, Skip> {
    let skip = |reason: String| Skip::new(NAME, reason);
    let folder = cache::tool(NAME).ok_or_else(|| skip("no folder to build it in".to_owned()))?;
    let built = folder.join(format!("management-server-{:016x}", fingerprint()));
    if built.is_file() {
        return Ok(built);
    }
    let go = find_program("go").map_err(|missing| skip(missing.to_string()))?;
    fs::create_dir_all(&folder).map_err(|error| skip(error.to_string()))?;
    // Another process may build it at the same time. The first result is used.
    let draft = folder.join(format!("draft-{}", std::process::id()));
    let output = Command::new(go)
        .args(["build", "-trimpath", "-mod=readonly", "-o"])
        .arg(&draft)
        .arg(".")
        .current_dir(SOURCES)
        .env("CGO_ENABLED", "0")
        .output();
    let output = output.map_err(|error| skip(error.to_string()))?;
    if !output.status.success() {
        return Err(skip(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::rename(&draft, &built).map_err(|error| skip(error.to_string()))?;
    Ok(built)
}

/// Hash of the source.
fn fingerprint() -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let sources = [
        include_bytes!("../management-server/main.go").as_slice(),
        include_bytes!("../management-server/go.mod"),
        include_bytes!("../management-server/go.sum"),
    ];
    let bytes = sources.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}
