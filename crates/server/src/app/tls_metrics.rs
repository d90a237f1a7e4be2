use std::sync::Arc;

use headgate_serve::Tls;
use headgate_tls::HandshakeFailure;
use prometheus::{
    IntCounter, IntCounterVec, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Collects the state of TLS when metrics are scraped.
pub(super) struct TlsCollector {
    ports: Vec<Arc<Tls>>,
    expiry: IntGaugeVec,
}

impl TlsCollector {
    pub(super) fn new(ports: Vec<Arc<Tls>>) -> Result<Self, prometheus::Error> {
        let opts = Opts::new(
            "headgate_tls_certificate_expiry_seconds",
            "Seconds until a certificate expires; negative if it has.",
        );
        Ok(Self { ports, expiry: IntGaugeVec::new(opts, &["certificate"])? })
    }

    /// Counters are created for each scrape.
    fn counted(&self) -> Option<Vec<MetricFamily>> {
        let sum = |count: &dyn Fn(&Tls) -> u64| self.ports.iter().map(|tls| count(tls)).sum();
        let handshakes =
            IntCounter::new("headgate_tls_handshakes_total", "TLS handshakes that succeeded.")
                .ok()?;
        handshakes.inc_by(sum(&|tls| tls.handshakes().completed()));
        let opts = Opts::new(
            "headgate_tls_handshake_failures_total",
            "TLS handshakes that failed, by reason.",
        );
        let failures = IntCounterVec::new(opts, &["reason"]).ok()?;
        for reason in HandshakeFailure::ALL {
            let failed = sum(&|tls| tls.handshakes().failed(reason));
            failures.with_label_values(&[reason.name()]).inc_by(failed);
        }
        let reloads = IntCounter::new(
            "headgate_tls_reload_failures_total",
            "Certificates that could not be reloaded; the previous ones stayed in force.",
        );
        let reloads = reloads.ok()?;
        reloads.inc_by(sum(&Tls::reload_failures));
        Some([handshakes.collect(), failures.collect(), reloads.collect()].concat())
    }
}

impl Collector for TlsCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.expiry.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // A reload may have other certificates.
        self.expiry.reset();
        for certificate in self.ports.iter().flat_map(|tls| tls.certificates()) {
            let path = certificate.path.to_string_lossy();
            self.expiry.with_label_values(&[&*path]).set(certificate.seconds_left);
        }
        let mut families = self.expiry.collect();
        families.extend(self.counted().unwrap_or_default());
        families
    }
}
