//! Serves a community node until it is stopped.

use std::process::ExitCode;

use headgate_app_common::{
    Program,
    program::{Failure, bind, serve_until_stopped},
};
use headgate_community_node::{App, Config, config, gossip};
use tracing::info;

const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Serves a community node; docs/guides/community-node.md describes it",
    variables: &config::VARIABLES,
    log_filter: gossip::LOG_FILTER,
};

#[tokio::main]
async fn main() -> ExitCode {
    PROGRAM.run(serve).await
}

async fn serve(variables: Vec<(String, String)>) -> Result<(), Failure> {
    let config = Config::load(variables)?;
    let scheme = config.scheme();
    let listener = bind(config.listen, config::LISTEN).await?;
    let metrics_listener = match config.metrics_listen {
        Some(listen) => Some(bind(listen, config::METRICS_LISTEN).await?),
        None => None,
    };
    let mut app = App::start(config).await?;
    if let Some(listener) = metrics_listener {
        info!("Serving /metrics on {scheme}://{}", listener.local_addr()?);
        app = app.metrics_on(listener);
    }
    let serving = |listener, shutdown| app.serve(listener, shutdown);
    serve_until_stopped(listener, scheme, serving).await
}
