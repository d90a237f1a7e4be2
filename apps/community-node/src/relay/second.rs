//! Whole seconds since 1970, as Nostr counts time.

/// A second since 1970.
pub(crate) type Second = u64;

pub(crate) const SECONDS_A_DAY: Second = 86_400;
