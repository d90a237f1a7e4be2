use std::{panic::resume_unwind, sync::Mutex, thread};

use super::{
    Redis, clock,
    launch::{Failure, Launch},
};
use crate::{Skip, skip::find_program};

/// Each attempt uses another port, which only another process can take in between.
const ATTEMPTS: usize = 10;

/// Options of a [`Redis`] server.
#[derive(Debug, Clone, Default)]
pub struct RedisBuilder {
    pub(super) password: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) fake_clock: Option<u64>,
    pub(super) sentinel: Option<String>,
}

// === impl RedisBuilder ===

impl RedisBuilder {
    /// Requires this password. It is used in the URL without escaping.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Adds command line arguments, for example `["--maxmemory", "10mb"]`.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the wall clock of the server to this time, in microseconds since 1970. [`Redis::clock`]
    /// moves it.
    #[must_use]
    pub fn fake_clock(mut self, unix_micros: u64) -> Self {
        self.fake_clock = Some(unix_micros);
        self
    }

    /// Starts a sentinel with this configuration instead of a data server.
    #[must_use]
    pub(crate) fn sentinel(mut self, config: String) -> Self {
        self.sentinel = Some(config);
        self
    }

    /// Starts the server, and waits until it responds.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server`, `redis-cli` or, for a fake clock, `libfaketime` is not
    /// installed, or if the server does not work with libfaketime.
    ///
    /// # Panics
    ///
    /// If the server is installed but does not start, with its log.
    pub fn start(self) -> Result<Redis, Skip> {
        let server = find_program("redis-server")?;
        let cli = find_program("redis-cli")?;
        let library = self.fake_clock.map(|_| clock::find_library()).transpose()?;

        for _ in 0..ATTEMPTS {
            let launch = Launch::new(&self, &server, &cli, library.as_deref());
            match launch.start() {
                Ok(process) => {
                    return Ok(Redis { process: Mutex::new(process), launch });
                }
                Err(Failure::PortTaken) => {}
                // An allocator that conflicts with libfaketime is a property of the machine.
                Err(failure) if library.is_some() => {
                    return Err(Skip::new(clock::COMPONENT, failure.to_string()));
                }
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("{ATTEMPTS} ports in a row were taken");
    }

    /// Starts several servers concurrently.
    pub(crate) fn start_all(builders: impl IntoIterator<Item = Self>) -> Result<Vec<Redis>, Skip> {
        thread::scope(|scope| {
            let starting: Vec<_> =
                builders.into_iter().map(|builder| scope.spawn(|| builder.start())).collect();
            starting
                .into_iter()
                .map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }
}
