//! Serves posts until it is interrupted.

use std::{
    env,
    error::Error,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
};

use headgate::SystemClock;
use headgate_posts::{App, Config};
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
            let _ = writeln!(io::stderr(), "headgate-posts: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    lines.with_ansi(io::stderr().is_terminal()).init();

    // Our variables are text: one that is not is none of ours.
    let variables = env::vars_os();
    let variables = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(variables)?;
    let app = App::build(&config, Arc::new(SystemClock::new())).await?;

    let stop = Stop::catch()?;
    tokio::spawn(signals::on_hangup(|| {
        warn!("SIGHUP does not reload the environment: restart the service to apply changes");
    })?);
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.map_err(|error| {
        format!("cannot listen on {}: {error}; set POSTS_LISTEN", config.listen)
    })?;
    info!("Listening on http://{}", listener.local_addr()?);
    let served = signals::serve_until(stop, |shutdown| app.serve(listener, shutdown)).await;
    Ok(served.ok_or("a second signal came while requests were in flight")??)
}
