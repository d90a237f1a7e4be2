use std::time::Duration;

use headgate::Decision;

use crate::{Denied, Reason, Surface};

/// A denial whose surface is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rejection {
    pub(super) reason: Reason,
    pub(super) retry_after: Duration,
    pub(super) decision: Option<Decision>,
    pub(super) window_secs: u64,
}

impl Rejection {
    /// A denial that is not by a rate limit.
    pub(crate) const fn new(reason: Reason, retry_after: Duration) -> Self {
        Self { reason, retry_after, decision: None, window_secs: 0 }
    }

    /// The denial at `surface`.
    pub(crate) const fn at(self, surface: Surface) -> Denied {
        let Self { reason, retry_after, decision, window_secs } = self;
        Denied { surface, reason, retry_after, decision, window_secs }
    }
}
