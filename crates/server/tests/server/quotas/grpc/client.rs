//! A client generated from the same `.proto` file.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    reason = "most of it is made by a program, to a style of its own"
)]

use std::net::SocketAddr;

use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::grpc::client::channel;

include!(concat!(env!("OUT_DIR"), "/k1s0.system.quota.v1.rs"));

pub(crate) type Client = quota_service_client::QuotaServiceClient<Channel>;

/// A client with a connection of its own.
pub(crate) async fn connect(address: SocketAddr) -> Client {
    Client::new(channel(address).await)
}

/// A policy for a month.
pub(crate) fn new_policy(subject: &str, limit: u64) -> CreateQuotaPolicyRequest {
    CreateQuotaPolicyRequest {
        name: format!("quota of {subject}"),
        subject_type: "tenant".to_owned(),
        subject_id: subject.to_owned(),
        limit,
        period: "monthly".to_owned(),
        enabled: true,
        alert_threshold_percent: Some(80),
        ..CreateQuotaPolicyRequest::default()
    }
}

/// The error of a call: status, stable code, message and fields.
pub(crate) fn error_parts(status: &Status) -> (Code, String, String, Vec<(String, String)>) {
    let details = status.get_error_details();
    let info = details.error_info().expect("an ErrorInfo");
    assert_eq!(info.domain, "quota.system.k1s0");
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    let fields = violations.unwrap_or_default().into_iter().map(|v| (v.field, v.description));
    (status.code(), info.reason.clone(), status.message().to_owned(), fields.collect())
}
