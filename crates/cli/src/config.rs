//! `headgate config`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use headgate_config::ConfigError;
use serde_json::json;

use crate::{
    environment::{IgnoredVariable, ignored_variables, variables},
    failure::Failure,
    output::Output,
};

mod reload;

/// Validate, print and reload configurations.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Validate a file together with the environment, and report every problem.
    Check {
        /// Configuration file.
        file: PathBuf,
        /// Output format.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    /// Print the effective configuration as YAML, with secrets masked.
    Print {
        /// Configuration file; the environment and the defaults apply without one, too.
        #[arg(long, env = "CONFIG_PATH", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Output format.
        #[arg(long, value_enum, default_value_t = Output::Table)]
        output: Output,
    },
    Reload(reload::Reload),
}

impl Config {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Command::Check { file, output } => check(&file, output),
            Command::Print { config, output } => print(config.as_deref(), output),
            Command::Reload(reload) => reload.run(),
        }
    }
}

fn check(file: &Path, output: Output) -> Result<ExitCode, Failure> {
    let checked = load(Some(file));
    // Envoy files are checked only if present: this may not be the machine that serves.
    let error = checked.and_then(|config| config.envoy.check_files()).err();
    match (output, error) {
        (Output::Table, Some(error)) => return Err(error.into()),
        (Output::Table, None) => writeln!(io::stdout(), "{}: ok", file.display())?,
        (Output::Json, Some(error)) => {
            let problems = problems(&error);
            writeln!(io::stdout(), "{}", json!({ "valid": false, "problems": problems }))?;
            return Ok(ExitCode::FAILURE);
        }
        (Output::Json, None) => {
            writeln!(io::stdout(), "{}", json!({ "valid": true, "problems": [] }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Loads a configuration and warns about variables that it ignores.
fn load(file: Option<&Path>) -> Result<headgate_server::Config, ConfigError> {
    let config = headgate_server::Config::load(file, variables())?;
    for IgnoredVariable { name, suggestion } in ignored_variables(&config) {
        let hint = suggestion.map_or_else(String::new, |other| format!("; did you mean {other}?"));
        // A warning is lost if standard error is gone.
        let _ = writeln!(io::stderr(), "headgate: warning: unknown variable {name}{hint}");
    }
    Ok(config)
}

pub(crate) fn problems(error: &ConfigError) -> Vec<String> {
    match error {
        ConfigError::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        other => vec![other.to_string()],
    }
}

fn print(file: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let config = load(file)?;
    let printed = config.printed();
    let mut out = io::stdout().lock();
    match output {
        Output::Table => write!(out, "{printed}")?,
        Output::Json => {
            serde_json::to_writer(&mut out, &printed).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
