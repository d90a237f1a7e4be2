//! The `OpenMetrics` text format, 1.0.0, which `prometheus` does not write.
//!
//! Counters have no `_created` samples: they are optional, and double the number of series.

use std::fmt::{self, Write as _};

use prometheus::proto::{Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::exemplars::{Exemplar, Found};

/// Renders the families, with the exemplars of their histograms.
pub(super) fn encode(families: &[MetricFamily], exemplars: &Found) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(64 * 1024);
    for family in families {
        let (name, kind) = header(&mut out, family)?;
        for metric in family.get_metric() {
            let labels = Labels(metric.get_label(), None);
            match kind {
                MetricType::HISTOGRAM => {
                    let found = exemplars.get(family.name());
                    let found = found.and_then(|found| found.of(metric.get_label()));
                    histogram(&mut out, name, metric, found.unwrap_or_default())?;
                }
                MetricType::COUNTER => {
                    let value = Number(metric.get_counter().get_value());
                    writeln!(out, "{name}_total{labels} {value}")?;
                }
                _ => writeln!(out, "{name}{labels} {}", Number(metric.get_gauge().get_value()))?,
            }
        }
    }
    out.push_str("# EOF\n");
    Ok(out)
}

/// Writes help and type. The name of a counter's family is without `_total`, which its sample has.
fn header<'a>(
    out: &mut String,
    family: &'a MetricFamily,
) -> Result<(&'a str, MetricType), fmt::Error> {
    let kind = family.get_field_type();
    let (name, word) = match kind {
        MetricType::COUNTER => {
            (family.name().strip_suffix("_total").unwrap_or(family.name()), "counter")
        }
        MetricType::HISTOGRAM => (family.name(), "histogram"),
        // No area registers summaries or untyped metrics.
        _ => (family.name(), "gauge"),
    };
    writeln!(out, "# HELP {name} {}", Escaped(family.help()))?;
    writeln!(out, "# TYPE {name} {word}")?;
    Ok((name, kind))
}

fn histogram(
    out: &mut String,
    name: &str,
    metric: &Metric,
    exemplars: &[Option<Exemplar>],
) -> fmt::Result {
    let histogram: &Histogram = metric.get_histogram();
    let count = histogram.get_sample_count();
    let bounded = histogram.get_bucket().iter().map(|b| (b.upper_bound(), b.cumulative_count()));
    let bounded = bounded.filter(|(bound, _)| bound.is_finite());
    for (place, (bound, within)) in bounded.chain([(f64::INFINITY, count)]).enumerate() {
        write!(out, "{name}_bucket{} {within}", Labels(metric.get_label(), Some(bound)))?;
        if let Some(Exemplar { trace, seconds, at }) = exemplars.get(place).copied().flatten() {
            let at = Number(at.as_micros() as f64 / 1e6);
            write!(out, " # {{trace_id=\"{trace}\"}} {} {at}", Number(seconds))?;
        }
        out.push('\n');
    }
    let labels = Labels(metric.get_label(), None);
    writeln!(out, "{name}_count{labels} {count}")?;
    writeln!(out, "{name}_sum{labels} {}", Number(histogram.get_sample_sum()))
}

/// Labels, and the bound of a bucket.
struct Labels<'a>(&'a [LabelPair], Option<f64>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(labels, bound) = self;
        if labels.is_empty() && bound.is_none() {
            return Ok(());
        }
        f.write_char('{')?;
        for (place, label) in labels.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}=\"{}\"", label.name(), Escaped(label.value()))?;
        }
        if let Some(bound) = bound {
            let comma = if labels.is_empty() { "" } else { "," };
            write!(f, "{comma}le=\"{}\"", Canonical(*bound))?;
        }
        f.write_char('}')
    }
}

/// A value.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            number if number == f64::INFINITY => f.write_str("+Inf"),
            number if number == f64::NEG_INFINITY => f.write_str("-Inf"),
            number => write!(f, "{number}"),
        }
    }
}

/// A number as the standard wants it in `le`: as Go prints it, with `.0` if it is whole.
struct Canonical(f64);

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size.is_infinite() || size == 0.0 || (1e-4..1e21).contains(&size) {
            if self.0.is_finite() { write!(f, "{:?}", self.0) } else { Number(self.0).fmt(f) }
        } else {
            // Rust writes 1e-6 and 1e21, Go 1e-06 and 1e+21.
            let text = format!("{:e}", self.0);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            write!(f, "{digits}e{sign}{exponent:0>2}")
        }
    }
}

/// Text of a label or a help.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['\\', '"', '\n']) {
            match part.as_bytes().last() {
                Some(b'\n') => write!(f, "{}\\n", &part[..part.len() - 1])?,
                Some(last @ (b'\\' | b'"')) => {
                    write!(f, "{}\\{}", &part[..part.len() - 1], char::from(*last))?;
                }
                _ => f.write_str(part)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc, time::Duration};

    use headgate::{ManualClock, Timestamp};
    use opentelemetry::trace::TraceId;
    use prometheus::{Gauge, HistogramOpts, IntCounterVec, Opts, Registry};

    use super::*;
    use crate::metrics::{exemplars::Latencies, registered};

    fn encoded(registry: &Registry, exemplars: &Found) -> String {
        encode(&registry.gather(), exemplars).unwrap()
    }

    #[test]
    fn samples_of_counters_have_the_suffix_and_their_families_do_not() {
        let registry = Registry::new();
        let opts = Opts::new("checks_total", "Checks \\ \"all\"\nof them.");
        let checks = registered(&registry, IntCounterVec::new(opts, &["path"]).unwrap()).unwrap();
        checks.with_label_values(&["a\\b\"c\nd"]).inc_by(3);
        registered(&registry, Gauge::new("level", "Level.").unwrap()).unwrap().set(-0.5);
        let expected = r#"# HELP checks Checks \\ \"all\"\nof them.
# TYPE checks counter
checks_total{path="a\\b\"c\nd"} 3
# HELP level Level.
# TYPE level gauge
level -0.5
# EOF
"#;
        assert_eq!(encoded(&registry, &HashMap::new()), expected);
    }

    #[test]
    fn buckets_have_canonical_bounds_and_the_last_traced_request() {
        let (registry, clock) = (Registry::new(), Arc::new(ManualClock::default()));
        let opts = HistogramOpts::new("took_seconds", "Time.").buckets(vec![0.000_001, 0.25, 1.0]);
        let took = Latencies::new(opts, &["path"], clock.clone()).unwrap();
        registered(&registry, took.histograms().clone()).unwrap();
        clock.advance(Duration::from_millis(1_700_000_000_500));
        assert!(clock_now(&clock) >= Timestamp::from_micros(1_700_000_000_500_000));
        let trace = |number| Some(TraceId::from(number));
        took.observe(&["/a"], Duration::from_millis(300), trace(1));
        took.observe(&["/a"], Duration::from_millis(250), trace(2));
        took.observe(&["/a"], Duration::from_secs(3), trace(3));
        took.observe(&["/a"], Duration::from_secs(4), None);
        let text = encoded(&registry, &HashMap::from([took.exemplars().found()]));
        let at = clock_now(&clock).as_micros() as f64 / 1e6;
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                r#"took_seconds_bucket{path="/a",le="1e-06"} 0"#,
                &format!(
                    r#"took_seconds_bucket{{path="/a",le="0.25"}} 1 # {{trace_id="{:032x}"}} 0.25 {at}"#,
                    2
                ),
                &format!(
                    r#"took_seconds_bucket{{path="/a",le="1.0"}} 2 # {{trace_id="{:032x}"}} 0.3 {at}"#,
                    1
                ),
                &format!(
                    r#"took_seconds_bucket{{path="/a",le="+Inf"}} 4 # {{trace_id="{:032x}"}} 3 {at}"#,
                    3
                ),
                r#"took_seconds_count{path="/a"} 4"#,
                r#"took_seconds_sum{path="/a"} 7.55"#,
                "# EOF",
            ]
        );
    }

    fn clock_now(clock: &ManualClock) -> Timestamp {
        headgate::Clock::now(clock)
    }

    #[test]
    fn bounds_are_printed_as_go_prints_them() {
        for (number, text) in [
            (1e-6, "1e-06"),
            (2.5e-6, "2.5e-06"),
            (0.000_1, "0.0001"),
            (0.005, "0.005"),
            (1.0, "1.0"),
            (10.0, "10.0"),
            (0.0, "0.0"),
            (1e21, "1e+21"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(Canonical(number).to_string(), text);
        }
    }
}
