//! A program that is configured by environment variables and serves until it is stopped.

use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt::Write as _,
    future::Future,
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    process::ExitCode,
};

use clap::Command;
use headgate_serve::signals::{self, Shutdown, Stop};
use tokio::net::TcpListener;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

/// Name of a variable, and its line of help.
pub type Variable = (&'static str, &'static str);

/// Any failure of a program.
pub type Failure = Box<dyn Error>;

/// A program, as its `--help` describes it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Name of the executable.
    pub name: &'static str,
    /// Version.
    pub version: &'static str,
    /// First line of help.
    pub about: &'static str,
    /// All variables.
    pub variables: &'static [Variable],
    /// Log filter unless `RUST_LOG` is set.
    pub log_filter: &'static str,
}

// === impl Program ===

impl Program {
    /// Parses the command line, starts logging, and calls `serve` with the environment. Prints its
    /// error, if any.
    pub async fn run<F>(self, serve: impl FnOnce(Vec<(String, String)>) -> F) -> ExitCode
    where
        F: Future<Output = Result<(), Failure>>,
    {
        if let Err(usage) = self.command().try_get_matches() {
            let _ = usage.print();
            return if usage.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
        self.start_logging();
        match serve(variables()).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // If standard error is closed, there is nowhere to report it.
                let _ = writeln!(io::stderr(), "{}: {error}", self.name);
                ExitCode::FAILURE
            }
        }
    }

    fn command(&self) -> Command {
        let width = self.variables.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let mut variables = "Environment variables:\n".to_owned();
        for (name, help) in self.variables {
            let _ = writeln!(variables, "  {name:width$}  {help}");
        }
        Command::new(self.name).version(self.version).about(self.about).after_help(variables)
    }

    fn start_logging(&self) {
        let filter =
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(self.log_filter));
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
        lines.with_ansi(io::stderr().is_terminal()).init();
    }
}

/// Variables whose names and values are text; others are not ours.
fn variables() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// Listens on `address`, which `variable` configures. A program binds before it creates or migrates
/// its data, so that one that is started twice by mistake changes nothing.
pub async fn bind(address: SocketAddr, variable: &str) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    Ok(bound.map_err(|error| format!("cannot listen on {address}: {error}; set {variable}"))?)
}

/// Serves on `listener` until SIGTERM or SIGINT. `serve` then drains; a second signal stops it.
/// `scheme` is that of the logged URL.
pub async fn serve_until_stopped<F>(
    listener: TcpListener,
    scheme: &str,
    serve: impl FnOnce(TcpListener, Shutdown) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = io::Result<()>>,
{
    let stop = Stop::catch()?;
    tokio::spawn(signals::on_hangup(|| {
        warn!(
            "SIGHUP does not reload the environment; restart to apply changes. Certificates are \
             reloaded when their files change"
        );
    })?);
    info!("Listening on {scheme}://{}", listener.local_addr()?);
    let served = signals::serve_until(stop, |shutdown| serve(listener, shutdown)).await;
    Ok(served.ok_or("stopped by a second signal with requests in flight")??)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "app",
        version: "1.2.3",
        about: "Does things",
        variables: &[("APP_A", "First."), ("APP_LONG", "Second.")],
        log_filter: "info",
    };

    #[test]
    fn help_lists_the_variables() {
        let help = PROGRAM.command().render_help().to_string();
        assert!(help.starts_with("Does things\n"), "{help}");
        assert!(help.contains("  APP_A     First.\n  APP_LONG  Second."), "{help}");
        assert!(help.contains("--version"), "{help}");
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for argument in ["--verbose", "serve"] {
            let error = PROGRAM.command().try_get_matches_from(["app", argument]).unwrap_err();
            assert!(error.use_stderr(), "{error}");
        }
    }
}
