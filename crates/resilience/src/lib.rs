//! Helpers for dependencies that fail, and for limits in configurations.
//!
//! | module | contents |
//! |---|---|
//! | `backoff` | the pause before the next retry: exponential, with jitter |
//! | `fail_mode_name` | failure modes in configurations |
//! | `lease_text` | leases in configurations |
//! | `by_cause` | counters of degraded answers, one per cause |

mod backoff;
mod by_cause;
mod fail_mode_name;
mod lease_text;

pub use headgate::OutageLog;

pub use self::{
    backoff::Backoff,
    by_cause::{ByCause, REASON},
    fail_mode_name::FailModeName,
    lease_text::LeaseText,
};
