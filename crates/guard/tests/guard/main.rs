//! Behaviour of the guards: real servers and clients on loopback, real Redis, an injected clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod degraded;
mod docs;
mod early;
mod escalation;
mod flood;
mod grpc;
mod http;
mod in_flight;
mod ipv6;
mod keys;
mod live;
mod peers;
mod privacy;
mod proxies;
mod redis;
mod reserve;
mod shared_in_flight;
mod stages;
mod support;
mod unknown_peer;
mod websocket;
