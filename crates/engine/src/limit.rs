//! Limits: a number of units, a window and an algorithm.

mod arithmetic;
mod more;

use std::{fmt, num::NonZeroU32, time::Duration};

use thiserror::Error;

use crate::{
    Algorithm, Timestamp,
    algorithm::{Bucket, Calendar, Concurrency, FixedWindow, SlidingWindow, SlidingWindowCounter},
};
#[cfg(feature = "calendar")]
use crate::{
    Cost,
    algorithm::{Period, calendar::Zone},
};

/// The number of units that a subject may take, and the algorithm that counts them. Every value of
/// this type is valid.
///
/// ```
/// use std::time::Duration;
/// use headgate::Limit;
///
/// let api = Limit::token_bucket(100, Duration::from_secs(60))?.with_burst(20)?;
/// let once_in_five_minutes = Limit::cooldown(Duration::from_secs(300))?;
/// assert!(Limit::token_bucket(0, Duration::from_secs(60)).is_err());
/// # Ok::<(), headgate::LimitError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Limit(Parameters);

/// The parameters of an algorithm.
///
/// It is exhaustive on purpose, as [`Verb`](crate::Verb) is: a store that does not handle an
/// algorithm must not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// See [`Algorithm::TokenBucket`].
    TokenBucket(Bucket),
    /// See [`Algorithm::SlidingWindow`].
    SlidingWindow(SlidingWindow),
    /// See [`Algorithm::SlidingWindowCounter`].
    SlidingWindowCounter(SlidingWindowCounter),
    /// See [`Algorithm::FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`Algorithm::LeakyBucket`].
    LeakyBucket(Bucket),
    /// See [`Algorithm::Calendar`].
    Calendar(Calendar),
    /// See [`Algorithm::Concurrency`].
    Concurrency(Concurrency),
}

/// Error for invalid parameters of a limit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The limit is zero.
    #[error("limit must be greater than 0")]
    Zero,
    /// The limit is larger than the algorithm supports.
    #[error("limit of {algorithm} must be at most {max}, got {got}")]
    TooLarge {
        /// The algorithm.
        algorithm: Algorithm,
        /// Largest limit of the algorithm.
        max: u64,
        /// Requested limit.
        got: u64,
    },
    /// The window is too short or too long.
    #[error("window must be between {min:?} and {max:?}, got {0:?}", min = Limit::MIN_WINDOW, max = Limit::MAX_WINDOW)]
    Window(Duration),
    /// The burst is zero.
    #[error("burst must be greater than 0")]
    ZeroBurst,
    /// The bucket takes more than [`Limit::MAX_WINDOW`] to refill.
    #[error("burst must be refilled within {max:?}: lower it, or raise the limit", max = Limit::MAX_WINDOW)]
    BurstTooLarge,
    /// The algorithm has no burst: only buckets do.
    #[error("{0} has no burst: only token_bucket and leaky_bucket do")]
    NoBurst(Algorithm),
    /// Calendar windows have a period instead of a duration.
    #[error("a calendar window needs a period: use Limit::calendar")]
    NeedsPeriod,
    /// The name is not in the bundled time zone database.
    #[error("unknown time zone {0:?}: expected an IANA name such as Asia/Tokyo")]
    UnknownZone(String),
}

// === construction ===

impl Limit {
    /// The shortest window.
    pub const MIN_WINDOW: Duration = Duration::from_millis(1);

    /// The longest window.
    pub const MAX_WINDOW: Duration = Duration::from_hours(24 * 366);

    /// Largest limit of the log, which may have an entry for each unit.
    pub const MAX_LOG: u64 = 100_000;

    /// Largest concurrency limit: each place may have a holder of its own.
    pub const MAX_PLACES: u64 = 100_000;

    /// Largest debt of a subject, as a multiple of the limit: an overdraft takes no more.
    pub const MAX_DEBT: u64 = 15;

    /// A bucket that holds `limit` units and refills as many every `window`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// // 100 a minute on average, at most 20 at once.
    /// let limit = Limit::token_bucket(100, Duration::from_secs(60))?.with_burst(20)?;
    /// assert_eq!(limit.capacity(), 20);
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn token_bucket(limit: u64, window: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::TokenBucket, limit, window)
    }

    /// One unit per `period`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::{Algorithm, Limit};
    ///
    /// let cooldown = Limit::cooldown(Duration::from_secs(300))?;
    /// assert_eq!((cooldown.algorithm(), cooldown.capacity()), (Algorithm::TokenBucket, 1));
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn cooldown(period: Duration) -> Result<Self, LimitError> {
        Self::token_bucket(1, period)
    }

    /// A bucket that takes `limit` units and drains as many every `window`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// let limit = Limit::leaky_bucket(10, Duration::from_secs(1))?;
    /// assert_eq!(limit.window(), Some(Duration::from_secs(1)));
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn leaky_bucket(limit: u64, window: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::LeakyBucket, limit, window)
    }

    /// Exactly `limit` units in any interval of the length of `window`.
    ///
    /// It records when each unit was taken; `limit` is at most [`MAX_LOG`](Self::MAX_LOG).
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// let hour = Duration::from_secs(3600);
    /// assert!(Limit::sliding_window(Limit::MAX_LOG, hour).is_ok());
    /// assert!(Limit::sliding_window(Limit::MAX_LOG + 1, hour).is_err());
    /// ```
    pub fn sliding_window(limit: u64, window: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::SlidingWindow, limit, window)
    }

    /// `limit` units in any `window`, as estimated by two counters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// let limit = Limit::sliding_window_counter(1_000_000, Duration::from_secs(3600))?;
    /// assert_eq!(limit.capacity(), 1_000_000);
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn sliding_window_counter(limit: u64, window: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::SlidingWindowCounter, limit, window)
    }

    /// `limit` units between one multiple of `window` and the next.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// let limit = Limit::fixed_window(100, Duration::from_secs(60))?;
    /// assert!(limit.with_burst(20).is_err(), "only buckets have a burst");
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn fixed_window(limit: u64, window: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::FixedWindow, limit, window)
    }

    /// At most `limit` places at a time, each held under a lease of at most `longest_lease`.
    ///
    /// Places are taken with [`BatchLimiter::acquire`](crate::BatchLimiter::acquire), which has an
    /// example; `limit` is at most [`MAX_PLACES`](Self::MAX_PLACES). A check that names no lease, as
    /// those of a [`RateLimiter`](crate::RateLimiter), holds its places for the longest one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::Limit;
    ///
    /// let limit = Limit::concurrency(10, Duration::from_secs(30))?;
    /// assert_eq!(limit.window(), Some(Duration::from_secs(30)));
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn concurrency(limit: u64, longest_lease: Duration) -> Result<Self, LimitError> {
        Self::new(Algorithm::Concurrency, limit, longest_lease)
    }

    /// `limit` units in every `period` of the time zone with this IANA name. Needs the feature
    /// `calendar`, which is on by default.
    ///
    /// ```
    /// use headgate::{Limit, algorithm::Period};
    ///
    /// let quota = Limit::calendar(10_000, Period::Month, "Asia/Tokyo")?;
    /// assert_eq!(quota.window(), None, "months differ in length");
    /// assert!(Limit::calendar(10_000, Period::Month, "Asia/Nowhere").is_err());
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    #[cfg(feature = "calendar")]
    pub fn calendar(limit: u64, period: Period, zone: &str) -> Result<Self, LimitError> {
        bounded(Algorithm::Calendar, limit, Cost::MAX)?;
        let unknown = || LimitError::UnknownZone(zone.chars().take(64).collect());
        let zone = Zone::named(zone).ok_or_else(unknown)?;
        Ok(Self(Parameters::Calendar(Calendar { limit, period, zone })))
    }

    /// `limit` units per `window`, counted by `algorithm`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use headgate::{Algorithm, Limit};
    ///
    /// let window = Duration::from_secs(60);
    /// let limit = Limit::new(Algorithm::LeakyBucket, 100, window)?;
    /// assert_eq!(limit, Limit::leaky_bucket(100, window)?);
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    pub fn new(algorithm: Algorithm, limit: u64, window: Duration) -> Result<Self, LimitError> {
        let max = match algorithm {
            Algorithm::SlidingWindow => Self::MAX_LOG,
            Algorithm::Concurrency => Self::MAX_PLACES,
            _ => u64::from(u32::MAX),
        };
        let limit = bounded(algorithm, limit, max)? as u32;
        if !(Self::MIN_WINDOW..=Self::MAX_WINDOW).contains(&window) {
            return Err(LimitError::Window(window));
        }
        let window = window.as_micros() as u64;
        Ok(Self(match algorithm {
            Algorithm::TokenBucket => Parameters::TokenBucket(Bucket::new(limit, window, limit)),
            Algorithm::LeakyBucket => Parameters::LeakyBucket(Bucket::new(limit, window, limit)),
            Algorithm::SlidingWindow => Parameters::SlidingWindow(SlidingWindow { limit, window }),
            Algorithm::SlidingWindowCounter => {
                Parameters::SlidingWindowCounter(SlidingWindowCounter { limit, window })
            }
            Algorithm::FixedWindow => Parameters::FixedWindow(FixedWindow { limit, window }),
            Algorithm::Concurrency => Parameters::Concurrency(Concurrency { limit, window }),
            Algorithm::Calendar => return Err(LimitError::NeedsPeriod),
        }))
    }

    /// Sets the capacity of a bucket, which is `limit` otherwise. The rate stays the same.
    pub fn with_burst(mut self, burst: u64) -> Result<Self, LimitError> {
        let algorithm = self.algorithm();
        let (Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket)) = &mut self.0
        else {
            return Err(LimitError::NoBurst(algorithm));
        };
        let burst = match u32::try_from(burst) {
            Ok(0) => return Err(LimitError::ZeroBurst),
            Ok(burst) => burst,
            Err(_) => return Err(LimitError::BurstTooLarge),
        };
        let grains = u128::from(burst) * u128::from(bucket.window());
        if grains.div_ceil(bucket.rate().into()) > Self::MAX_WINDOW.as_micros() {
            return Err(LimitError::BurstTooLarge);
        }
        *bucket = Bucket::new(bucket.rate(), bucket.window(), burst);
        Ok(self)
    }

    /// One of `parts` equal shares of this limit, each at least 1.
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use headgate::Limit;
    ///
    /// let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// assert_eq!(limit.share(NonZeroU32::new(4).unwrap()).capacity(), 25);
    /// # Ok::<(), headgate::LimitError>(())
    /// ```
    #[must_use]
    pub fn share(&self, parts: NonZeroU32) -> Self {
        let small = |n: u32| (n / parts).max(1);
        Self(match self.0.clone() {
            Parameters::TokenBucket(b) => Parameters::TokenBucket(b.share(small)),
            Parameters::LeakyBucket(b) => Parameters::LeakyBucket(b.share(small)),
            Parameters::SlidingWindow(w) => {
                Parameters::SlidingWindow(SlidingWindow { limit: small(w.limit), ..w })
            }
            Parameters::SlidingWindowCounter(w) => {
                Parameters::SlidingWindowCounter(SlidingWindowCounter {
                    limit: small(w.limit),
                    ..w
                })
            }
            Parameters::FixedWindow(w) => {
                Parameters::FixedWindow(FixedWindow { limit: small(w.limit), ..w })
            }
            Parameters::Calendar(c) => {
                let limit = (c.limit / u64::from(parts.get())).max(1);
                Parameters::Calendar(Calendar { limit, ..c })
            }
            Parameters::Concurrency(c) => {
                Parameters::Concurrency(Concurrency { limit: small(c.limit), ..c })
            }
        })
    }
}

impl Bucket {
    fn share(self, small: impl Fn(u32) -> u32) -> Self {
        Self::new(small(self.rate()), self.window(), small(self.burst()))
    }
}

fn bounded(algorithm: Algorithm, limit: u64, max: u64) -> Result<u64, LimitError> {
    match limit {
        0 => Err(LimitError::Zero),
        got if got > max => Err(LimitError::TooLarge { algorithm, max, got }),
        limit => Ok(limit),
    }
}

// === accessors ===

impl Limit {
    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        match self.0 {
            Parameters::TokenBucket(_) => Algorithm::TokenBucket,
            Parameters::SlidingWindow(_) => Algorithm::SlidingWindow,
            Parameters::SlidingWindowCounter(_) => Algorithm::SlidingWindowCounter,
            Parameters::FixedWindow(_) => Algorithm::FixedWindow,
            Parameters::LeakyBucket(_) => Algorithm::LeakyBucket,
            Parameters::Calendar(_) => Algorithm::Calendar,
            Parameters::Concurrency(_) => Algorithm::Concurrency,
        }
    }

    /// The algorithm with its parameters.
    pub const fn parameters(&self) -> &Parameters {
        &self.0
    }

    /// Maximum number of units available at once, and so the largest cost that can be admitted.
    pub const fn capacity(&self) -> u64 {
        match &self.0 {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                bucket.burst() as u64
            }
            Parameters::SlidingWindow(window) => window.limit as u64,
            Parameters::SlidingWindowCounter(window) => window.limit as u64,
            Parameters::FixedWindow(window) => window.limit as u64,
            Parameters::Calendar(calendar) => calendar.limit,
            Parameters::Concurrency(places) => places.limit as u64,
        }
    }

    /// The window, which is the longest lease of a concurrency limit; `None` for a calendar window.
    pub const fn window(&self) -> Option<Duration> {
        let micros = match &self.0 {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => bucket.window(),
            Parameters::SlidingWindow(window) => window.window,
            Parameters::SlidingWindowCounter(window) => window.window,
            Parameters::FixedWindow(window) => window.window,
            Parameters::Concurrency(places) => places.window,
            Parameters::Calendar(_) => return None,
        };
        Some(Duration::from_micros(micros))
    }

    /// The parameters, if it is a concurrency limit.
    pub const fn places(&self) -> Option<&Concurrency> {
        match &self.0 {
            Parameters::Concurrency(places) => Some(places),
            _ => None,
        }
    }

    /// The end of the aligned window that contains `now`: its units must be spent before. `None`
    /// for algorithms without aligned windows.
    pub(crate) fn window_end(&self, now: Timestamp) -> Option<Timestamp> {
        let next = |window: u64| (now.as_micros() / window + 1) * window;
        Some(Timestamp::from_micros(match &self.0 {
            Parameters::FixedWindow(fixed) => fixed.end(now),
            Parameters::SlidingWindowCounter(counter) => next(counter.window),
            Parameters::Calendar(calendar) => calendar.bounds(now).1,
            Parameters::TokenBucket(_)
            | Parameters::LeakyBucket(_)
            | Parameters::SlidingWindow(_)
            | Parameters::Concurrency(_) => return None,
        }))
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
