//! The connection to an OpenTelemetry collector. Export is best effort: while a collector is down,
//! telemetry is dropped.

use std::{error::Error, fmt::Display, sync::Mutex, time::Duration};

use headgate_tls_client::{Certificates, TlsFiles};
use tokio::time::Instant;
use tonic::transport::{self, Channel};
use tracing::{info, warn};

use crate::Endpoint;

/// Timeout of connecting to a collector and of sending a batch.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// Time between two warnings about a collector that is down.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Logs the start and the end of an outage of a collector, at a bounded rate.
#[derive(Debug)]
pub(crate) struct ExportLog {
    /// What is exported.
    signal: &'static str,
    /// Time of the last warning of the current outage.
    warned: Mutex<Option<Instant>>,
}

/// Prepares a channel to `endpoint`, with timeouts; `certificates` are used with TLS.
pub(crate) fn channel(
    endpoint: &Endpoint,
    certificates: &Certificates,
) -> Result<transport::Endpoint, transport::Error> {
    let channel =
        Channel::builder(endpoint.get().clone()).connect_timeout(TIMEOUT).timeout(TIMEOUT);
    if endpoint.is_https() {
        return channel.tls_config(certificates.tonic_config());
    }
    Ok(channel)
}

/// Connects to `endpoint` once. Returns the reason why it cannot be reached.
pub(crate) async fn try_connect(endpoint: &Endpoint, files: &TlsFiles) -> Result<(), String> {
    let certificates = files.load().map_err(|error| error.to_string())?;
    let channel = channel(endpoint, &certificates).map_err(|error| error.to_string())?;
    channel.connect().await.map(drop).map_err(|error| {
        // The outermost error only says that the transport failed.
        let mut cause: &dyn Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        cause.to_string()
    })
}

// === impl ExportLog ===

impl ExportLog {
    pub(crate) const fn of(signal: &'static str) -> Self {
        Self { signal, warned: Mutex::new(None) }
    }

    /// Logs the result of an export: its error, if it failed.
    pub(crate) fn log<E: Display>(&self, error: Option<&E>) {
        let (Ok(mut warned), signal) = (self.warned.lock(), self.signal) else { return };
        match error {
            None if warned.take().is_some() => info!("collector accepts {signal} again"),
            None => {}
            Some(_) if warned.is_some_and(|at| at.elapsed() < WARNING_INTERVAL) => {}
            Some(error) => {
                *warned = Some(Instant::now());
                warn!(%error, "failed to send {signal} to the collector; dropping them");
            }
        }
    }
}
