//! The server over real sockets, in one process, on every surface.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attributes;
mod audit;
mod auth;
mod backend;
mod check;
mod connections;
mod console;
mod counted;
mod docs;
mod early;
mod embedded_rules;
mod envoy;
mod errors;
mod events;
mod forged;
#[cfg(target_os = "linux")]
mod full_disk;
mod grpc;
mod harness;
mod health;
mod keyed;
mod kong;
mod leases;
mod load;
mod many_rules;
mod module_graph;
mod openapi;
mod overload;
mod places;
mod plans;
mod quotas;
mod redis;
mod redis_trouble;
mod reload;
mod replicas;
mod reservations;
mod resets;
mod rule_changes;
mod rule_lists;
mod rules;
mod schemathesis;
mod subjects;
mod times;
mod tls;
mod unknown_fields;
#[cfg(unix)]
mod upgrade;
mod windows;
