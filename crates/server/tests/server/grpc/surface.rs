//! Ids, metrics and timeouts of every call.

use super::{
    client::{CheckRateLimitRequest, CreateRuleRequest, by, connect},
    raw::{self, CHECK},
};
use crate::harness::Server;

const MESSAGE: &[u8] = b"\x0a\x04user\x12\x02u1";

#[tokio::test]
async fn a_call_keeps_its_id() {
    let server = Server::start(&[]).await;
    let with_id = |path: &str, id: &str| raw::call(path).header("x-request-id", id);
    for id in ["trace-1", "a", &"x".repeat(128)] {
        let answered = raw::send(server.grpc_address, with_id(CHECK, id), MESSAGE).await;
        assert_eq!((answered.meta("grpc-status"), answered.meta("x-request-id")), ("0", id));
        let refused = raw::send(server.grpc_address, with_id(CHECK, id), b"").await;
        assert_eq!((refused.meta("grpc-status"), refused.meta("x-request-id")), ("3", id));
        let unknown = raw::send(server.grpc_address, with_id("/nothing", id), b"").await;
        assert_eq!((unknown.meta("grpc-status"), unknown.meta("x-request-id")), ("12", id));
    }
    for id in ["", "a b", &"x".repeat(129)] {
        let answered = raw::send(server.grpc_address, with_id(CHECK, id), MESSAGE).await;
        let digits = answered.meta("x-request-id").strip_prefix("req_").expect("a new id");
        assert!(digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{digits}");
    }
}

#[tokio::test]
async fn the_audit_log_names_the_call() {
    let server = Server::start(&[]).await;
    let client = connect(server.grpc_address).await;
    let rule = CreateRuleRequest {
        key: "user:u1".into(),
        limit: 1,
        window_secs: 60,
        ..CreateRuleRequest::default()
    };
    let token = server.admin_token.clone().unwrap();
    let mut request = by(&token, rule);
    request.metadata_mut().insert("x-request-id", "change-7".parse().unwrap());
    client.clone().create_rule(request).await.unwrap();
    let entries = server.admin("GET", "/api/v1/ratelimit/audit", "").await.json();
    assert_eq!(entries["entries"][0]["request_id"], "change-7", "{entries}");
    assert_eq!(entries["entries"][0]["action"], "rule.create");
}

#[tokio::test]
async fn calls_are_counted_by_known_method_names() {
    let server = Server::start(&[]).await;
    let client = connect(server.grpc_address).await;
    let ask = |subject: &str| CheckRateLimitRequest {
        rule_id: "user".into(),
        subject: subject.into(),
        ..CheckRateLimitRequest::default()
    };
    client.clone().check_rate_limit(ask("secret-7")).await.unwrap();
    client.clone().check_rate_limit(ask("secret-7")).await.unwrap();
    client.clone().check_rate_limit(ask("")).await.unwrap_err();
    raw::send(server.grpc_address, raw::call("/secret-8/secret-9"), b"").await;

    let text = server.get("/metrics").await.text;
    let labels = |service: &str, method: &str, code: &str| {
        format!(
            "grpc_server_handled_total{{grpc_code=\"{code}\",grpc_method=\"{method}\",grpc_service=\"{service}\",service="
        )
    };
    let service = "k1s0.system.ratelimit.v1.RateLimitService";
    for (labels, count) in [
        (labels(service, "CheckRateLimit", "OK"), "2"),
        (labels(service, "CheckRateLimit", "InvalidArgument"), "1"),
        (labels("unmatched", "unmatched", "Unimplemented"), "1"),
    ] {
        let line = text.lines().find(|line| line.starts_with(&labels));
        assert_eq!(line.and_then(|line| line.rsplit(' ').next()), Some(count), "{labels}");
    }
    let took = format!(
        "grpc_server_handling_seconds_count{{grpc_method=\"CheckRateLimit\",grpc_service=\"{service}\""
    );
    let line = text.lines().find(|line| line.starts_with(&took)).expect("a duration");
    assert!(line.ends_with(" 3"), "{line}");
    assert!(!text.contains("secret"), "{text}");
}
