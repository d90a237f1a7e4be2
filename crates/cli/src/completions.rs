//! `headgate completions`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, failure::Failure};

/// Print a script that completes commands and options in a shell.
///
/// For bash: source <(headgate completions bash)
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        // Into memory first: the generator panics if the reader of the output is gone.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "headgate", &mut script);
        io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}
