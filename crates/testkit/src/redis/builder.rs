use std::{panic::resume_unwind, sync::Mutex, thread};

use super::{
    Redis, clock,
    launch::{Failure, Launch},
};
use crate::{Skip, skip::find_program};

/// Each attempt takes another port; only another process, at the same moment, can take it from us.
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
    /// Requires this password of clients. It goes into the URL as it is: use characters that need no escape there.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Adds arguments to the server's command line, for example `["--maxmemory", "10mb"]`.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Holds the server's wall clock at this time, in microseconds since 1970, until [`Redis::clock`] moves it.
    #[must_use]
    pub fn fake_clock(mut self, unix_micros: u64) -> Self {
        self.fake_clock = Some(unix_micros);
        self
    }

    /// Starts a sentinel with this configuration in place of a data server.
    #[must_use]
    pub(crate) fn sentinel(mut self, config: String) -> Self {
        self.sentinel = Some(config);
        self
    }

    /// Starts the server and returns once it answers.
    ///
    /// # Errors
    ///
    /// [`Skip`] if `redis-server`, `redis-cli` or, for a fake clock, `libfaketime` is not installed, or if this
    /// server does not bear libfaketime.
    ///
    /// # Panics
    ///
    /// When the server is installed and does not start, with its log.
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
                // An allocator that clashes with libfaketime is a property of the machine, not a failed test.
                Err(failure) if library.is_some() => {
                    return Err(Skip::new(clock::COMPONENT, failure.to_string()));
                }
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("{ATTEMPTS} ports in a row were taken");
    }

    /// Starts several servers at the same time.
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
