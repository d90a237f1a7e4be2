//! Serves a community node until it is interrupted.

use std::{
    env,
    error::Error,
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    process::ExitCode,
};

use headgate_community_node::{App, Config, log_filter::LOG_FILTER};
use headgate_serve::signals::{self, Stop};
use tokio::net::TcpListener;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if standard error is gone too.
            let _ = writeln!(io::stderr(), "headgate-community-node: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    lines.with_ansi(io::stderr().is_terminal()).init();

    // Our variables are text: one that is not is none of ours.
    let variables = env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(variables)?;
    let (listen, metrics_listen) = (config.listen, config.metrics_listen);
    let mut app = App::start(config).await?;
    if let Some(listen) = metrics_listen {
        app = app.metrics_on(bind(listen, "CN_METRICS_LISTEN").await?);
        info!("Answering /metrics on http://{listen}");
    }

    let stop = Stop::catch()?;
    tokio::spawn(signals::on_hangup(|| {
        warn!("SIGHUP does not reload the environment: restart the node; documents are reloaded");
    })?);
    let listener = bind(listen, "CN_LISTEN").await?;
    info!("Listening on http://{}", listener.local_addr()?);
    let served = signals::serve_until(stop, |shutdown| app.serve(listener, shutdown)).await;
    Ok(served.ok_or("a second signal came while requests were in flight")??)
}

async fn bind(listen: SocketAddr, variable: &str) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(listen).await;
    bound.map_err(|error| format!("cannot listen on {listen}: {error}; set {variable}"))
}
