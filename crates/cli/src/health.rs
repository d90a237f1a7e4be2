//! `headgate health`

use std::{process::ExitCode, time::Duration};

use clap::Args;
use serde::Deserialize;

use crate::{client::ServerOptions, failure::Failure, table};

/// Check that a server responds.
///
/// Exits with 0 if it does, and with 1 if not or not within 2 seconds. No token is sent.
#[derive(Debug, Args)]
pub(crate) struct Health {
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Deserialize)]
struct Liveness {
    status: String,
}

/// Shorter than the usual timeout of a container's health check.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Health {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.options.health(TIMEOUT)?;
        let liveness: Liveness = reply.json()?;
        let fields = [("status", liveness.status)];
        self.options.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }
}
