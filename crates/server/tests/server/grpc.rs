//! `k1s0.system.ratelimit.v1`, health and reflection, as gRPC clients see them.

mod attributes;
mod auth;
mod check;
pub(crate) mod client;
mod errors;
mod health;
mod outage;
mod places;
mod plans;
mod raw;
mod reservations;
mod rules;
mod streams;
mod subjects;
mod surface;
mod web;
