//! Generated from the `.proto` files.

#![allow(clippy::pedantic, missing_docs, unreachable_pub, reason = "generated code")]

include!(concat!(env!("OUT_DIR"), "/xds.rs"));
