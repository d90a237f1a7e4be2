//! Generated from the `.proto` files.

#![allow(clippy::pedantic, missing_docs, unreachable_pub, reason = "generated code")]

tonic::include_proto!("k1s0.system.ratelimit.v1");

/// Quotas.
pub(super) mod quota {
    tonic::include_proto!("k1s0.system.quota.v1");
}

/// Envoy's messages, in modules that mirror its packages.
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

/// The files themselves, for reflection.
pub(super) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
