//! How much of a limit an instance may take in advance, and for how long.

use std::{fmt, str::FromStr, time::Duration};

use thiserror::Error;

use crate::{Extra, Limit};

/// The part of a limit that an instance may take in advance, and how long it may hold it.
///
/// It is written as percentage and hold, or `off`:
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{LeasePolicy, Limit};
///
/// let policy: LeasePolicy = "10%/200ms".parse()?;
/// assert_eq!((policy.share_percent(), policy.hold_ms()), (10, 200));
/// assert_eq!(policy.to_string(), "10%/200ms");
///
/// let limit = Limit::token_bucket(1_000, Duration::from_secs(60))?;
/// assert_eq!(policy.extra(&limit).map(|extra| extra.units()), Some(100));
/// // A tenth of 9 is less than one unit: every decision asks the store.
/// let limit = Limit::token_bucket(9, Duration::from_secs(60))?;
/// assert!(policy.extra(&limit).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeasePolicy {
    share_percent: u8,
    hold_ms: u16,
}

/// Error for a lease out of bounds.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeasePolicyError {
    /// The share is not 1 to 50 percent.
    #[error("share_percent must be {min} to {max}", min = LeasePolicy::MIN_SHARE_PERCENT, max = LeasePolicy::MAX_SHARE_PERCENT)]
    Share,
    /// The hold is too short or too long.
    #[error("hold_ms must be {min} to {max}", min = LeasePolicy::MIN_HOLD_MS, max = LeasePolicy::MAX_HOLD_MS)]
    Hold,
    /// The hold is longer than a tenth of the window.
    #[error("hold_ms must be at most {max_ms}, a tenth of the window")]
    LongForWindow {
        /// A tenth of the window, in milliseconds.
        max_ms: u64,
    },
    /// The text is neither `off` nor of the form `10%/200ms`.
    #[error("expected a share and a hold such as 10%/200ms, or off")]
    Text,
}

// === impl LeasePolicy ===

impl LeasePolicy {
    /// No leases.
    pub const OFF: Self = Self { share_percent: 0, hold_ms: 0 };

    /// Smallest share, in percent.
    pub const MIN_SHARE_PERCENT: u64 = 1;

    /// Largest share, in percent.
    pub const MAX_SHARE_PERCENT: u64 = 50;

    /// Shortest hold, in milliseconds.
    pub const MIN_HOLD_MS: u64 = 10;

    /// Longest hold, in milliseconds.
    pub const MAX_HOLD_MS: u64 = Extra::MAX_HOLD.as_millis() as u64;

    /// Leases of `share_percent` of a limit for `hold_ms` milliseconds.
    pub const fn new(share_percent: u64, hold_ms: u64) -> Result<Self, LeasePolicyError> {
        if share_percent < Self::MIN_SHARE_PERCENT || share_percent > Self::MAX_SHARE_PERCENT {
            return Err(LeasePolicyError::Share);
        }
        if hold_ms < Self::MIN_HOLD_MS || hold_ms > Self::MAX_HOLD_MS {
            return Err(LeasePolicyError::Hold);
        }
        Ok(Self { share_percent: share_percent as u8, hold_ms: hold_ms as u16 })
    }

    /// Longest hold in a window of this length, in milliseconds.
    pub const fn max_hold_ms(window: Duration) -> u64 {
        let tenth = window.as_millis() / 10;
        if tenth < Self::MAX_HOLD_MS as u128 { tenth as u64 } else { Self::MAX_HOLD_MS }
    }

    /// The same policy, if its hold is at most a tenth of `window`.
    pub const fn for_window(self, window: Duration) -> Result<Self, LeasePolicyError> {
        let max_ms = Self::max_hold_ms(window);
        if self.hold_ms as u64 > max_ms {
            return Err(LeasePolicyError::LongForWindow { max_ms });
        }
        Ok(self)
    }

    /// The same policy with its hold shortened to a tenth of `window`; off if that is too short.
    #[must_use]
    pub const fn shortened_to(self, window: Duration) -> Self {
        let max_ms = Self::max_hold_ms(window);
        if self.hold_ms as u64 <= max_ms {
            return self;
        }
        if max_ms < Self::MIN_HOLD_MS { Self::OFF } else { Self { hold_ms: max_ms as u16, ..self } }
    }

    /// Share of the limit in percent; 0 if it is off.
    pub const fn share_percent(self) -> u8 {
        self.share_percent
    }

    /// The hold in milliseconds; 0 if it is off.
    pub const fn hold_ms(self) -> u16 {
        self.hold_ms
    }

    /// Returns `true` if nothing is leased.
    pub const fn is_off(self) -> bool {
        self.share_percent == 0
    }

    /// The most that a check of `limit` takes in advance; `None` if that is less than one unit.
    pub fn extra(self, limit: &Limit) -> Option<Extra> {
        let units = u128::from(self.share_percent) * u128::from(limit.capacity()) / 100;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let hold = Duration::from_millis(self.hold_ms.into());
        (units > 0).then(|| Extra::new(units, hold))
    }
}

impl FromStr for LeasePolicy {
    type Err = LeasePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::OFF);
        }
        let parts = || {
            let (share, hold) = text.split_once('/')?;
            let number = |digits: &str| {
                let is_plain = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
                is_plain.then(|| digits.parse().unwrap_or(u64::MAX))
            };
            Some((number(share.strip_suffix('%')?)?, number(hold.strip_suffix("ms")?)?))
        };
        let (share_percent, hold_ms) = parts().ok_or(LeasePolicyError::Text)?;
        Self::new(share_percent, hold_ms)
    }
}

impl fmt::Display for LeasePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_off() {
            return f.write_str("off");
        }
        write!(f, "{}%/{}ms", self.share_percent, self.hold_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are_written() {
        for text in ["off", "1%/10ms", "10%/200ms", "50%/1000ms"] {
            assert_eq!(text.parse::<LeasePolicy>().unwrap().to_string(), text);
        }
        for text in ["", "on", "10%", "10/200ms", "10%/200", "+1%/20ms", "1.5%/20ms", "1%/1s"] {
            assert_eq!(text.parse::<LeasePolicy>(), Err(LeasePolicyError::Text), "{text}");
        }
        let huge = format!("{0}%/{0}ms", u128::MAX);
        for text in ["0%/200ms", "51%/200ms", &huge] {
            assert_eq!(text.parse::<LeasePolicy>(), Err(LeasePolicyError::Share), "{text}");
        }
        for text in ["1%/9ms", "1%/1001ms"] {
            assert_eq!(text.parse::<LeasePolicy>(), Err(LeasePolicyError::Hold), "{text}");
        }
        let error = LeasePolicyError::Share.to_string();
        assert_eq!(error, "share_percent must be 1 to 50");
    }

    #[test]
    fn a_hold_is_at_most_a_tenth_of_the_window() {
        let policy = LeasePolicy::new(10, 200).unwrap();
        let seconds = Duration::from_secs;
        assert_eq!((policy.share_percent(), policy.hold_ms()), (10, 200));
        assert_eq!(policy.for_window(seconds(2)), Ok(policy));
        let error = policy.for_window(seconds(1)).unwrap_err();
        assert_eq!(error.to_string(), "hold_ms must be at most 100, a tenth of the window");
        assert_eq!(policy.shortened_to(seconds(2)), policy);
        assert_eq!(policy.shortened_to(seconds(1)).to_string(), "10%/100ms");
        assert_eq!(policy.shortened_to(Duration::from_millis(100)).hold_ms(), 10);
        assert_eq!(policy.shortened_to(Duration::from_millis(99)), LeasePolicy::OFF);
        assert_eq!(LeasePolicy::max_hold_ms(Duration::MAX), 1_000);
    }

    #[test]
    fn less_than_one_unit_is_not_leased() {
        let units = |policy: LeasePolicy, limit| {
            let limit = Limit::fixed_window(limit, Duration::from_secs(60)).unwrap();
            policy.extra(&limit).map(Extra::units)
        };
        let policy = LeasePolicy::new(10, 200).unwrap();
        assert_eq!(units(policy, 9), None);
        assert_eq!(units(policy, 10), Some(1));
        assert_eq!(units(policy, 1_999), Some(199));
        assert_eq!(units(LeasePolicy::OFF, 1_000), None);
        let extra = policy.extra(&Limit::fixed_window(10, Duration::from_secs(60)).unwrap());
        assert_eq!(extra.map(Extra::hold), Some(Duration::from_millis(200)));
    }
}
