//! Exemplars: for each bucket of a latency, a recent request that was traced.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, TryLockError},
    time::Duration,
};

use headgate::{Clock, Timestamp};
use opentelemetry::trace::TraceId;
use prometheus::{Error, Histogram, HistogramOpts, HistogramVec, proto::LabelPair};

/// Maximum number of series of a family that have exemplars. Routes and methods are fewer.
const MAX_SERIES: usize = 1024;

/// Latencies by label, with exemplars. Requests that are not traced cost a histogram's two
/// additions; those that are, a lookup on top.
#[derive(Clone)]
pub struct Latencies {
    histograms: HistogramVec,
    exemplars: Arc<Exemplars>,
}

/// The exemplars of one family of histograms.
pub(super) struct Exemplars {
    family: String,
    labels: Vec<String>,
    bounds: Vec<f64>,
    clock: Arc<dyn Clock>,
    series: Mutex<HashMap<Vec<String>, BySlot>>,
}

/// One for each bucket, then one above the last bound.
type BySlot = Vec<Option<Exemplar>>;

/// A traced request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exemplar {
    pub(super) trace: TraceId,
    pub(super) seconds: f64,
    pub(super) at: Timestamp,
}

/// The exemplars of all families at one moment.
pub(super) type Found = HashMap<String, FamilyExemplars>;

/// The exemplars of a family at one moment.
pub(super) struct FamilyExemplars {
    labels: Vec<String>,
    series: HashMap<Vec<String>, BySlot>,
}

// === impl Latencies ===

impl Latencies {
    pub(super) fn new(
        opts: HistogramOpts,
        labels: &[&str],
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let exemplars = Exemplars {
            family: opts.common_opts.name.clone(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            bounds: opts.buckets.clone(),
            clock,
            series: Mutex::default(),
        };
        Ok(Self { histograms: HistogramVec::new(opts, labels)?, exemplars: Arc::new(exemplars) })
    }

    pub(super) const fn histograms(&self) -> &HistogramVec {
        &self.histograms
    }

    pub(super) const fn exemplars(&self) -> &Arc<Exemplars> {
        &self.exemplars
    }

    /// Looks a series up once, for [`note`](Self::note) beside it.
    pub fn series(&self, values: &[&str]) -> Histogram {
        self.histograms.with_label_values(values)
    }

    /// Observes a request of the series with these label values; `trace` if it is sampled.
    pub fn observe(&self, values: &[&str], took: Duration, trace: Option<TraceId>) {
        self.histograms.with_label_values(values).observe(took.as_secs_f64());
        self.note(values, took, trace);
    }

    /// Keeps the trace of a request that a series of [`series`](Self::series) has observed.
    pub fn note(&self, values: &[&str], took: Duration, trace: Option<TraceId>) {
        if let Some(trace) = trace {
            self.exemplars.note(values, took.as_secs_f64(), trace);
        }
    }
}

// === impl Exemplars ===

impl Exemplars {
    /// Replaces the exemplar of a bucket. Never waits: while another request writes or metrics are
    /// scraped, this one is left out.
    fn note(&self, values: &[&str], seconds: f64, trace: TraceId) {
        let mut series = match self.series.try_lock() {
            Ok(series) => series,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        if series.len() >= MAX_SERIES && !series.contains_key(&values) {
            return;
        }
        let slots = series.entry(values).or_insert_with(|| vec![None; self.bounds.len() + 1]);
        let place = self.bounds.partition_point(|bound| *bound < seconds);
        slots[place] = Some(Exemplar { trace, seconds, at: self.clock.now() });
    }

    /// Returns the family's name and a copy.
    pub(super) fn found(&self) -> (String, FamilyExemplars) {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.family.clone(), FamilyExemplars { labels: self.labels.clone(), series })
    }
}

// === impl FamilyExemplars ===

impl FamilyExemplars {
    /// Returns the exemplars of the series with these labels, by bucket.
    pub(super) fn of(&self, labels: &[LabelPair]) -> Option<&[Option<Exemplar>]> {
        let value = |name: &String| {
            let label = labels.iter().find(|label| label.name() == name)?;
            Some(label.value().to_owned())
        };
        let values = self.labels.iter().map(value).collect::<Option<Vec<_>>>()?;
        self.series.get(&values).map(Vec::as_slice)
    }
}
