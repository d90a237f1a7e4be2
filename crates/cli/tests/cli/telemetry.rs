//! Spans of a running server; logs and metrics.

mod caller;
mod collector;
mod logs;
mod metrics;

use std::{net::TcpListener, time::Duration};

use headgate_testkit::{CertificateAuthority, Redis, require, wait_until};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::Value;
use tokio::{
    net,
    runtime::Runtime,
    time::{Instant, timeout},
};
use tonic::Code;

use self::{
    caller::{CHECK, call, check},
    collector::{Collector, Span},
};
use crate::{
    backup::until_ready,
    harness::{Server, http},
    https::make_certificate,
};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(60);

/// A subject that must not appear in spans or logs.
const PERSON: &str = "jane.doe@people.example";

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

const PARENT: &str = "b7ad6b7169203331";

const ENABLED: (&str, &str) = ("HEADGATE__OBSERVABILITY__TRACE__ENABLED", "true");

const ENDPOINT: &str = "HEADGATE__OBSERVABILITY__TRACE__ENDPOINT";

const JSON: (&str, &str) = ("HEADGATE__OBSERVABILITY__LOG__FORMAT", "json");

const DEBUG: (&str, &str) = ("HEADGATE__OBSERVABILITY__LOG__LEVEL", "debug");

/// A `traceparent` with these flags.
fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// The attributes of a span, as `key=value`.
fn attributes(span: &Span) -> Vec<String> {
    span.attributes.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Sends checks until one of them is traced. A batch that takes longer than three seconds is
/// dropped, which happens on a busy machine, with TLS above all.
fn is_traced(server: &Server, collector: &Collector) -> bool {
    (0..10).any(|_| {
        check(server, &[]);
        wait_until(Duration::from_secs(10), || !collector.spans().is_empty())
    })
}

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn requests_are_traced_without_naming_subjects() {
    let collector = Collector::start();
    let mut server = Server::start_with_log(&[
        ENABLED,
        JSON,
        DEBUG,
        (ENDPOINT, &collector.url()),
        ("HEADGATE__APP__NAME", "gate"),
        ("HEADGATE__APP__VERSION", "1.2.3"),
        ("HEADGATE__APP__ENVIRONMENT", "staging"),
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "2"),
        ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "8640000"),
    ]);
    let traceparent = format!("traceparent: {}", parent("01"));
    let tracestate = format!("tracestate: vendor={}", PERSON.split('@').next().unwrap());
    check(&server, &[&traceparent, &tracestate, "x-request-id: check-1"]);
    assert_eq!(call(&server, CHECK, "user", &parent("01")), Ok(true));
    assert!(check(&server, &[]).contains(r#""allowed":false"#));
    assert_eq!(call(&server, CHECK, "nobody", "nonsense"), Err(Code::NotFound));
    let made_up = format!("/{PERSON}/{PERSON}");
    assert_eq!(call(&server, &made_up, "user", "nonsense"), Err(Code::Unimplemented));
    http(
        &server,
        &format!("GET /{PERSON}?{PERSON}"),
        &[&format!("authorization: Bearer {PERSON}")],
        "",
    );
    collector.wait(|spans| spans.len() == 6);
    assert_eq!(server.stop("-TERM").code(), Some(0));

    let spans = collector.spans();
    let [first, call, denied, refused, made_up, lost] = &spans[..] else { panic!("{spans:#?}") };
    assert_check_span(first);
    assert_call_span(call);
    assert_eq!(denied.attributes["headgate.allowed"], "false");
    assert_eq!(denied.parent, "");
    assert_ne!(denied.trace, TRACE);
    assert_eq!(refused.attributes["rpc.response.status_code"], "NOT_FOUND");
    assert!(!refused.attributes.contains_key("headgate.allowed"));
    assert_ne!(refused.trace, TRACE);
    assert_eq!((made_up.name.as_str(), made_up.failed), ("_OTHER", true));
    assert_eq!(made_up.attributes["rpc.response.status_code"], "UNIMPLEMENTED");
    assert_eq!(made_up.attributes["error.type"], "UNIMPLEMENTED");
    assert_eq!(lost.name, "GET");
    assert_eq!(lost.attributes["http.response.status_code"], "404");
    assert!(!lost.attributes.contains_key("http.route"));
    let failed = spans.iter().filter(|span| span.failed).count();
    assert_eq!(failed, 1, "a denied request is no failed span: {spans:#?}");

    let log = server.log();
    let request = lines(&log).into_iter().find(|line| line["request_id"] == "check-1").unwrap();
    assert_eq!(request["trace_id"], TRACE, "{request}");
    assert_eq!(request["span_id"], first.id, "{request}");
    for output in [&collector.bytes()[..], log.as_bytes()] {
        let output = String::from_utf8_lossy(output);
        assert!(!output.contains("jane.doe") && !output.contains("people.example"), "{output}");
        assert!(output.contains("check-1"), "{output}");
    }
}

fn assert_check_span(span: &Span) {
    assert_eq!(span.kind, SpanKind::Server);
    assert_eq!(span.name, "POST /api/v1/ratelimit/check");
    assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT));
    let expected = [
        "headgate.allowed=true",
        "headgate.degraded=false",
        "headgate.leased=false",
        "headgate.request_id=check-1",
        "http.request.method=POST",
        "http.response.status_code=200",
        "http.route=/api/v1/ratelimit/check",
    ];
    assert_eq!(attributes(span), expected);
    for (key, value) in [
        ("service.name", "gate"),
        ("service.version", "1.2.3"),
        ("deployment.environment.name", "staging"),
    ] {
        assert_eq!(span.resource[key], value);
    }
}

fn assert_call_span(span: &Span) {
    assert_eq!(span.name, "k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit");
    assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT));
    let expected = [
        "headgate.allowed=true",
        "headgate.degraded=false",
        "headgate.leased=false",
        "headgate.request_id=call-1",
        "rpc.method=k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit",
        "rpc.response.status_code=OK",
        "rpc.system.name=grpc",
    ];
    assert_eq!(attributes(span), expected);
}

#[test]
fn calls_to_the_store_and_the_database_are_spans_of_their_request() {
    let (collector, redis) = (Collector::start(), require!(Redis::start()));
    let mut server = Server::start_with_log(&[
        ENABLED,
        (ENDPOINT, &collector.url()),
        ("HEADGATE__REDIS__URL", &redis.url()),
        ("HEADGATE__REDIS__TIMEOUT_MS", "30000"),
        ("HEADGATE__AUTH__MODE", "off"),
        ("HEADGATE__OBSERVABILITY__TRACE__SAMPLE_RATE", "0"),
    ]);
    until_ready(&server);
    let traceparent = format!("traceparent: {}", parent("01"));
    check(&server, &[&traceparent]);
    check(&server, &[]);
    let rule = r#"{"scope":"user","identifier_pattern":"jane*","limit":5,"window_seconds":60}"#;
    let answer = http(&server, "POST /api/v1/ratelimit/rules", &[&traceparent], rule);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    redis.kill();
    check(&server, &[&traceparent]);
    let is_check = |span: &&Span| span.name.ends_with("/check");
    collector.wait(|spans| spans.iter().filter(is_check).count() == 2);
    assert_eq!(server.stop("-TERM").code(), Some(0));

    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let of = |name: &str| spans.iter().filter(move |span| span.name == name).collect::<Vec<_>>();
    let requests = of("POST /api/v1/ratelimit/check");
    let calls = of("EVALSHA");
    assert_eq!((requests.len(), calls.len()), (2, 2), "the unsampled check has none: {spans:#?}");
    for (request, call) in requests.iter().zip(&calls) {
        assert_eq!((call.parent.as_str(), call.kind), (request.id.as_str(), SpanKind::Client));
    }
    let port = redis.url().rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let expected = [
        "db.operation.name=EVALSHA",
        "db.system.name=redis",
        "headgate.checks=1",
        "headgate.verb=acquire",
        "server.address=127.0.0.1",
        &format!("server.port={port}"),
    ];
    assert_eq!(attributes(calls[0]), expected);
    assert!(calls[1].failed && calls[1].attributes.contains_key("error.type"), "{calls:#?}");

    let written = &of("POST /api/v1/ratelimit/rules")[0];
    let insert = &of("insert rate_limit_rules")[0];
    assert_eq!(insert.parent, written.id);
    let expected = [
        "db.collection.name=rate_limit_rules",
        "db.operation.name=insert",
        "db.system.name=sqlite",
    ];
    assert_eq!(attributes(insert), expected);
    let sent = String::from_utf8_lossy(&collector.bytes()).into_owned();
    assert!(!sent.contains("jane"), "{sent}");
}

#[test]
fn callers_sampling_decision_overrides_the_sample_rate() {
    let collector = Collector::start();
    let variables = [
        ENABLED,
        (ENDPOINT, &collector.url()),
        ("HEADGATE__OBSERVABILITY__TRACE__SAMPLE_RATE", "0"),
    ];
    let server = Server::start(&variables);
    for _ in 0..10 {
        check(&server, &[]);
    }
    server.signal("-TERM");
    assert!(collector.spans().is_empty());

    let server = Server::start(&variables);
    check(&server, &[]);
    check(&server, &[&format!("traceparent: {}", parent("01"))]);
    collector.wait(|spans| !spans.is_empty());
    server.signal("-TERM");
    let spans = collector.spans();
    assert_eq!(spans.iter().map(|span| span.trace.as_str()).collect::<Vec<_>>(), [TRACE]);

    let server = Server::start(&variables[..2]);
    check(&server, &[&format!("traceparent: {}", parent("00"))]);
    check(&server, &[]);
    collector.wait(|spans| spans.len() > 1);
    server.signal("-TERM");
    let spans = collector.spans();
    assert_eq!(spans.len(), 2, "{spans:#?}");
    assert_ne!(spans[1].trace, TRACE);
}

#[test]
fn spans_are_sent_while_the_server_runs() {
    let collector = Collector::start();
    let server = Server::start(&[ENABLED, (ENDPOINT, &collector.url())]);
    assert!(is_traced(&server, &collector));
}

#[test]
fn the_last_spans_are_sent_when_the_server_stops() {
    let sent = |_| {
        let collector = Collector::start();
        let server = Server::start(&[ENABLED, (ENDPOINT, &collector.url())]);
        check(&server, &[]);
        assert_eq!(server.signal("-TERM").code(), Some(0));
        collector.spans().len() == 1
    };
    // It gives up after two seconds, which a busy machine may exceed now and then.
    assert!((0..10).any(sent));
}

#[test]
fn spans_can_be_sent_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    require!(make_certificate(folder.path()));
    let collector = Collector::start_with_tls(folder.path());
    let endpoint = format!("https://127.0.0.1:{}", collector.port());
    let authorities = folder.path().join("cert.pem");
    let authorities = ("SSL_CERT_FILE", authorities.to_str().unwrap());
    let server = Server::start(&[ENABLED, (ENDPOINT, &endpoint), authorities]);
    assert!(is_traced(&server, &collector));
    assert_eq!(server.signal("-TERM").code(), Some(0));
}

#[test]
fn a_collector_of_a_private_authority_gets_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let ca_file = authority.write(folder.path());
    let (cert, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let collector = Collector::start_with_client_certificates(&authority);
    let endpoint = format!("https://127.0.0.1:{}", collector.port());
    let trusting = [
        ENABLED,
        (ENDPOINT, &endpoint),
        ("HEADGATE__OBSERVABILITY__TRACE__CA_FILE", ca_file.to_str().unwrap()),
    ];
    let named = [
        ("HEADGATE__OBSERVABILITY__TRACE__CERT_FILE", cert.to_str().unwrap()),
        ("HEADGATE__OBSERVABILITY__TRACE__KEY_FILE", key.to_str().unwrap()),
    ];
    let server = Server::start(&[&trusting[..], &named].concat());
    assert!(is_traced(&server, &collector));
    assert_eq!(server.signal("-TERM").code(), Some(0));
    let sent = collector.spans().len();

    for (variables, complaint) in [
        // The collector closes the connection after the handshake.
        (&trusting[..], "failed to send spans to the collector"),
        // The system does not know the authority.
        (&trusting[..2], "UnknownIssuer"),
    ] {
        let server = Server::start_with_log(variables);
        check(&server, &[]);
        let logged = || server.log().contains(complaint);
        assert!(wait_until(LIMIT, logged), "{complaint}: {}", server.log());
    }
    assert_eq!(collector.spans().len(), sent);
}

#[test]
fn an_unreachable_collector_is_logged_once_and_delays_nothing() {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(net::TcpListener::bind(("127.0.0.1", 0))).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let mut server = Server::start_with_log(&[ENABLED, (ENDPOINT, &endpoint)]);
    check(&server, &[]);
    // The first spans meet a collector that hangs up, the last ones none.
    drop(runtime.block_on(async { timeout(LIMIT, listener.accept()).await }).unwrap());
    drop((listener, runtime));
    let complaint = "failed to send spans to the collector";
    assert!(wait_until(LIMIT, || server.log().contains(complaint)), "{}", server.log());

    check(&server, &[]);
    let started = Instant::now();
    assert_eq!(server.stop("-TERM").code(), Some(0));
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
    assert_eq!(server.log().matches(complaint).count(), 1, "{}", server.log());
}

#[test]
fn shutdown_does_not_wait_for_a_silent_collector() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let server = Server::start(&[ENABLED, (ENDPOINT, &endpoint)]);
    check(&server, &[]);
    let started = Instant::now();
    assert_eq!(server.signal("-TERM").code(), Some(0));
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
}
