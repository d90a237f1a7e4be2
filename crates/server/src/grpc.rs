//! The gRPC surface: `k1s0.system.ratelimit.v1`, `k1s0.system.quota.v1`, health and reflection, on a listener of their own.
//!
//! | module | what it owns |
//! |---|---|
//! | `surface` | what happens around every call: its id, its time limit, its log line, its numbers |
//! | `methods` | what can be called, and by what name it is counted |
//! | `service` | the rate-limit service: authenticate, act |
//! | `quotas` | the quota service |
//! | `envoy` | the service that Envoy's rate limit filters call |
//! | `caller` | who calls |
//! | `check`, `rules`, `usage`, `reset` | from messages to the use cases and back |
//! | `error` | every error, and how it travels |
//! | `health`, `reflection` | the standard services |
//! | `deadline` | how long a caller waits |
//! | `dialect` | gRPC, or gRPC-Web for callers without HTTP/2 |
//! | `proto` | what the `.proto` files became |

mod caller;
mod check;
mod deadline;
mod dialect;
mod envoy;
mod error;
mod health;
mod methods;
mod number;
mod proto;
mod quotas;
mod reflection;
mod reset;
mod rules;
mod service;
mod subject;
mod surface;
mod time;
mod usage;

pub(crate) use self::{
    envoy::EnvoySurface,
    methods::{METHODS, Method},
    surface::Grpc,
};
