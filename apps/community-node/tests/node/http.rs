//! The node over HTTP.

mod admin;
mod auth;
mod documents;
mod harness;
mod limits;
mod privacy;
mod proxies;
mod quota;
mod redis;
mod start;
