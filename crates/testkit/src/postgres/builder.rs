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
}

// === impl PostgresBuilder ===

impl PostgresBuilder {
    /// Requires this password of clients (SCRAM). It goes into the URL as it is: use characters that need no escape
    /// there.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Creates the data folder, starts the server and returns once it accepts connections.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `initdb`, `postgres` or `psql` is not installed, or if we are root and there is no user `postgres`
    /// to run the server.
    ///
    /// # Panics
    ///
    /// When the server is installed and does not start, with its log.
    pub fn start(self) -> Result<Postgres, Skip> {
        let mut launch = Launch::prepare(Programs::find()?, Account::find()?, self.password)
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
