//! `headgate serve`

use std::{
    env,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use clap::Args;
use headgate_config::ConfigError;
use headgate_serve::{
    InheritedSockets, UnixSocket, bind,
    signals::{self, Stop},
    systemd,
};
use headgate_server::{App, BuildError, Config, Drain, Listeners, Load, Reloader, Trigger};
use headgate_telemetry::log::{self, LogControl, LogError};
use thiserror::Error;
use tokio::{net::TcpListener, runtime::Runtime};
use tracing::{info, warn};

use crate::environment::{IgnoredVariable, ignored_variables, variables};

/// Run the server: REST and gRPC.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Configuration file. Without one: REST on 127.0.0.1:8080, gRPC on 50051, rules in ./data,
    /// counters in memory.
    #[arg(long, env = "CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// An error at the start of the server.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(
        "cannot listen on {address}: {cause}\nSet another {key}, or HEADGATE__{}",
        key.to_ascii_uppercase().replace('.', "__")
    )]
    Listen { address: String, key: &'static str, cause: io::Error },
    #[error("socket {} of the service manager (LISTEN_FDS): {cause}; pass TCP sockets", .index + 1)]
    Inherited { index: usize, cause: io::Error },
    #[error(
        "the service manager passed {0} sockets (LISTEN_FDS): expected one for REST and one for \
         gRPC, in this order or with the names rest and grpc"
    )]
    TooManySockets(usize),
    #[error(
        "the socket of the service manager is reachable from other machines ({0}), but server.host \
         is a loopback address: set server.host to the socket's address"
    )]
    Exposed(SocketAddr),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long threads that still read files are waited for at the end.
const RUNTIME_SHUTDOWN: Duration = Duration::from_secs(1);

impl Serve {
    pub(crate) fn run(self) -> Result<ExitCode, ServeError> {
        // Before there are threads: it changes the environment.
        let inherited = InheritedSockets::take_over();
        let file = self.config;
        let config = Config::load(file.as_deref(), variables())?;
        let load: Arc<Load> = Arc::new(move || Config::load_again(file.as_deref(), variables()));
        let log = log::start(&config.observability.log, env::var("RUST_LOG").ok().as_deref())?;
        let _flush = log.flush_on_drop();
        for IgnoredVariable { name, suggestion } in ignored_variables(&config) {
            let suggestion = suggestion.as_deref();
            warn!(variable = name, suggestion, "ignoring unknown variable {name}");
        }
        let runtime = Runtime::new()?;
        let drain = runtime.block_on(serve(&config, inherited, load, log));
        // A file that cannot be read, on a disk that hangs, must not keep the process.
        runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
        match drain? {
            Drain::Complete => Ok(ExitCode::SUCCESS),
            Drain::CutOff(_) => Ok(ExitCode::FAILURE),
        }
    }
}

async fn serve(
    config: &Config,
    inherited: InheritedSockets,
    load: Arc<Load>,
    log: LogControl,
) -> Result<Drain, ServeError> {
    let stop = Stop::catch()?;
    let reloader = Arc::new(OnceLock::new());
    let hung_up = Arc::clone(&reloader);
    tokio::spawn(signals::on_hangup(move || on_sighup(hung_up.get()))?);
    // Bind first: a second server on the same ports must touch neither the data directory nor the
    // database. Early connections wait in the backlog until the server is built.
    let listeners = listen(config, inherited)?;
    let app = App::build_reloadable(config, load, Some(log)).await?;
    // It was not set before.
    let _ = reloader.set(app.reloader());
    announce(config, &app, &listeners)?;
    let liveness = app.liveness();
    tokio::spawn(systemd::watchdog(move || {
        let liveness = liveness.clone();
        async move { liveness.check().await }
    }));
    systemd::ready();
    let serving = |shutdown| {
        let shutdown = async move {
            shutdown.await;
            systemd::stopping();
        };
        Box::pin(app.serve(listeners, shutdown))
    };
    let drain = signals::serve_until(stop, serving).await;
    Ok(drain.unwrap_or(Drain::CutOff(0)))
}

/// Reloads the configuration on SIGHUP, which must not end the process.
fn on_sighup(reloader: Option<&Arc<Reloader>>) {
    let Some(reloader) = reloader.cloned() else {
        warn!("SIGHUP: nothing to reload while the server starts");
        return;
    };
    info!("SIGHUP: reloading the configuration");
    tokio::spawn(async move {
        systemd::reloading();
        // The reloader logs the result. Several reloads take turns.
        let _ = reloader.reload(Trigger::Signal).await;
        systemd::ready();
    });
}

/// Names of inherited sockets.
const SOCKET_NAMES: [&str; 2] = ["rest", "grpc"];

/// Takes over the sockets of the service manager, and opens those that it did not pass.
fn listen(config: &Config, mut inherited: InheritedSockets) -> Result<Listeners, ServeError> {
    if inherited.count() > SOCKET_NAMES.len() {
        return Err(ServeError::TooManySockets(inherited.count()));
    }
    let reuse_port = config.server.reuse_port;
    let mut open = |index, address: SocketAddr, key| {
        let socket = inherited.take(&SOCKET_NAMES, index);
        match socket.map_err(|cause| ServeError::Inherited { index, cause })? {
            Some(socket) => accepted(socket, address),
            None => bind(address, reuse_port).map_err(|cause| ServeError::Listen {
                address: address.to_string(),
                key,
                cause,
            }),
        }
    };
    Ok(Listeners {
        rest: open(0, config.server.address(), "server.port")?,
        grpc: open(1, config.server.grpc_address(), "server.grpc_port")?,
        rest_socket: bind_socket(
            config,
            config.server.unix_socket.as_deref(),
            "server.unix_socket",
        )?,
        grpc_socket: bind_socket(
            config,
            config.server.grpc_unix_socket.as_deref(),
            "server.grpc_unix_socket",
        )?,
    })
}

/// Accepts an inherited socket that is as private as the configured address: whether callers must
/// authenticate was decided by the latter.
fn accepted(socket: TcpListener, configured: SocketAddr) -> Result<TcpListener, ServeError> {
    let address = socket.local_addr()?;
    if configured.ip().is_loopback() && !address.ip().to_canonical().is_loopback() {
        return Err(ServeError::Exposed(address));
    }
    info!(%address, "listening on a socket of the service manager");
    Ok(socket)
}

/// Listens on a Unix domain socket, if there is a path.
fn bind_socket(
    config: &Config,
    path: Option<&Path>,
    key: &'static str,
) -> Result<Option<UnixSocket>, ServeError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let bound = UnixSocket::bind(path, config.server.unix_socket_mode.get());
    let address = || path.display().to_string();
    bound.map(Some).map_err(|cause| ServeError::Listen { address: address(), key, cause })
}

/// Prints the addresses and a newly generated admin token.
fn announce(config: &Config, app: &App, listeners: &Listeners) -> io::Result<()> {
    let (rule, mut out) = (&config.ratelimit, io::stdout().lock());
    let url = format!("{}://{}", config.server.tls.scheme(), listeners.rest.local_addr()?);
    let grpc_tls = if config.server.grpc_tls().is_enabled() { " (TLS)" } else { "" };
    writeln!(
        out,
        "headgate {} listening on {url}, gRPC on {}{grpc_tls} (store: {}; default rule: {} per {} s)",
        env!("CARGO_PKG_VERSION"),
        listeners.grpc.local_addr()?,
        app.store(),
        rule.default_limit,
        rule.default_window_seconds,
    )?;
    if config.console.enabled {
        writeln!(out, "console: {url}/console")?;
    }
    if let Some(token) = app.new_admin_token() {
        writeln!(
            out,
            "admin token (printed only once, stored in {}): {}",
            token.path().display(),
            token.expose(),
        )?;
    }
    Ok(())
}
