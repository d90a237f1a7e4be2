//! Export of the metrics over OTLP: the same families as on `/metrics`, under the same names.
//!
//! Converted by hand: the SDK's exporter takes only metrics that the SDK has counted.

use std::{env, time::Duration};

use headgate_tls_client::TlsFileError;
use opentelemetry_proto::tonic::{
    collector::metrics::v1::{
        ExportMetricsServiceRequest, metrics_service_client::MetricsServiceClient,
    },
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Exemplar as OtlpExemplar, Gauge, Histogram, HistogramDataPoint,
        Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, exemplar, metric::Data,
        number_data_point,
    },
    resource::v1::Resource,
};
use percent_encoding::percent_decode_str;
use prometheus::proto::{Bucket, LabelPair, Metric as Series, MetricFamily, MetricType};
use thiserror::Error;
use tonic::{
    Request,
    metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap},
    transport::Channel,
};

use super::{
    Metrics,
    exemplars::{Exemplar, Found},
};
use crate::{
    AppConfig, MetricsExportConfig,
    otlp::{self, ExportLog},
    resource,
};

/// Headers for the collector, as for traces: `name=value,name=value`.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Sends metrics to a collector.
pub struct MetricsExporter {
    client: MetricsServiceClient<Channel>,
    headers: MetadataMap,
    resource: Resource,
    interval: Duration,
    log: ExportLog,
}

/// An exporter that cannot be created.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The system's certificate authorities cannot be read.
    #[error("cannot prepare TLS: {0}")]
    Tls(#[from] tonic::transport::Error),
    /// A certificate file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
}

/// The times that all points of an export share, in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Span {
    start_time_unix_nano: u64,
    time_unix_nano: u64,
}

// === impl MetricsExporter ===

impl MetricsExporter {
    /// Creates an exporter, if that is enabled. It connects on the first export. Must be called
    /// within a tokio runtime.
    pub fn new(app: &AppConfig, config: &MetricsExportConfig) -> Result<Option<Self>, ExportError> {
        if !config.enabled {
            return Ok(None);
        }
        let attributes = resource::of(app);
        let attributes = attributes.iter().map(|(key, value)| text(key.as_str(), &value.as_str()));
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        Ok(Some(Self {
            client: MetricsServiceClient::new(
                otlp::channel(&config.endpoint, &config.tls_files().load()?)?.connect_lazy(),
            ),
            headers: headers(&env::var(HEADERS).unwrap_or_default()),
            resource,
            interval: Duration::from_secs(config.interval_seconds.get()),
            log: ExportLog::of("metrics"),
        }))
    }

    /// Returns the time between two exports.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Sends the current values once, with a timeout. A failure is logged.
    pub async fn export(&self, metrics: &Metrics) {
        let span = Span {
            start_time_unix_nano: metrics.created.as_micros() * 1000,
            time_unix_nano: metrics.clock.now().as_micros() * 1000,
        };
        let families = metrics.registry.gather();
        let exemplars = metrics.found_exemplars();
        let metrics = families.iter().map(|family| converted(family, &exemplars, span)).collect();
        let scope = InstrumentationScope { name: "headgate".to_owned(), ..Default::default() };
        let scope_metrics =
            vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
        let mut request = Request::new(ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics,
                ..ResourceMetrics::default()
            }],
        });
        *request.metadata_mut() = self.headers.clone();
        let sent = self.client.clone().export(request).await;
        self.log.log(sent.as_ref().err());
    }
}

impl MetricsExportConfig {
    /// Connects to the collector once.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be reached.
    pub async fn try_connect(&self) -> Result<(), String> {
        otlp::try_connect(&self.endpoint, &self.tls_files()).await
    }
}

/// Parses `name=value,name=value`, with percent-encoded values; ignores what is invalid.
fn headers(list: &str) -> MetadataMap {
    let mut headers = MetadataMap::new();
    for (name, value) in list.split(',').filter_map(|header| header.split_once('=')) {
        let name = name.trim().to_ascii_lowercase().parse::<AsciiMetadataKey>();
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        if let (Ok(name), Ok(value)) = (name, value.parse::<AsciiMetadataValue>()) {
            headers.insert(name, value);
        }
    }
    headers
}

fn converted(family: &MetricFamily, exemplars: &Found, span: Span) -> Metric {
    let all = family.get_metric().iter();
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match family.get_field_type() {
        MetricType::COUNTER => Data::Sum(Sum {
            data_points: all
                .map(|series| number(series, series.get_counter().get_value(), span))
                .collect(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        MetricType::HISTOGRAM => {
            let found = exemplars.get(family.name());
            let point = |series: &Series| {
                let found = found.and_then(|found| found.of(series.get_label()));
                histogram(series, found.unwrap_or_default(), span)
            };
            let data_points = all.map(point).collect();
            Data::Histogram(Histogram { data_points, aggregation_temporality: cumulative })
        }
        // No area registers summaries or untyped metrics.
        _ => Data::Gauge(Gauge {
            data_points: all
                .map(|series| number(series, series.get_gauge().get_value(), span))
                .collect(),
        }),
    };
    Metric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn number(series: &Series, value: f64, span: Span) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(series.get_label()),
        start_time_unix_nano: span.start_time_unix_nano,
        time_unix_nano: span.time_unix_nano,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    }
}

fn histogram(series: &Series, exemplars: &[Option<Exemplar>], span: Span) -> HistogramDataPoint {
    let histogram = series.get_histogram();
    let finite = || histogram.get_bucket().iter().filter(|b| b.upper_bound().is_finite());
    let cumulative = finite().map(Bucket::cumulative_count);
    let mut below = 0;
    let bucket_counts = cumulative
        .chain([histogram.get_sample_count()])
        .map(|within| within.saturating_sub(std::mem::replace(&mut below, within)))
        .collect();
    HistogramDataPoint {
        attributes: attributes(series.get_label()),
        start_time_unix_nano: span.start_time_unix_nano,
        time_unix_nano: span.time_unix_nano,
        count: histogram.get_sample_count(),
        sum: Some(histogram.get_sample_sum()),
        bucket_counts,
        explicit_bounds: finite().map(Bucket::upper_bound).collect(),
        exemplars: exemplars.iter().flatten().map(converted_exemplar).collect(),
        ..HistogramDataPoint::default()
    }
}

fn converted_exemplar(exemplar: &Exemplar) -> OtlpExemplar {
    OtlpExemplar {
        time_unix_nano: exemplar.at.as_micros() * 1000,
        trace_id: exemplar.trace.to_bytes().to_vec(),
        value: Some(exemplar::Value::AsDouble(exemplar.seconds)),
        ..OtlpExemplar::default()
    }
}

fn attributes(labels: &[LabelPair]) -> Vec<KeyValue> {
    labels.iter().map(|label| text(label.name(), label.value())).collect()
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use prometheus::{Histogram, HistogramOpts, Registry};

    use super::*;
    use crate::metrics::registered;

    #[test]
    fn buckets_are_counted_each_for_itself() {
        let registry = Registry::new();
        let opts = HistogramOpts::new("took_seconds", "Time.").buckets(vec![1.0, 2.0]);
        let took = registered(&registry, Histogram::with_opts(opts).unwrap()).unwrap();
        for seconds in [0.5, 0.6, 1.5, 9.0, 9.0, 9.0] {
            took.observe(seconds);
        }
        let span = Span { start_time_unix_nano: 1, time_unix_nano: 2 };
        let metric = converted(&registry.gather()[0], &Found::new(), span);
        let Some(Data::Histogram(histogram)) = metric.data else { panic!("{metric:?}") };
        let point = &histogram.data_points[0];
        assert_eq!(point.bucket_counts, [2, 1, 3]);
        assert_eq!((point.count, point.explicit_bounds.as_slice()), (6, [1.0, 2.0].as_slice()));
    }

    #[test]
    fn headers_are_read_as_for_traces() {
        let headers = headers("api-key=a%20b, Tenant=7,broken,=x,n\u{e4}me=1");
        assert_eq!(headers.get("api-key").unwrap(), "a b");
        assert_eq!(headers.get("tenant").unwrap(), "7");
        assert_eq!(headers.len(), 2);
    }
}
