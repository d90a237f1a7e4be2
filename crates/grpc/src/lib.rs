//! The gRPC surface, on a listener of its own: `k1s0.system.ratelimit.v1`, `k1s0.system.quota.v1`,
//! Envoy's `envoy.service.ratelimit.v3`, health and reflection.
//!
//! | module | contents |
//! |---|---|
//! | `surface` | id, timeout, log line and metrics of every call |
//! | `methods` | all methods, and their names in metrics |
//! | `rate_limit_service`, `quota_service` | the services: authenticate, act |
//! | `envoy` | the service for Envoy's rate limit filters |
//! | `caller` | authorization of a call |
//! | `call_body` | request bodies, which the server ends if they are streams |
//! | `call_metrics` | metrics of calls |
//! | `check`, `rules`, `usage`, `reset` | conversion between messages and use cases |
//! | `error` | every error, and its status |
//! | `health`, `reflection` | the standard services |
//! | `deadline` | the `grpc-timeout` header |
//! | `protocol` | gRPC, and gRPC-Web for callers without HTTP/2 |
//! | `wire` | values that several messages share |
//! | `proto` | code generated from the `.proto` files |

mod call_body;
mod call_metrics;
mod caller;
mod check;
mod deadline;
mod envoy;
mod error;
mod health;
mod holders;
mod metered;
mod methods;
mod overrides;
mod places;
mod proto;
mod protocol;
mod quota_service;
mod rate_limit_service;
mod reflection;
mod reservations;
mod reset;
mod rules;
mod surface;
mod usage;
mod wire;

pub use self::{
    call_metrics::CallMetrics,
    envoy::{EnvoySettings, EnvoySurface},
    surface::{Around, Grpc, UseCases},
};
