//! Serves posts until it is stopped.

use std::{process::ExitCode, sync::Arc};

use headgate::SystemClock;
use headgate_app_common::{
    Program,
    program::{Failure, bind, serve_until_stopped},
};
use headgate_posts::{App, Config, config};

const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Serves a posting API with cooldowns; docs/guides/cooldowns.md describes it",
    variables: &config::VARIABLES,
    log_filter: "info",
};

#[tokio::main]
async fn main() -> ExitCode {
    PROGRAM.run(serve).await
}

async fn serve(variables: Vec<(String, String)>) -> Result<(), Failure> {
    let config = Config::load(variables)?;
    let listener = bind(config.listen, config::LISTEN).await?;
    let app = App::build(&config, Arc::new(SystemClock::new())).await?;
    let serving = |listener, shutdown| app.serve(listener, shutdown);
    serve_until_stopped(listener, config.scheme(), serving).await
}
