//! Degraded decisions: every API logs them, at a limited rate.

use std::fs;

use headgate_testkit::free_port;
use tokio::runtime::Runtime;
use tonic::{Request, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

use crate::harness::{Server, http};

/// The subject, which logs show masked.
const PERSON: &str = "person:jane.doe-1";

const REQUESTS: usize = 20;

#[derive(Clone, PartialEq, prost::Message)]
struct Check {
    #[prost(string, tag = "1")]
    scope: String,
    #[prost(string, tag = "2")]
    subject: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Checked {
    #[prost(bool, tag = "1")]
    allowed: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Descriptors {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Decided {
    /// 1 is OK, 2 is over the limit.
    #[prost(int32, tag = "1")]
    code: i32,
}

/// Starts a server whose Redis is unreachable.
fn start(more: &[(&str, &str)]) -> Server {
    let url = format!("redis://127.0.0.1:{}", free_port());
    Server::start_with_log(&[&[("HEADGATE__REDIS__URL", url.as_str())], more].concat())
}

/// Calls a gRPC method several times.
fn call<Q, A>(server: &Server, path: &str, question: &Q) -> Vec<A>
where
    Q: prost::Message + Clone + 'static,
    A: prost::Message + Default + 'static,
{
    Runtime::new().unwrap().block_on(async {
        let channel = Channel::from_shared(server.grpc_url()).unwrap().connect().await.unwrap();
        let mut grpc = Grpc::new(channel);
        let mut answers = Vec::new();
        for _ in 0..REQUESTS {
            grpc.ready().await.unwrap();
            let (request, codec) = (Request::new(question.clone()), ProstCodec::<Q, A>::default());
            let answer = grpc.unary(request, path.parse().unwrap(), codec).await.unwrap();
            answers.push(answer.into_inner());
        }
        answers
    })
}

/// Returns the warnings about degraded decisions: at least one, fewer than requests, subjects
/// masked.
fn warnings(server: &Server) -> Vec<String> {
    let log = server.log();
    let is_warning =
        |line: &&str| line.contains("WARN") && line.contains("fail mode capped answers");
    let lines: Vec<String> = log.lines().filter(is_warning).map(str::to_owned).collect();
    assert!((1..REQUESTS).contains(&lines.len()), "{log}");
    assert!(!log.contains("jane"), "{log}");
    lines
}

#[test]
fn a_degraded_check_over_http_is_logged() {
    let server = start(&[]);
    let body = format!(r#"{{"scope":"user","identifier":"{PERSON}"}}"#);
    for _ in 0..REQUESTS {
        let answer = http(&server, "POST /api/v1/ratelimit/check", &[], &body);
        assert!(answer.contains("redis unavailable, fail-open"), "{answer}");
    }
    let lines = warnings(&server);
    assert!(lines[0].contains("per***-1") && lines[0].contains("checks"), "{lines:?}");
}

#[test]
fn a_degraded_batch_and_a_dry_run_are_logged() {
    let check = format!(r#"{{"scope":"user","identifier":"{PERSON}"}}"#);
    let batch = format!(r#"{{"checks":[{check}]}}"#);
    let dry_run = check.replace('}', r#","dry_run":true}"#);
    for (path, body) in [("/check/batch", batch), ("/check", dry_run)] {
        let server = start(&[]);
        for _ in 0..REQUESTS {
            let answer = http(&server, &format!("POST /api/v1/ratelimit{path}"), &[], &body);
            assert!(answer.contains("redis unavailable, fail-open"), "{answer}");
        }
        warnings(&server);
    }
}

#[test]
fn a_degraded_check_over_grpc_is_logged() {
    let server = start(&[]);
    let check = Check { scope: "user".to_owned(), subject: PERSON.to_owned() };
    let path = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit";
    let answers: Vec<Checked> = call(&server, path, &check);
    assert!(answers.iter().all(|answer| answer.allowed));
    warnings(&server);
}

#[test]
fn a_degraded_envoy_decision_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let file = "domain: edge\ndescriptors:\n  - key: who\n    rate_limit: {unit: day, requests_per_unit: 1000}\n";
    fs::write(folder.path().join("edge.yaml"), file).unwrap();
    let server = start(&[
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__CONFIG_DIR", folder.path().to_str().unwrap()),
    ]);
    let entry = Entry { key: "who".to_owned(), value: PERSON.to_owned() };
    let question = Descriptors {
        domain: "edge".to_owned(),
        descriptors: vec![Descriptor { entries: vec![entry] }],
    };
    let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let answers: Vec<Decided> = call(&server, path, &question);
    assert!(answers.iter().all(|answer| answer.code == 1), "{answers:?}");
    let lines = warnings(&server);
    assert!(lines[0].contains("edge") && lines[0].contains("Envoy"), "{lines:?}");
}

#[test]
fn a_degraded_keyed_peek_is_logged() {
    let server = start(&[]);
    for _ in 0..REQUESTS {
        let line = format!("GET /api/v1/rate-limit/remaining?key={PERSON}");
        let answer = http(&server, &line, &[], "");
        assert!(answer.contains(r#""degraded":"capped""#), "{answer}");
    }
    warnings(&server);
}
