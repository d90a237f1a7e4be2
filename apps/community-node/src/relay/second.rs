//! Nostr's time: whole seconds since 1970.

/// Seconds since 1970.
pub(crate) type Second = u64;

pub(crate) const SECONDS_A_DAY: Second = 86_400;
