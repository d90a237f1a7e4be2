//! The node over HTTP.

mod admin;
mod auth;
mod denylist;
mod docs;
mod documents;
mod early;
mod harness;
mod limits;
mod metrics;
mod penalties;
mod privacy;
mod process;
mod proxies;
mod quota;
mod redis;
mod search;
mod start;
mod tls;
mod unknown_fields;
