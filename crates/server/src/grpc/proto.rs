//! What the `.proto` files became.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    reason = "made by a program, to a style of its own"
)]

tonic::include_proto!("k1s0.system.ratelimit.v1");

/// Quotas.
pub(super) mod quota {
    tonic::include_proto!("k1s0.system.quota.v1");
}

/// The files themselves, as reflection shows them.
pub(super) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
