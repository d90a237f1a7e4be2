use std::time::Duration;

use headgate::Decision;

use crate::{Denied, Reason, Surface};

/// A denial that does not know yet where it happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(super) reason: Reason,
    pub(super) retry_after: Duration,
    pub(super) decision: Option<Decision>,
    pub(super) window_secs: u64,
}

impl Refusal {
    /// One that no rate has to do with.
    pub(crate) const fn new(reason: Reason, retry_after: Duration) -> Self {
        Self { reason, retry_after, decision: None, window_secs: 0 }
    }

    /// The denial at `surface`.
    pub(crate) const fn at(self, surface: Surface) -> Denied {
        let Self { reason, retry_after, decision, window_secs } = self;
        Denied { surface, reason, retry_after, decision, window_secs }
    }
}
