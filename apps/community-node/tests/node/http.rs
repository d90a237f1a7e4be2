//! The node over HTTP.

mod admin;
mod auth;
mod docs;
mod documents;
mod harness;
mod limits;
mod privacy;
mod process;
mod proxies;
mod quota;
mod redis;
mod start;
