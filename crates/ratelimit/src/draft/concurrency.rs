//! Validation of concurrency limits.

use headgate::{Lease, LeasePolicy};
use headgate_admin::{FieldError, FieldReader};

/// Reports fields that a concurrency limit does not have: its window is the longest lease of a
/// place, and places are not taken in advance.
pub(super) fn check(
    reader: &mut FieldReader,
    lease: Option<LeasePolicy>,
    window_seconds: Option<u32>,
) {
    if lease.is_some_and(|lease| lease != LeasePolicy::OFF) {
        let message = "a concurrency limit cannot be taken in advance: leave out lease";
        reader.add(FieldError { field: "lease", reason: "invalid", message: message.to_owned() });
    }
    let max = Lease::MAX_DURATION.as_secs();
    if window_seconds.is_some_and(|seconds| u64::from(seconds) > max) {
        let message = format!(
            "window_seconds of a concurrency limit is its longest lease, at most {max}: holders \
             renew their leases"
        );
        reader.add(FieldError { field: "window_seconds", reason: "too_large", message });
    }
}
