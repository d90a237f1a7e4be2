//! `headgate serve`

use std::{
    env,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
};

use clap::Args;
use headgate_server::{
    App, BuildError, Config, ConfigError, Drain, Listeners,
    telemetry::{self, TelemetryError},
};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::environment::variables;

/// Serve decisions over HTTP and gRPC until interrupted.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration file. Without one: REST on 127.0.0.1:8080, gRPC on 50051, everything in ./data and in memory.
    #[arg(long, env = "CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Why nothing is served.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error(
        "cannot listen on {address}: {cause}\nSet another {key}, or HEADGATE__{}",
        key.to_ascii_uppercase().replace('.', "__")
    )]
    Listen { address: SocketAddr, key: &'static str, cause: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Serve {
    pub(crate) fn run(self) -> Result<ExitCode, ServeError> {
        let config = Config::load(self.config.as_deref(), variables())?;
        telemetry::start(&config.observability.log, env::var("RUST_LOG").ok().as_deref())?;
        match Runtime::new()?.block_on(serve(&config))? {
            Drain::Complete => Ok(ExitCode::SUCCESS),
            Drain::CutOff(_) => Ok(ExitCode::FAILURE),
        }
    }
}

async fn serve(config: &Config) -> Result<Drain, ServeError> {
    let shutdown = interrupted()?;
    // Before anything else: a second server on the same ports must touch neither the data directory nor
    // the database. Whoever connects already is answered as soon as the server is built.
    let listeners = Listeners {
        rest: listen(config.server.address(), "server.port").await?,
        grpc: listen(config.server.grpc_address(), "server.grpc_port").await?,
    };
    let app = App::build(config).await?;
    announce(config, &app, &listeners)?;
    Ok(app.serve(listeners, shutdown).await)
}

async fn listen(address: SocketAddr, key: &'static str) -> Result<TcpListener, ServeError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|cause| ServeError::Listen { address, key, cause })
}

/// Says where the server is, and what nobody can know yet.
fn announce(config: &Config, app: &App, listeners: &Listeners) -> io::Result<()> {
    let (rule, mut out) = (&config.ratelimit, io::stdout().lock());
    writeln!(
        out,
        "headgate {} listening on http://{}, gRPC on {} (store: {}; default rule: {} per {} s)",
        env!("CARGO_PKG_VERSION"),
        listeners.rest.local_addr()?,
        listeners.grpc.local_addr()?,
        app.store(),
        rule.default_limit,
        rule.default_window_seconds,
    )?;
    if config.console.enabled {
        writeln!(out, "console: http://{}/console", listeners.rest.local_addr()?)?;
    }
    if let Some(token) = app.new_admin_token() {
        writeln!(
            out,
            "admin token, shown this once and kept in {}: {}",
            token.path().display(),
            token.expose(),
        )?;
    }
    Ok(())
}

/// Ready when somebody asks the process to end.
fn interrupted() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
