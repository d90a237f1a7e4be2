use headgate::Timestamp;
use headgate_telemetry::metrics::registered;
use prometheus::{Error, Gauge, IntCounterVec, IntGauge, Opts, Registry};

/// Metrics of reloads.
#[derive(Clone)]
pub(crate) struct ReloadMetrics {
    reloads: IntCounterVec,
    successful: IntGauge,
    last: Gauge,
    restart_required: IntGauge,
    hash: Gauge,
}

const APPLIED: &str = "applied";
const UNCHANGED: &str = "unchanged";
const REFUSED: &str = "refused";

/// Bits of the fingerprint that a gauge holds exactly.
const HASH_BITS: u32 = 48;

impl ReloadMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, Error> {
        let reloads = Opts::new(
            "headgate_config_reloads_total",
            "Reloads of the configuration, by result: applied, unchanged or refused.",
        );
        let metrics = Self {
            reloads: registered(registry, IntCounterVec::new(reloads, &["result"])?)?,
            successful: registered(
                registry,
                IntGauge::new(
                    "headgate_config_last_reload_successful",
                    "1 if the last reload succeeded, 0 if it was refused.",
                )?,
            )?,
            last: registered(
                registry,
                Gauge::new(
                    "headgate_config_last_reload_success_timestamp_seconds",
                    "Unix time at which the configuration was last read successfully.",
                )?,
            )?,
            restart_required: registered(
                registry,
                IntGauge::new(
                    "headgate_config_restart_required",
                    "Changed keys that are applied by the next restart.",
                )?,
            )?,
            hash: registered(
                registry,
                Gauge::new(
                    "headgate_config_hash",
                    "Fingerprint of the configuration in force, as it is printed.",
                )?,
            )?,
        };
        for result in [APPLIED, UNCHANGED, REFUSED] {
            metrics.reloads.with_label_values(&[result]);
        }
        Ok(metrics)
    }

    pub(super) fn started(&self, version: &str, now: Timestamp) {
        self.successful.set(1);
        self.read(version, now);
    }

    pub(super) fn succeeded(&self, version: &str, applied: usize, waiting: usize, now: Timestamp) {
        let result = if applied == 0 { UNCHANGED } else { APPLIED };
        self.reloads.with_label_values(&[result]).inc();
        self.successful.set(1);
        self.restart_required.set(waiting as i64);
        self.read(version, now);
    }

    pub(super) fn refused(&self) {
        self.reloads.with_label_values(&[REFUSED]).inc();
        self.successful.set(0);
    }

    /// `version` is 16 hexadecimal digits.
    fn read(&self, version: &str, now: Timestamp) {
        let hash = u64::from_str_radix(version, 16).unwrap_or_default();
        self.hash.set((hash >> (u64::BITS - HASH_BITS)) as f64);
        self.last.set(now.as_micros() as f64 / 1e6);
    }
}
