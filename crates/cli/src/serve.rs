//! `headgate serve`

use std::{
    env,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use clap::Args;
use headgate_config::ConfigError;
use headgate_serve::signals::{self, Stop};
use headgate_server::{App, BuildError, Config, Drain, Listeners, Reload};
use headgate_telemetry::log::{self, LogError};
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
    Listen { address: SocketAddr, key: &'static str, cause: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Serve {
    pub(crate) fn run(self) -> Result<ExitCode, ServeError> {
        let config = Config::load(self.config.as_deref(), variables())?;
        log::start(&config.observability.log, env::var("RUST_LOG").ok().as_deref())?;
        for IgnoredVariable { name, suggestion } in ignored_variables(&config) {
            let suggestion = suggestion.as_deref();
            warn!(variable = name, suggestion, "ignoring unknown variable {name}");
        }
        match Runtime::new()?.block_on(serve(&config))? {
            Drain::Complete => Ok(ExitCode::SUCCESS),
            Drain::CutOff(_) => Ok(ExitCode::FAILURE),
        }
    }
}

async fn serve(config: &Config) -> Result<Drain, ServeError> {
    let stop = Stop::catch()?;
    let reload = Arc::new(OnceLock::new());
    let reloading = Arc::clone(&reload);
    tokio::spawn(signals::on_hangup(move || on_sighup(reloading.get()))?);
    // Bind first: a second server on the same ports must touch neither the data directory nor the
    // database. Early connections wait in the backlog until the server is built.
    let listeners = Listeners {
        rest: listen(config.server.address(), "server.port").await?,
        grpc: listen(config.server.grpc_address(), "server.grpc_port").await?,
    };
    let app = App::build(config).await?;
    // It was not set before.
    let _ = reload.set(app.reload());
    announce(config, &app, &listeners)?;
    let drain = signals::serve_until(stop, |shutdown| app.serve(listeners, shutdown)).await;
    Ok(drain.unwrap_or(Drain::CutOff(0)))
}

/// Reloads Envoy files on SIGHUP, which must not end the process.
fn on_sighup(reload: Option<&Reload>) {
    if reload.is_some_and(Reload::now) {
        info!("SIGHUP: reloading Envoy files");
    }
    warn!(
        "SIGHUP does not reload the configuration; restart the server to apply changes. \
         Rules, quotas and Envoy files are reloaded when they change"
    );
}

async fn listen(address: SocketAddr, key: &'static str) -> Result<TcpListener, ServeError> {
    let listening = TcpListener::bind(address).await;
    listening.map_err(|cause| ServeError::Listen { address, key, cause })
}

/// Prints the addresses and a newly generated admin token.
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
            "admin token (printed only once, stored in {}): {}",
            token.path().display(),
            token.expose(),
        )?;
    }
    Ok(())
}
