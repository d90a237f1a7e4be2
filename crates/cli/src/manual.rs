//! `headgate manual`

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory};

use crate::{Cli, failure::Failure};

/// Write the manual into a folder: headgate.1, and a page for each command.
#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// The folder; it is created if it is missing.
    folder: PathBuf,
}

impl Manual {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        fs::create_dir_all(&self.folder)?;
        clap_mangen::generate_to(Cli::command(), &self.folder)?;
        Ok(ExitCode::SUCCESS)
    }
}
