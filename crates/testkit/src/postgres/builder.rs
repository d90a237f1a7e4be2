use std::sync::Mutex;

use super::{
    Postgres,
    account::Account,
    launch::{Failure, Launch},
    programs::Programs,
};
use crate::Skip;

/// Each attempt takes another port; only another process, at the same moment, can take it from us.
const ATTEMPTS: usize = 10;

/// Options of a [`Postgres`] server.
#[derive(Debug, Clone, Default)]
pub struct PostgresBuilder {
    password: Option<String>,
    durable: bool,
}

// === impl PostgresBuilder ===

impl PostgresBuilder {
    /// Requires this password of clients (SCRAM). It goes into the URL as it is: use characters
    /// that need no escape there.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Waits for the disk at every commit, as a server does that people rely on.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Creates the data folder, starts the server and returns once it accepts connections.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `initdb`, `postgres` or `psql` is not installed, or if we are root and there is
    /// no user `postgres` to run the server.
    ///
    /// # Panics
    ///
    /// When the server is installed and does not start, with its log.
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
