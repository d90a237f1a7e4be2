//! A client generated from the same `.proto` files.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "mostly generated code"
)]

use std::net::SocketAddr;

use tonic::transport::Channel;

use self::envoy::{
    extensions::common::ratelimit::v3::{
        RateLimitDescriptor,
        rate_limit_descriptor::{Entry, RateLimitOverride},
    },
    service::ratelimit::v3::{
        RateLimitRequest, RateLimitResponse, rate_limit_response::Code,
        rate_limit_service_client::RateLimitServiceClient,
    },
};
use crate::grpc::client::channel;

pub(crate) mod envoy {
    pub mod config {
        pub mod core {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.config.core.v3.rs"));
            }
        }
    }
    pub mod extensions {
        pub mod common {
            pub mod ratelimit {
                pub mod v3 {
                    include!(concat!(env!("OUT_DIR"), "/envoy.extensions.common.ratelimit.v3.rs"));
                }
            }
        }
    }
    pub mod service {
        pub mod ratelimit {
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.service.ratelimit.v3.rs"));
            }
        }
    }
    pub mod r#type {
        pub mod v3 {
            include!(concat!(env!("OUT_DIR"), "/envoy.r#type.v3.rs"));
        }
    }
}

/// Sends requests as Envoy does.
#[derive(Clone)]
pub(crate) struct Client(pub(crate) RateLimitServiceClient<Channel>);

/// A response.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) RateLimitResponse);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(RateLimitServiceClient::new(channel(address).await))
    }

    pub(crate) async fn ask(&self, domain: &str, descriptors: &[RateLimitDescriptor]) -> Answer {
        self.send(request(domain, descriptors)).await
    }

    pub(crate) async fn send(&self, request: RateLimitRequest) -> Answer {
        Answer(self.0.clone().should_rate_limit(request).await.unwrap().into_inner())
    }
}

impl Answer {
    pub(crate) fn is_over(&self) -> bool {
        self.0.overall_code() == Code::OverLimit
    }

    /// Over limit and units left, per descriptor.
    pub(crate) fn each(&self) -> Vec<(bool, u32)> {
        let status = |s: &envoy::service::ratelimit::v3::rate_limit_response::DescriptorStatus| {
            (s.code() == Code::OverLimit, s.limit_remaining)
        };
        self.0.statuses.iter().map(status).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = &self.0.response_headers_to_add;
        headers.iter().find(|header| header.key == name).map(|header| header.value.as_str())
    }
}

pub(crate) fn request(domain: &str, descriptors: &[RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: descriptors.to_vec(),
        hits_addend: 0,
    }
}

/// A descriptor with these entries.
pub(crate) fn of(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor {
        entries: entries.iter().map(entry).collect(),
        ..RateLimitDescriptor::default()
    }
}

/// A descriptor that takes `hits`.
pub(crate) fn taking(hits: u64, entries: &[(&str, &str)]) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..of(entries) }
}

/// A descriptor with a limit of its own, per year.
pub(crate) fn allowing(requests_per_unit: u32, entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let unit = envoy::r#type::v3::RateLimitUnit::Year.into();
    let limit = RateLimitOverride { requests_per_unit, unit, unit_multiplier: None };
    RateLimitDescriptor { limit: Some(limit), ..of(entries) }
}
