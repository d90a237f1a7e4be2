//! What the `.proto` files became.

#![allow(
    clippy::pedantic,
    missing_docs,
    unreachable_pub,
    reason = "made by a program, to a style of its own"
)]

include!(concat!(env!("OUT_DIR"), "/xds/mod.rs"));
