use std::sync::Mutex;

use super::{
    Kafka,
    launch::{Failure, Launch},
    programs::{self, Programs},
};
use crate::Skip;

/// Each attempt uses other ports, which only another process can take in between.
const ATTEMPTS: usize = 10;

/// Options of a [`Kafka`] broker.
#[derive(Debug, Clone, Default)]
pub struct KafkaBuilder {
    pub(super) secure: bool,
    pub(super) properties: Vec<(String, String)>,
}

// === impl KafkaBuilder ===

impl KafkaBuilder {
    /// Adds listeners with TLS: see [`Kafka::secure`].
    #[must_use]
    pub fn secure(mut self) -> Self {
        self.secure = true;
        self
    }

    /// Adds listeners with TLS, of which `SSL` requires client certificates.
    #[must_use]
    pub fn client_certificates(self) -> Self {
        self.secure().property("listener.name.ssl.ssl.client.auth", "required")
    }

    /// Sets a property of the broker, for example `auto.create.topics.enable` to `false`.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Starts the broker, and waits until it lists itself.
    ///
    /// # Errors
    ///
    /// [`Skip`] without Java 17 or the jars of Kafka.
    ///
    /// # Panics
    ///
    /// If the broker is installed but does not start, with its log.
    pub fn start(self) -> Result<Kafka, Skip> {
        let programs = Programs::find()?;
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
