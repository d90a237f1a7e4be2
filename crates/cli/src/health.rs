//! `headgate health`

use std::{process::ExitCode, time::Duration};

use clap::Args;
use serde::Deserialize;

use crate::{client::Asking, failure::Failure, table};

/// Ask a server whether it answers.
///
/// Exits with 0 when it does, and with 1 when it does not within 2 seconds. No token is sent.
#[derive(Debug, Args)]
pub(crate) struct Health {
    #[command(flatten)]
    asking: Asking,
}

#[derive(Deserialize)]
struct Liveness {
    status: String,
}

/// Less than whoever watches a container waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

impl Health {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let reply = self.asking.health(PATIENCE)?;
        let liveness: Liveness = reply.json()?;
        let fields = [("status", liveness.status)];
        self.asking.output.print(&reply, |out| table::write_fields(out, &fields))?;
        Ok(ExitCode::SUCCESS)
    }
}
