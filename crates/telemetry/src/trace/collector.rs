//! Export of spans. It is best effort: while a collector is down, spans are dropped.

use std::{sync::Mutex, time::Duration};

use opentelemetry_otlp::{
    RetryPolicy, SpanExporter as Otlp, WithExportConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use tokio::time::Instant;
use tonic::transport::{Channel, ClientTlsConfig};
use tracing::{info, warn};

use super::TracerError;
use crate::{Endpoint, TraceConfig};

/// Timeout of connecting to a collector and of sending a batch.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two warnings about a collector that is down.
const SILENCE: Duration = Duration::from_secs(60);

/// A collector, reached over OTLP.
#[derive(Debug)]
pub(super) struct Collector {
    otlp: Otlp,
    /// Time of the last warning of the current outage.
    complained: Mutex<Option<Instant>>,
}

impl Collector {
    /// Creates an exporter to `endpoint`, which connects on the first batch.
    pub(super) fn at(endpoint: &Endpoint) -> Result<Self, TracerError> {
        let otlp = Otlp::builder()
            .with_tonic()
            .with_channel(channel(endpoint)?.connect_lazy())
            .with_timeout(PATIENCE)
            // While one batch is retried, the next ones would be dropped.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        Ok(Self { otlp, complained: Mutex::new(None) })
    }

    /// Logs the start and the end of an outage, at a bounded rate.
    fn log(&self, sent: &OTelSdkResult) {
        let Ok(mut complained) = self.complained.lock() else { return };
        match sent {
            Ok(()) if complained.take().is_some() => info!("collector accepts spans again"),
            Ok(()) => {}
            Err(_) if complained.is_some_and(|at| at.elapsed() < SILENCE) => {}
            Err(error) => {
                *complained = Some(Instant::now());
                warn!(%error, "failed to send spans to the collector; dropping them");
            }
        }
    }
}

impl TraceConfig {
    /// Connects to the collector once.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be reached.
    pub async fn try_connect(&self) -> Result<(), String> {
        let connected = channel(&self.endpoint).map_err(|error| error.to_string())?.connect().await;
        connected.map(drop).map_err(|error| {
            // The outermost error only says that the transport failed.
            let mut cause: &dyn std::error::Error = &error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            cause.to_string()
        })
    }
}

fn channel(endpoint: &Endpoint) -> Result<tonic::transport::Endpoint, TracerError> {
    let channel =
        Channel::builder(endpoint.get().clone()).connect_timeout(PATIENCE).timeout(PATIENCE);
    if endpoint.get().scheme_str() == Some("https") {
        return Ok(channel.tls_config(ClientTlsConfig::new().with_native_roots())?);
    }
    Ok(channel)
}

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.otlp.export(batch).await;
        self.log(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
