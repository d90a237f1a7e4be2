//! Metrics of a running server, as text and over OTLP.

use headgate_testkit::{CertificateAuthority, OpenMetricsParser, require, wait_until};
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ENABLED, ENDPOINT, LIMIT, PARENT, TRACE,
    caller::{CHECK, call, check},
    collector::{Collector, texts},
    parent,
};
use crate::harness::{Server, http, run, stderr};

#[test]
fn open_metrics_are_valid_and_link_latencies_to_sampled_traces() {
    let (collector, parser) = (Collector::start(), require!(OpenMetricsParser::find()));
    let domains = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/server/envoy/domains");
    let server = Server::start(&[
        ENABLED,
        (ENDPOINT, &collector.url()),
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__CONFIG_DIR", domains),
    ]);
    check(&server, &[&format!("traceparent: {}", parent("01"))]);
    assert_eq!(call(&server, CHECK, "user", &parent("01")), Ok(true));
    check(&server, &[&format!("traceparent: 00-{}-{PARENT}-00", "9".repeat(32))]);
    let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let answer = http(&server, "GET /metrics", &[accept], "");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    assert!(head.contains("vary: accept"), "{head}");
    let parsed = parser.parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for line in [
        "counter http_requests",
        "counter process_cpu_seconds",
        "gauge process_open_fds",
        "counter headgate_runtime_busy_seconds",
        "histogram headgate_check_duration_seconds",
        &format!("exemplar http_request_duration_seconds_bucket {TRACE}"),
        &format!("exemplar grpc_server_handling_seconds_bucket {TRACE}"),
    ] {
        assert!(parsed.lines().any(|parsed| parsed == line), "{line} is not in:\n{parsed}");
    }
    let exemplars = parsed.lines().filter(|line| line.starts_with("exemplar")).count();
    assert_eq!(exemplars, 2, "a trace that is not sampled is none: {parsed}");
    assert!(parser.parse(&text.replace("# EOF\n", "")).is_err());

    // Without asking for it, the format is Prometheus's, which has the same families.
    let plain = http(&server, "GET /metrics", &["accept: */*"], "");
    assert!(plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{plain}");
    assert!(!plain.contains("# EOF") && !plain.contains(TRACE), "{plain}");
    let families = |text: &str| text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(families(text), families(&plain));
    let counters = plain.lines().filter(|line| line.ends_with(" counter"));
    for counter in counters {
        assert!(counter.ends_with("_total counter"), "{counter}");
    }
}

#[test]
fn metrics_are_exported_over_otlp_under_the_names_of_the_text() {
    let collector = Collector::start();
    let mut text = String::new();
    let sent = |_| {
        let before = collector.with_metrics(<[_]>::len);
        let mut server = Server::start_with_log(&[
            ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENABLED", "true"),
            ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENDPOINT", &collector.url()),
            ("HEADGATE__OBSERVABILITY__METRICS__OTLP__INTERVAL_SECONDS", "3600"),
            ("HEADGATE__APP__NAME", "gate"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret%20one"),
        ]);
        check(&server, &[]);
        check(&server, &[]);
        text = http(&server, "GET /metrics", &[], "");
        assert_eq!(server.stop("-TERM").code(), Some(0));
        collector.with_metrics(<[_]>::len) == before + 2
    };
    // Values are sent at the start, and the last ones when it stops. It gives up after two seconds,
    // which a busy machine may exceed now and then.
    assert!((0..10).any(sent));

    let (metrics, resource) = collector.with_metrics(|received| {
        let last = received.last().expect("an export");
        assert_eq!(last.metadata().get("api-key").unwrap(), "secret one");
        let sent = &last.get_ref().resource_metrics[0];
        let resource = texts(&sent.resource.as_ref().unwrap().attributes);
        (sent.scope_metrics[0].metrics.clone(), resource)
    });
    assert_eq!(resource["service.name"], "gate");
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for family in families.map(|family| family.split(' ').next().unwrap()) {
        assert!(metrics.iter().any(|metric| metric.name == family), "{family} was not sent");
    }
    let find = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name).expect(name);
        metric.data.clone().expect(name)
    };
    let Data::Sum(decisions) = find("headgate_decisions_total") else { panic!("not a counter") };
    assert!(decisions.is_monotonic);
    let allowed =
        decisions.data_points.iter().find(|point| texts(&point.attributes)["outcome"] == "allowed");
    let allowed = allowed.expect("the outcome");
    assert_eq!(allowed.value, Some(number_data_point::Value::AsDouble(2.0)));
    assert!(0 < allowed.start_time_unix_nano);
    assert!(allowed.start_time_unix_nano < allowed.time_unix_nano);
    let Data::Histogram(took) = find("headgate_check_duration_seconds") else {
        panic!("not a histogram")
    };
    let took = &took.data_points[0];
    assert_eq!((took.count, took.bucket_counts.iter().sum::<u64>()), (2, 2));
    assert_eq!(took.bucket_counts.len(), took.explicit_bounds.len() + 1);
}

#[test]
fn an_unreachable_collector_of_metrics_is_logged_once_and_delays_nothing() {
    let closed = headgate_testkit::free_port();
    let endpoint = format!("http://127.0.0.1:{closed}");
    let mut server = Server::start_with_log(&[
        ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENABLED", "true"),
        ("HEADGATE__OBSERVABILITY__METRICS__OTLP__ENDPOINT", &endpoint),
        ("HEADGATE__OBSERVABILITY__METRICS__OTLP__INTERVAL_SECONDS", "1"),
    ]);
    check(&server, &[]);
    let complaint = "failed to send metrics to the collector";
    assert!(wait_until(LIMIT, || server.log().contains(complaint)), "{}", server.log());
    let started = Instant::now();
    assert_eq!(server.stop("-TERM").code(), Some(0));
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
    assert_eq!(server.log().matches(complaint).count(), 1, "{}", server.log());
}

#[test]
fn metrics_are_sent_to_a_collector_of_a_private_authority() {
    const OTLP: &str = "HEADGATE__OBSERVABILITY__METRICS__OTLP__";
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let ca_file = authority.write(folder.path());
    let (cert, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let collector = Collector::start_with_client_certificates(&authority);
    let endpoint = format!("https://127.0.0.1:{}", collector.port());
    let variables = [
        ("ENABLED", "true"),
        ("ENDPOINT", &*endpoint),
        ("CA_FILE", ca_file.to_str().unwrap()),
        ("CERT_FILE", cert.to_str().unwrap()),
        ("KEY_FILE", key.to_str().unwrap()),
    ];
    let variables = variables.map(|(name, value)| (format!("{OTLP}{name}"), value));
    let variables: Vec<_> = variables.iter().map(|(name, value)| (&**name, *value)).collect();
    let received = || collector.with_metrics(<[_]>::len);
    for (used, complaint) in [
        // The collector closes the connection after the handshake.
        (&variables[..3], "failed to send metrics to the collector"),
        // The system does not know the authority.
        (&variables[..2], "UnknownIssuer"),
    ] {
        let server = Server::start_with_log(used);
        let logged = || server.log().contains(complaint);
        assert!(wait_until(LIMIT, logged), "{complaint}: {}", server.log());
    }
    assert_eq!(received(), 0);
    // Often, since a busy machine may exceed the timeout of the first export.
    let interval = format!("{OTLP}INTERVAL_SECONDS");
    let server = Server::start(&[&variables[..], &[(&*interval, "1")]].concat());
    assert!(wait_until(LIMIT, || received() > 0), "nothing was sent");
    assert_eq!(server.signal("-TERM").code(), Some(0));
}

#[test]
fn metrics_can_be_moved_or_disabled() {
    let server = Server::start(&[("HEADGATE__OBSERVABILITY__METRICS__PATH", "/internal/numbers")]);
    assert!(http(&server, "GET /internal/numbers", &[], "").contains("headgate_build_info"));
    assert!(http(&server, "GET /metrics", &[], "").starts_with("HTTP/1.1 404"));

    let server = Server::start(&[("HEADGATE__OBSERVABILITY__METRICS__ENABLED", "false")]);
    let answer = http(&server, "GET /metrics", &["x-request-id: none"], "");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "SYS_RATELIMIT_NOT_FOUND");
    assert_eq!(body["error"]["request_id"], "none");
}

#[test]
fn invalid_metrics_paths_are_rejected() {
    for (path, why) in [
        ("metrics", "expected a path such as /metrics: "),
        ("/api/v1/ratelimit/check", "what begins with /api is not for metrics"),
        ("/readyz", "what begins with /readyz is not for metrics"),
        ("/{all}", "expected a path such as /metrics: "),
    ] {
        let output = run(&["serve"], &[("HEADGATE__OBSERVABILITY__METRICS__PATH", path)]);
        assert_eq!(output.status.code(), Some(1));
        let expected =
            format!("observability.metrics.path (HEADGATE__OBSERVABILITY__METRICS__PATH): {why}");
        assert!(stderr(&output).contains(&expected), "{output:?}");
    }
}
