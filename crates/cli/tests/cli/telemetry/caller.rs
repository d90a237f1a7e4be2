//! Requests of a traced service.

use tokio::runtime::Runtime;
use tonic::{Code, Request, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

use super::PERSON;
use crate::harness::{Server, http};

/// Path of the method `CheckRateLimit`.
pub(crate) const CHECK: &str = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit";

#[derive(Clone, PartialEq, prost::Message)]
struct Check {
    #[prost(string, tag = "1")]
    rule_id: String,
    #[prost(string, tag = "2")]
    subject: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Checked {
    #[prost(bool, tag = "1")]
    allowed: bool,
}

/// Sends a check over HTTP and returns the response.
pub(crate) fn check(server: &Server, headers: &[&str]) -> String {
    let body = format!(r#"{{"scope":"user","identifier":"{PERSON}"}}"#);
    let answer = http(server, "POST /api/v1/ratelimit/check", headers, &body);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    answer
}

/// Calls a gRPC method with a check request. Returns true if it was allowed.
pub(crate) fn call(server: &Server, path: &str, rule: &str, parent: &str) -> Result<bool, Code> {
    Runtime::new().unwrap().block_on(async {
        let channel = Channel::from_shared(server.grpc_url()).unwrap().connect().await.unwrap();
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.unwrap();
        let check = Check { rule_id: rule.to_owned(), subject: PERSON.to_owned() };
        let mut request = Request::new(check);
        request.metadata_mut().insert("traceparent", parent.parse().unwrap());
        request.metadata_mut().insert("x-request-id", "call-1".parse().unwrap());
        let codec = ProstCodec::<Check, Checked>::default();
        let answer = grpc.unary(request, path.parse().unwrap(), codec).await;
        answer.map(|checked| checked.into_inner().allowed).map_err(|status| status.code())
    })
}
