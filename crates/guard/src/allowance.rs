//! How much somebody may have, which may be nothing.

use std::time::Duration;

use headgate::{Limit, LimitError};

/// A [`Limit`], or nothing at all.
///
/// A limit of 0 denies everybody, and tells them to wait for the whole window.
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
pub struct Allowance(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Limit(Limit),
    Nothing { window: Duration },
}

// === impl Allowance ===

impl Allowance {
    /// A bucket of `count` that refills as many every second.
    pub fn per_second(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(1))
    }

    /// A bucket of `count` that refills as many every minute.
    pub fn per_minute(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(60))
    }

    /// A bucket of `count` that refills as many every hour.
    pub fn per_hour(count: u64) -> Result<Self, LimitError> {
        Self::per(count, Duration::from_secs(3600))
    }

    /// A bucket of `count` that refills as many every `window`; nothing if `count` is 0.
    pub fn per(count: u64, window: Duration) -> Result<Self, LimitError> {
        if count > 0 {
            return Limit::token_bucket(count, window).map(Self::from);
        }
        // What is no window of a limit is none of a denial either.
        Limit::token_bucket(1, window).map(|_| Self::nothing(window))
    }

    /// Nothing: everybody is denied, and told to come back after `window`.
    pub const fn nothing(window: Duration) -> Self {
        Self(Kind::Nothing { window })
    }

    /// The limit, unless nothing is allowed.
    pub const fn limit(&self) -> Option<&Limit> {
        match &self.0 {
            Kind::Limit(limit) => Some(limit),
            Kind::Nothing { .. } => None,
        }
    }

    /// The limit, or how long those wait who get nothing.
    pub(crate) const fn get(&self) -> Result<&Limit, Duration> {
        match &self.0 {
            Kind::Limit(limit) => Ok(limit),
            Kind::Nothing { window } => Err(*window),
        }
    }

    /// Whole seconds of the window, rounded up; 0 for a calendar's.
    pub(crate) fn window_secs(&self) -> u64 {
        let window = match &self.0 {
            Kind::Limit(limit) => limit.window().unwrap_or_default(),
            Kind::Nothing { window } => *window,
        };
        window.as_micros().div_ceil(1_000_000) as u64
    }
}

impl From<Limit> for Allowance {
    fn from(limit: Limit) -> Self {
        Self(Kind::Limit(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_an_allowance_and_a_window_that_cannot_be_is_none() {
        assert_eq!(Allowance::per_minute(0), Ok(Allowance::nothing(Duration::from_secs(60))));
        assert_eq!(
            Allowance::per(0, Duration::ZERO),
            Err(LimitError::Window(Duration::ZERO)),
            "as for a limit"
        );
        assert_eq!(Allowance::per(1, Duration::from_millis(1500)).unwrap().window_secs(), 2);
    }
}
