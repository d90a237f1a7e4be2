use std::io;

use headgate_config::ConfigError;
use headgate_rules_file::FileError;
use thiserror::Error;

use crate::{backup::BackupError, client::ClientError, import::ImportError, serve::ServeError};

/// An error of a command.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("cannot write the output: {0}")]
    Print(#[from] io::Error),
    #[error("aborted; nothing was changed")]
    Aborted,
    #[error("nothing to change: pass at least one option (see `{0} --help`)")]
    NoChanges(&'static str),
}

impl Failure {
    /// Whether the reader of the output is gone, as `head` is after its last line.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
