//! The gRPC surface: `k1s0.system.ratelimit.v1`, `k1s0.system.quota.v1`, health and reflection, on a listener of their own.
//!
//! | module | what it owns |
//! |---|---|
//! | `surface` | what happens around every call: its id, its time limit, its log line, its metrics |
//! | `methods` | all methods, and their names in metrics |
//! | `rate_limit_service`, `quota_service` | the services: authenticate, act |
//! | `envoy` | the service that Envoy's rate limit filters call |
//! | `caller` | authorization of a call |
//! | `call_metrics` | metrics of calls |
//! | `check`, `rules`, `usage`, `reset` | from messages to the use cases and back |
//! | `error` | every error, and its status |
//! | `health`, `reflection` | the standard services |
//! | `deadline` | the `grpc-timeout` header |
//! | `protocol` | gRPC, and gRPC-Web for callers without HTTP/2 |
//! | `wire` | values that several messages share |
//! | `proto` | code generated from the `.proto` files |

mod call_metrics;
mod caller;
mod check;
mod deadline;
mod envoy;
mod error;
mod health;
mod methods;
mod proto;
mod protocol;
mod quota_service;
mod rate_limit_service;
mod reflection;
mod reset;
mod rules;
mod surface;
mod usage;
mod wire;

pub(crate) use self::{
    call_metrics::CallMetrics,
    envoy::EnvoySurface,
    surface::{Around, Grpc, UseCases},
};
