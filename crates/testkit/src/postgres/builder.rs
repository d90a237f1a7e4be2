use std::sync::Mutex;

use super::{
    Postgres,
    account::Account,
    launch::{Failure, Launch},
    programs::Programs,
};
use crate::Skip;

/// Each attempt uses another port, which only another process can take in between.
const ATTEMPTS: usize = 10;

/// Options of a [`Postgres`] server.
#[derive(Debug, Clone, Default)]
pub struct PostgresBuilder {
    password: Option<String>,
    durable: bool,
}

// === impl PostgresBuilder ===

impl PostgresBuilder {
    /// Requires this password (SCRAM). It is used in the URL without escaping.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Syncs every commit to disk, as a production server does.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Creates the data folder, starts the server, and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `initdb`, `postgres` or `psql` is not installed, or if we are root and there is
    /// no user `postgres` to run the server.
    ///
    /// # Panics
    ///
    /// If the server is installed but does not start, with its log.
    pub fn start(self) -> Result<Postgres, Skip> {
        let (programs, account) = (Programs::find()?, Account::find()?);
        let mut launch = Launch::prepare(programs, account, self.password, self.durable)
            .unwrap_or_else(|failure| panic!("{failure}"));
        for _ in 0..ATTEMPTS {
            match launch.start() {
                Ok(process) => {
                    return Ok(Postgres { process: Mutex::new(process), launch });
                }
                Err(Failure::PortTaken) => launch.move_to_another_port(),
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("{ATTEMPTS} ports in a row were taken");
    }
}
