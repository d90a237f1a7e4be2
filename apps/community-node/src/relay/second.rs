//! Whole seconds since 1970, as Nostr counts time.

use headgate::Timestamp;

/// A second since 1970.
pub(crate) type Second = u64;

pub(crate) const SECONDS_A_DAY: Second = 86_400;

/// The second that `at` is in.
pub(crate) fn second_of(at: Timestamp) -> Second {
    at.as_micros() / 1_000_000
}
