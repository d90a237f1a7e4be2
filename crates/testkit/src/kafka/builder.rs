use std::sync::Mutex;

use super::{
    Kafka,
    launch::{Failure, Launch},
    programs::{self, Programs},
};
use crate::{Skip, skip::find_program};

/// Each attempt takes other ports; only another process, at the same moment, can take them from us.
const ATTEMPTS: usize = 10;

/// Options of a [`Kafka`] broker.
#[derive(Debug, Clone, Default)]
pub struct KafkaBuilder {
    pub(super) secure: bool,
    pub(super) properties: Vec<(String, String)>,
}

// === impl KafkaBuilder ===

impl KafkaBuilder {
    /// Listens for TLS as well: see [`Kafka::secure`].
    #[must_use]
    pub fn secure(mut self) -> Self {
        self.secure = true;
        self
    }

    /// Sets one of the broker's properties, for example `auto.create.topics.enable` to `false`.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Starts the broker and returns once it knows of itself.
    ///
    /// # Errors
    ///
    /// [`Skip`] if Java 17, Kafka's jars or, for secure listeners, `openssl` is missing.
    ///
    /// # Panics
    ///
    /// When the broker is installed and does not start, with its log.
    pub fn start(self) -> Result<Kafka, Skip> {
        let programs = Programs::find()?;
        if self.secure {
            find_program("openssl")?;
        }
        for _ in 0..ATTEMPTS {
            let started = Launch::prepare(&self, programs.clone())
                .and_then(|launch| launch.start().map(|process| (launch, process)));
            match started {
                Ok((launch, process)) => {
                    return Ok(Kafka { process: Mutex::new(process), launch });
                }
                Err(Failure::PortTaken) => {}
                Err(Failure::OldJava) => return Err(programs::skip("it needs Java 17 or newer")),
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("{ATTEMPTS} ports in a row were taken");
    }
}
