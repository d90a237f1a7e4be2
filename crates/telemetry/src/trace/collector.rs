//! Export of spans.

use std::time::Duration;

use opentelemetry_otlp::{
    RetryPolicy, SpanExporter as Otlp, WithExportConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

use super::TracerError;
use crate::{
    TraceConfig,
    otlp::{self, ExportLog},
};

/// A collector of spans, reached over OTLP.
#[derive(Debug)]
pub(super) struct Collector {
    otlp: Otlp,
    log: ExportLog,
}

impl Collector {
    /// Creates an exporter to the configured endpoint, which connects on the first batch.
    pub(super) fn new(config: &TraceConfig) -> Result<Self, TracerError> {
        let channel = otlp::channel(&config.endpoint, &config.tls_files().load()?)?;
        let otlp = Otlp::builder()
            .with_tonic()
            .with_channel(channel.connect_lazy())
            .with_timeout(otlp::TIMEOUT)
            // While one batch is retried, the next ones would be dropped.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        Ok(Self { otlp, log: ExportLog::of("spans") })
    }
}

impl TraceConfig {
    /// Connects to the collector once.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be reached.
    pub async fn try_connect(&self) -> Result<(), String> {
        otlp::try_connect(&self.endpoint, &self.tls_files()).await
    }
}

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.otlp.export(batch).await;
        self.log.log(sent.as_ref().err());
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
