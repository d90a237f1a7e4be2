//! Conformance of the DynamoDB store on a real server, also while it fails.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contention;
mod exactness;
mod interchange;
mod layout;
mod outage;
mod setup;
mod support;
mod tls;
