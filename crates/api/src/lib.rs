//! The use cases that a server offers over REST and gRPC, and what both have in common.
//!
//! | module | contents |
//! |---|---|
//! | [`rate_limits`] | checks by rules and by key, metered; managing rules |
//! | [`quotas`] | quotas, metered, with one list of errors |
//! | `operations` | [`Operations`]: health, readiness and metrics of a running server |
//! | `access` | [`Access`]: authorization |
//! | `error_codes` | [`Namespace`]: namespaces of error codes |
//! | [`request_id`], `in_time` | ids and deadlines of requests |
//! | `masked` | [`Masked`]: keys masked for logs |
//! | `completion` | work that continues when its caller disconnects |

mod access;
mod completion;
mod error_codes;
mod in_time;
mod masked;
mod operations;
pub mod quotas;
pub mod rate_limits;
pub mod request_id;

pub use self::{
    access::Access, completion::run_to_completion, error_codes::Namespace, in_time::in_time,
    masked::Masked, operations::Operations,
};
