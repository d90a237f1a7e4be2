use std::io;

use headgate_config::ConfigError;
use thiserror::Error;

use crate::{client::ClientError, import::ImportError, rules::FileError, serve::ServeError};

/// Why a command did not do what it says.
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
    #[error("cannot print the answer: {0}")]
    Print(#[from] io::Error),
    #[error("nothing was changed")]
    Declined,
}

impl Failure {
    /// Whether whoever reads the output has seen enough, as `head` has.
    pub(crate) fn is_enough(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
