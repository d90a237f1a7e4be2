//! Invalid calls.

use tonic::{Code, Status};

use super::{
    client::{CheckRateLimitRequest, assert_error, connect},
    raw::{self, CHECK},
};
use crate::harness::Server;

/// The status in the head of a response.
fn status(reply: &raw::Reply) -> Status {
    Status::from_header_map(&reply.headers).expect("a status in the head")
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused() {
    let server = Server::start(&[]).await;
    let client = connect(server.grpc_address).await;
    let large = CheckRateLimitRequest {
        rule_id: "user".into(),
        subject: "x".repeat(64 * 1024),
        ..CheckRateLimitRequest::default()
    };
    let status = client.clone().check_rate_limit(large).await.unwrap_err();
    let message = "the message must be at most 65536 bytes";
    assert_error(&status, Code::ResourceExhausted, "SYS_RATELIMIT_BODY_TOO_LARGE", message);
}

#[tokio::test]
async fn an_invalid_message_is_rejected() {
    let server = Server::start(&[]).await;
    // A truncated field, and a string that is not UTF-8.
    for message in [&b"\x0a\x05u"[..], b"\x0a\x02\xff\xfe"] {
        let reply = raw::send(server.grpc_address, raw::call(CHECK), message).await;
        let (code, reason, ..) = super::client::error_parts(&status(&reply));
        assert_eq!(
            (code, reason.as_str()),
            (Code::InvalidArgument, "SYS_RATELIMIT_VALIDATION_ERROR")
        );
    }
    // No message at all, and half of one.
    for bytes in [vec![], vec![0, 0, 0, 0, 9, 1]] {
        let reply = raw::send_bytes(server.grpc_address, raw::call(CHECK), bytes).await;
        assert_eq!(status(&reply).code(), Code::InvalidArgument, "{reply:?}");
    }
}

#[tokio::test]
async fn a_compressed_message_is_rejected() {
    let server = Server::start(&[]).await;
    let call = raw::call(CHECK).header("grpc-encoding", "gzip");
    let reply = raw::send(server.grpc_address, call, b"").await;
    assert_eq!(status(&reply).code(), Code::Unimplemented);
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented() {
    let server = Server::start(&[]).await;
    let service = "/k1s0.system.ratelimit.v1.RateLimitService";
    for path in [format!("{service}/Nothing"), service.to_owned(), "/".into(), "/a.B/C".into()] {
        let reply = raw::send(server.grpc_address, raw::call(&path), b"").await;
        let status = status(&reply);
        assert_error(&status, Code::Unimplemented, "SYS_RATELIMIT_NOT_FOUND", "no such method");
    }
}

#[tokio::test]
async fn a_request_that_is_not_grpc_gets_415() {
    let server = Server::start(&[]).await;
    for content_type in ["application/json", "application/grpc-web-text", "application/grpcx", ""] {
        let request = hyper::Request::post(format!("http://test{CHECK}"));
        let request = request.header("content-type", content_type);
        let reply = raw::send(server.grpc_address, request, b"").await;
        assert_eq!(reply.status, 415, "{content_type}");
        assert_eq!(reply.body, "this port serves gRPC over HTTP/2, and binary gRPC-Web\n");
    }
    for content_type in ["application/grpc+proto", "application/grpc;charset=utf-8"] {
        let request = hyper::Request::post(format!("http://test{CHECK}"));
        let request = request.header("content-type", content_type);
        let reply = raw::send(server.grpc_address, request, b"\x0a\x04user\x12\x02u1").await;
        assert_eq!(reply.meta("grpc-status"), "0", "{content_type}");
    }
    // HTTP/1.1 has no trailers for the status.
    let request = hyper::Request::post(CHECK).header("content-type", "application/grpc");
    assert_eq!(raw::send_http1(server.grpc_address, request).await, 415);
}

#[tokio::test]
async fn a_call_ends_at_its_deadline() {
    let server = Server::start(&[("server.request_timeout_seconds", "600")]).await;
    let message = b"\x0a\x04user\x12\x02u1";
    let late = raw::call(CHECK).header("grpc-timeout", "50m");
    // The message is never sent, so that the call can only end at its deadline.
    let reply = raw::send_unfinished(server.grpc_address, late).await;
    let late = status(&reply);
    assert_error(&late, Code::DeadlineExceeded, "SYS_RATELIMIT_TIMEOUT", "the call took too long");
    let in_time = raw::call(CHECK).header("grpc-timeout", "1M");
    assert_eq!(raw::send(server.grpc_address, in_time, message).await.meta("grpc-status"), "0");
    let nonsense = raw::call(CHECK).header("grpc-timeout", "soon");
    assert_eq!(raw::send(server.grpc_address, nonsense, message).await.meta("grpc-status"), "0");
}

#[tokio::test]
async fn a_slow_call_times_out() {
    let server = Server::start(&[("server.request_timeout_seconds", "1")]).await;
    let reply = raw::send_unfinished(server.grpc_address, raw::call(CHECK)).await;
    assert_eq!(status(&reply).code(), Code::DeadlineExceeded);
}
