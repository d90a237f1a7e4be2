//! Whole servers: ours, a rival's, and handlers that do nothing.

use std::{
    env, fmt, fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use headgate_testkit::{free_port, wait_until};

use super::empty;
use crate::{guard::Entrant, machine};

/// Protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    Rest,
    Grpc,
}

/// A server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    EmptyAxum,
    EmptyTonic {
        threads: usize,
    },
    Headgate(Surface),
    Throttlecrab(Surface),
    /// An empty axum handler behind a layer.
    Guarded(Entrant),
}

/// Placement of a server and its counters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// On a core of its own, with the load on the other, counting in memory.
    OwnCore,
    /// The same, over TLS with this certificate.
    OwnCoreOverTls { cert: &'a Path, key: &'a Path },
    /// On one core together with the Redis at this address, with the load on the other.
    OwnCoreWith { redis: &'a str },
    /// The same, with a tenth of a limit leased for 200 ms.
    OwnCoreLeasing { redis: &'a str },
    /// On all cores, together with its load, the Redis and maybe the PostgreSQL with these
    /// addresses.
    Beside { redis: &'a str, postgres: Option<&'a str> },
}

/// A server that answers.
pub(crate) struct Running {
    pub(super) candidate: Candidate,
    pub(crate) port: u16,
    /// Scheme of its URL.
    pub(super) scheme: &'static str,
    /// Cores of the load generator, as `taskset` names them.
    pub(super) load_cores: &'static str,
    process: Child,
    folder: PathBuf,
}

/// A limit that no load reaches: one per microsecond.
const ENOUGH: &str = "60000000";

/// The request that is sent.
pub(super) struct Question {
    pub(super) path: &'static str,
    pub(super) body: Vec<u8>,
}

impl Candidate {
    pub(super) fn of(surface: Surface) -> Vec<Self> {
        let empty = match surface {
            Surface::Rest => vec![Self::EmptyAxum],
            Surface::Grpc => [1, 2].map(|threads| Self::EmptyTonic { threads }).to_vec(),
        };
        [empty, vec![Self::Headgate(surface), Self::Throttlecrab(surface)]].concat()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::EmptyAxum => "empty axum",
            Self::EmptyTonic { threads: 1 } => "empty tonic, one thread",
            Self::EmptyTonic { .. } => "empty tonic, two threads",
            Self::Headgate(_) => "headgate",
            Self::Throttlecrab(_) => "throttlecrab-server",
            Self::Guarded(entrant) => entrant.name(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::EmptyAxum | Self::EmptyTonic { .. })
    }

    pub(super) const fn is_ours(&self) -> bool {
        matches!(self, Self::Headgate(_))
    }

    pub(super) const fn is_rival(&self) -> bool {
        matches!(self, Self::Throttlecrab(_))
    }

    pub(super) const fn surface(self) -> Surface {
        match self {
            Self::EmptyAxum | Self::Guarded(_) => Surface::Rest,
            Self::EmptyTonic { .. } => Surface::Grpc,
            Self::Headgate(surface) | Self::Throttlecrab(surface) => surface,
        }
    }

    /// Returns true if it speaks the protocol of this place: the rival has no TLS.
    pub(super) const fn can_run_at(&self, place: Place<'_>) -> bool {
        !(self.is_rival() && matches!(place, Place::OwnCoreOverTls { .. }))
    }

    /// Starts it; `None` if it is not installed.
    pub(crate) fn start(self, place: Place<'_>) -> Option<Running> {
        let port = free_port();
        let folder = env::temp_dir().join(format!("headgate-bench-{port}"));
        fs::create_dir_all(&folder).expect("a folder");
        let (cores, load_cores) = match place {
            Place::OwnCore
            | Place::OwnCoreOverTls { .. }
            | Place::OwnCoreWith { .. }
            | Place::OwnCoreLeasing { .. } => ("0", "1"),
            Place::Beside { .. } => ("0,1", "0,1"),
        };
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", cores]).args(self.command(port)?);
        command
            .env("HEADGATE__SERVER__DATA_DIR", &folder)
            .env("HEADGATE__RATELIMIT__DEFAULT_LIMIT", ENOUGH)
            .env("HEADGATE__RATE_LIMITER__TOKEN_BUCKET__CAPACITY", ENOUGH)
            .env("HEADGATE__RATE_LIMITER__TOKEN_BUCKET__REFILL_RATE", "1000000");
        let (redis, postgres) = match place {
            Place::OwnCore | Place::OwnCoreOverTls { .. } => (None, None),
            Place::OwnCoreWith { redis } | Place::OwnCoreLeasing { redis } => (Some(redis), None),
            Place::Beside { redis, postgres } => (Some(redis), postgres),
        };
        if let Place::OwnCoreLeasing { .. } = place {
            command.env("HEADGATE__RATELIMIT__LEASE", "10%/200ms");
        }
        command.envs(redis.map(|url| ("HEADGATE__REDIS__URL", url)));
        command.envs(postgres.map(|url| ("HEADGATE__DATABASE__URL", url)));
        command.env(self.port_variable(), port.to_string()).env(self.other_port_variable(), "0");
        let scheme = match place {
            Place::OwnCoreOverTls { cert, key } => {
                let (cert_file, key_file) = (cert.display(), key.display());
                let ours = format!("[{{cert_file: {cert_file}, key_file: {key_file}}}]");
                command.env("HEADGATE__SERVER__TLS__CERTIFICATES", ours);
                command.env(empty::CERT, cert).env(empty::KEY, key);
                "https"
            }
            _ => "http",
        };
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let running = Running { candidate: self, port, scheme, load_cores, process, folder };
        running.is_up().then_some(running)
    }

    fn command(self, port: u16) -> Option<Vec<String>> {
        let port = port.to_string();
        let program = match self {
            Self::EmptyAxum | Self::EmptyTonic { .. } | Self::Guarded(_) => {
                env::current_exe().ok()?
            }
            Self::Headgate(_) => PathBuf::from(env::var_os("HEADGATE_BIN")?),
            Self::Throttlecrab(_) => PathBuf::from(env::var_os("THROTTLECRAB_SERVER_BIN")?),
        };
        let program = program.to_str()?.to_owned();
        let arguments: Vec<String> = match self {
            Self::EmptyAxum => [empty::ARGUMENT, "axum", &port].map(str::to_owned).to_vec(),
            Self::Guarded(entrant) => {
                [empty::ARGUMENT, entrant.name(), &port].map(str::to_owned).to_vec()
            }
            Self::EmptyTonic { threads } => {
                let threads = threads.to_string();
                [empty::ARGUMENT, "tonic", &port, &threads].map(str::to_owned).to_vec()
            }
            Self::Headgate(_) => vec!["serve".to_owned()],
            Self::Throttlecrab(surface) => {
                let [on, at] = match surface {
                    Surface::Rest => ["--http", "--http-port"],
                    Surface::Grpc => ["--grpc", "--grpc-port"],
                };
                [on, at, &port, "--log-level", "error"].map(str::to_owned).to_vec()
            }
        };
        Some([vec![program], arguments].concat())
    }

    const fn port_variable(self) -> &'static str {
        match self.surface() {
            Surface::Rest => "HEADGATE__SERVER__PORT",
            Surface::Grpc => "HEADGATE__SERVER__GRPC_PORT",
        }
    }

    const fn other_port_variable(self) -> &'static str {
        match self.surface() {
            Surface::Rest => "HEADGATE__SERVER__GRPC_PORT",
            Surface::Grpc => "HEADGATE__SERVER__PORT",
        }
    }

    pub(super) fn question(self) -> Question {
        match self {
            Self::EmptyAxum | Self::Guarded(_) | Self::Headgate(Surface::Rest) => Question {
                path: "/api/v1/ratelimit/check",
                body: br#"{"scope":"user","identifier":"user-001"}"#.to_vec(),
            },
            Self::Throttlecrab(Surface::Rest) => Question {
                path: "/throttle",
                body: br#"{"key":"user-001","max_burst":2000000000,"count_per_period":2000000000,"period":60}"#.to_vec(),
            },
            Self::EmptyTonic { .. } | Self::Headgate(Surface::Grpc) => Question {
                path: "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit",
                // rule_id = 1, subject = 2
                body: message(b"\x0a\x04user\x12\x08user-001"),
            },
            Self::Throttlecrab(Surface::Grpc) => Question {
                path: "/throttlecrab.RateLimiter/Throttle",
                // key = 1, max_burst = 2, count_per_period = 3, period = 4, quantity = 5
                body: message(b"\x0a\x08user-001\x10\x80\xa8\xd6\xb9\x07\x18\x80\xa8\xd6\xb9\x07\x20\x3c\x28\x01"),
            },
        }
    }
}

/// Frames a gRPC message: uncompressed flag, length, message.
fn message(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&[0], &length[..], bytes].concat()
}

// === impl Running ===

impl Running {
    /// Waits for its port to open.
    fn is_up(&self) -> bool {
        let answers = || TcpStream::connect(("127.0.0.1", self.port)).is_ok();
        wait_until(Duration::from_secs(10), answers)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// Returns the administrator's token, which is generated after the port is open.
    pub(crate) fn admin_token(&self) -> String {
        let file = self.folder.join("admin-token");
        wait_until(Duration::from_secs(10), || file.exists());
        fs::read_to_string(file).expect("an admin token").trim().to_owned()
    }

    /// Returns the CPU seconds used.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        machine::cpu_seconds(self.process.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rest => "REST",
            Self::Grpc => "gRPC",
        })
    }
}
