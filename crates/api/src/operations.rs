//! The state of a running server, for health checks, `/metrics` and the console's overview.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use bytes::Bytes;
use headgate_envoy::EnvoyLimits;
use headgate_persistence::Database;
use headgate_ratelimit::Catalog;
use headgate_stores::{Probe, StoreKind};
use headgate_telemetry::{
    AppConfig,
    metrics::{Format, Metrics},
};
use headgate_tls::Tls;
use tracing::debug;

use crate::quotas::QuotaServices;

/// The parts of a server whose state is reported.
pub struct Operations {
    /// Name, version and environment.
    pub app: AppConfig,
    /// The store that decides.
    pub store: StoreKind,
    /// Probes that store.
    pub probe: Probe,
    /// The rules in force.
    pub rules: Arc<Catalog>,
    /// Quotas, for their policies and gauges.
    pub quotas: Arc<QuotaServices>,
    /// The database of rules and quotas.
    pub database: Arc<Database>,
    /// `None` if the service for Envoy is disabled.
    pub envoy: Option<Arc<EnvoyLimits>>,
    /// TLS of the ports; empty if they speak plain text.
    pub tls: Vec<Arc<Tls>>,
    /// All metrics of the server.
    pub metrics: Arc<Metrics>,
    /// True once the server is stopping.
    pub stopping: AtomicBool,
}

impl Operations {
    /// Makes the server report that it is not ready, before it stops.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Returns true once the server is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// The error of the last attempt to read rules or quota policies, if it failed.
    pub fn read_error(&self) -> Option<String> {
        let rules = self.rules.freshness().error.map(|error| error.to_string());
        rules.or_else(|| self.quotas.catalog.freshness().error.map(|error| error.to_string()))
    }

    /// Warnings about certificates, if there are any.
    pub fn tls_warning(&self) -> Option<String> {
        let warnings: Vec<String> = self.tls.iter().flat_map(|tls| tls.warnings()).collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }

    /// All metrics in this format, at most a second old. Requests at the same time share one probe
    /// and one text.
    pub async fn metrics_text(&self, format: Format) -> Result<Bytes, prometheus::Error> {
        self.metrics.text(format, self.measure()).await
    }

    /// Updates the gauges that need a probe.
    pub async fn measure(&self) {
        if let Err(error) = self.probe.ask().await {
            debug!(%error, "store failed its probe");
        }
        self.quotas.measure();
    }
}
