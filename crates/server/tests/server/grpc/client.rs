//! A client generated from the same `.proto` file, and helpers.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    reason = "most of it is made by a program, to a style of its own"
)]

use std::net::SocketAddr;

use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt as _;

include!(concat!(env!("OUT_DIR"), "/k1s0.system.ratelimit.v1.rs"));

pub(crate) type Client = rate_limit_service_client::RateLimitServiceClient<Channel>;

/// A connection of its own.
pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A client with a connection of its own.
pub(crate) async fn connect(address: SocketAddr) -> Client {
    Client::new(channel(address).await)
}

/// A request with this token.
pub(crate) fn by<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

/// The error of a call: status, stable code, message and fields.
pub(crate) fn error_parts(status: &Status) -> (Code, String, String, Vec<(String, String)>) {
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!(info.domain, "ratelimit.system.k1s0");
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    let fields = violations.unwrap_or_default().into_iter().map(|v| (v.field, v.description));
    (status.code(), info.reason.clone(), status.message().to_owned(), fields.collect())
}

/// Asserts that exactly these fields are invalid.
pub(crate) fn assert_invalid(status: &Status, fields: &[(&str, &str)]) {
    let (code, reason, message, violations) = error_parts(status);
    assert_eq!(code, Code::InvalidArgument, "{status:?}");
    assert_eq!(reason, "SYS_RATELIMIT_VALIDATION_ERROR");
    assert_eq!(message, "validation failed");
    let violations: Vec<(&str, &str)> =
        violations.iter().map(|(f, m)| (f.as_str(), m.as_str())).collect();
    assert_eq!(violations, fields);
}

/// Asserts status, stable code and message.
pub(crate) fn assert_error(status: &Status, code: Code, reason: &str, message: &str) {
    let expected = (code, reason.to_owned(), message.to_owned(), Vec::new());
    assert_eq!(error_parts(status), expected);
}

/// Long enough that nothing refills during a test.
pub(crate) const FOREVER: i64 = 31_000_000;

/// A rule for 5 units in the longest window.
pub(crate) fn rule_of(key: &str) -> CreateRuleRequest {
    CreateRuleRequest {
        key: key.to_owned(),
        limit: 5,
        window_secs: FOREVER,
        ..CreateRuleRequest::default()
    }
}

/// Creates a rule.
pub(crate) async fn create(client: &Client, token: &str, rule: CreateRuleRequest) -> RateLimitRule {
    let made = client.clone().create_rule(by(token, rule)).await.unwrap();
    made.into_inner().rule.expect("a rule")
}
