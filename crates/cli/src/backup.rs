//! `headgate backup` and `headgate restore`

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use headgate_persistence::{CopyError, DatabaseConfig, DatabaseCopy};
use headgate_server::Config;
use serde_json::json;
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::{environment::variables, failure::Failure, output::Output};

/// Copy the SQLite database to a new file, while servers use it.
///
/// The copy has everything that was acknowledged before the command started. It is verified, and
/// readable by its owner only. An existing file is never overwritten.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to create.
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// Replace the SQLite database by a backup. Stop the servers on it first.
///
/// The backup is verified before anything changes. The previous database stays beside the new one.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup.
    file: PathBuf,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
struct Options {
    /// Configuration file of the server, which names the database.
    #[arg(long, env = "CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// A backup or restore that failed.
#[derive(Debug, Error)]
#[error(transparent)]
pub(crate) struct BackupError(#[from] CopyError);

impl Backup {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let database = self.options.database()?;
        let copied = Runtime::new()?.block_on(database.back_up(&self.file));
        let copy = copied.map_err(BackupError)?;
        print("backed up to", &self.file, &copy, self.options.output)
    }
}

impl Restore {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let database = self.options.database()?;
        let restored = Runtime::new()?.block_on(database.restore(&self.file));
        let copy = restored.map_err(BackupError)?;
        print("restored", &self.file, &copy, self.options.output)
    }
}

impl Options {
    /// Returns the database that `headgate serve` would use.
    fn database(&self) -> Result<DatabaseConfig, Failure> {
        let config = Config::load(self.config.as_deref(), variables())?;
        let database = config.database.target(&config.server.data_dir);
        // Loading has checked it.
        Ok(database.map_err(|problem| headgate_config::ConfigError::Problems(vec![problem]))?)
    }
}

fn print(
    done: &str,
    file: &Path,
    copy: &DatabaseCopy,
    output: Output,
) -> Result<ExitCode, Failure> {
    let DatabaseCopy { bytes, schema, replaced, .. } = copy;
    let version = schema.applied;
    let mut out = io::stdout().lock();
    match output {
        Output::Table => {
            let file = file.display();
            writeln!(out, "{done} {file}: {bytes} bytes, schema version {version}, verified")?;
            if let Some(replaced) = replaced {
                writeln!(out, "the previous database is now {}", replaced.display())?;
            }
        }
        Output::Json => {
            let printed = json!({
                "file": file, "bytes": bytes, "schema_version": version, "replaced": replaced,
            });
            writeln!(out, "{printed}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
