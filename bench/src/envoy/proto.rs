//! Types generated from the `.proto` files.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "made by a program, to a style of its own"
)]

pub(super) use envoy::service::ratelimit::v3::rate_limit_response::DescriptorStatus as Status;

pub(super) mod envoy {
    pub mod config {
        pub mod core {
            pub mod v3 {
                tonic::include_proto!("envoy.config.core.v3");
            }
        }
    }
    pub mod extensions {
        pub mod common {
            pub mod ratelimit {
                pub mod v3 {
                    tonic::include_proto!("envoy.extensions.common.ratelimit.v3");
                }
            }
        }
    }
    pub mod service {
        pub mod ratelimit {
            pub mod v3 {
                tonic::include_proto!("envoy.service.ratelimit.v3");
            }
        }
    }
    pub mod r#type {
        pub mod v3 {
            tonic::include_proto!("envoy.r#type.v3");
        }
    }
}
