//! Limits that may be zero.

use std::time::Duration;

use headgate::{Extra, LeasePolicy, Limit, LimitError};

/// A [`Limit`], or zero.
///
/// A limit of 0 denies every request; `Retry-After` is the whole window.
///
/// ```
/// use headgate_guard::Allowance;
///
/// let allowance = Allowance::per_minute(120)?;
/// assert_eq!(allowance.limit().map(|limit| limit.capacity()), Some(120));
/// assert!(Allowance::per_minute(0)?.limit().is_none());
/// # Ok::<(), headgate::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    kind: Kind,
    /// Units that a check takes in advance from a shared store.
    extra: Option<Extra>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Limit(Limit),
    Nothing { window: Duration },
}

// === impl Allowance ===

impl Allowance {
    /// A token bucket of `count` that refills in one second.
    pub fn per_second(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(1))
    }

    /// A token bucket of `count` that refills in one minute.
    pub fn per_minute(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(60))
    }

    /// A token bucket of `count` that refills in one hour.
    pub fn per_hour(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(3600))
    }

    /// A token bucket of `count` that refills in one `window`; zero if `count` is 0.
    pub fn per(count: u64, window: Duration) -> Result<Self, LimitError> {
        if count > 0 {
            return Limit::token_bucket(count, window).map(Self::from);
        }
        // The window has to be valid for a limit, too.
        Limit::token_bucket(1, window).map(|_| Self::nothing(window))
    }

    /// Zero: every request is denied, with a wait of `window`.
    pub const fn nothing(window: Duration) -> Self {
        Self { kind: Kind::Nothing { window }, extra: None }
    }

    /// Takes units in advance from a shared store, and hands them out without asking it: see
    /// [`Class::lease`](crate::Class::lease). The hold is shortened to a tenth of the window.
    #[must_use]
    pub fn leased(self, policy: LeasePolicy) -> Self {
        let extra = self.limit().and_then(|limit| {
            policy.shortened_to(limit.window().unwrap_or(Duration::MAX)).extra(limit)
        });
        Self { extra, ..self }
    }

    pub(crate) const fn extra(&self) -> Option<Extra> {
        self.extra
    }

    /// The limit, unless it is zero.
    pub const fn limit(&self) -> Option<&Limit> {
        match &self.kind {
            Kind::Limit(limit) => Some(limit),
            Kind::Nothing { .. } => None,
        }
    }

    /// The limit, or the wait of a limit of zero.
    pub(crate) const fn get(&self) -> Result<&Limit, Duration> {
        match &self.kind {
            Kind::Limit(limit) => Ok(limit),
            Kind::Nothing { window } => Err(*window),
        }
    }

    /// Window in whole seconds, rounded up; 0 for a calendar window.
    pub(crate) fn window_secs(&self) -> u64 {
        let window = match &self.kind {
            Kind::Limit(limit) => limit.window().unwrap_or_default(),
            Kind::Nothing { window } => *window,
        };
        window.as_micros().div_ceil(1_000_000) as u64
    }
}

impl From<Limit> for Allowance {
    fn from(limit: Limit) -> Self {
        Self { kind: Kind::Limit(limit), extra: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_valid_and_an_invalid_window_is_not() {
        assert_eq!(Allowance::per_minute(0), Ok(Allowance::nothing(Duration::from_secs(60))));
        assert_eq!(
            Allowance::per(0, Duration::ZERO),
            Err(LimitError::Window(Duration::ZERO)),
            "as for a limit"
        );
        assert_eq!(Allowance::per(1, Duration::from_millis(1500)).unwrap().window_secs(), 2);
    }
}
