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
    App, BuildError, Config, ConfigError, Drain,
    telemetry::{self, TelemetryError},
};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

/// Serve decisions over HTTP until interrupted.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration file. Without one: 127.0.0.1:8080, in memory.
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
        "cannot listen on {address}: {cause}\nSet another server.port, or HEADGATE__SERVER__PORT"
    )]
    Listen { address: SocketAddr, cause: io::Error },
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
    let app = App::build(config)?;
    let shutdown = interrupted()?;
    let address = config.server.address();
    let listener =
        TcpListener::bind(address).await.map_err(|cause| ServeError::Listen { address, cause })?;
    let rule = &config.ratelimit;
    writeln!(
        io::stdout(),
        "headgate {} listening on http://{} (store: {}; default rule: {} per {} s)",
        env!("CARGO_PKG_VERSION"),
        listener.local_addr()?,
        app.store(),
        rule.default_limit,
        rule.default_window_seconds,
    )?;
    Ok(app.serve(listener, shutdown).await)
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

/// The environment. A value that is no text cannot be meant for us, but is not overlooked.
fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    env::vars_os().map(move |(name, value)| (text(name), text(value)))
}
