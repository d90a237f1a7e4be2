mod overrides;
mod sizes;

use headgate::LeasePolicy;
use headgate_config::{Bounded, Print, Printed, Problem, print_sections, quoted};
use headgate_ratelimit::{KeyedAlgorithm, KeyedLimit, KeyedLimits, PerAlgorithm};
use headgate_resilience::{FailModeName, LeaseText};
use serde::Deserialize;

use self::sizes::Sizes;
use super::WindowSize;

pub use self::overrides::{
    LeakyBucketOverride, OverrideConfig, TokenBucketOverride, WindowOverride,
};

/// A capacity or rate of a limit.
pub type Units = Bounded<1, { u32::MAX as u64 }>;

/// Limits of checks by key, one per algorithm.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RateLimiterConfig {
    /// `rate_limiter.algorithm`: algorithm of requests that name none.
    pub algorithm: AlgorithmName,
    /// `rate_limiter.fail_mode`: fail mode while the store is down.
    pub fail_mode: FailModeName,
    /// `rate_limiter.lease`: part of each limit that a server takes in advance from Redis; default:
    /// `ratelimit.lease`.
    pub lease: Option<LeaseText>,
    /// `rate_limiter.token_bucket`: limit of `TOKEN_BUCKET`.
    pub token_bucket: TokenBucketConfig,
    /// `rate_limiter.sliding_window`: limit of `SLIDING_WINDOW`.
    pub sliding_window: WindowConfig,
    /// `rate_limiter.sliding_window_counter`: limit of `SLIDING_WINDOW_COUNTER`.
    pub sliding_window_counter: WindowConfig,
    /// `rate_limiter.fixed_window`: limit of `FIXED_WINDOW`.
    pub fixed_window: WindowConfig,
    /// `rate_limiter.leaky_bucket`: limit of `LEAKY_BUCKET`.
    pub leaky_bucket: LeakyBucketConfig,
    /// `rate_limiter.overrides`: other limits for keys with a given prefix.
    pub overrides: Vec<OverrideConfig>,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct TokenBucketConfig {
    /// Maximum number of tokens.
    pub capacity: Units,
    /// Tokens added per second.
    pub refill_rate: Units,
}

/// A leaky bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct LeakyBucketConfig {
    /// Maximum level.
    pub capacity: Units,
    /// Units drained per second.
    pub leak_rate: Units,
}

/// A fixed or sliding window.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct WindowConfig {
    /// Units admitted per window.
    pub max_requests: Units,
    /// Length of the window.
    pub window_size: WindowSize,
}

/// The name of an algorithm, in upper or lower case.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct AlgorithmName(KeyedAlgorithm);

const SECTION: &str = "rate_limiter";

// === impl RateLimiterConfig ===

impl RateLimiterConfig {
    /// Compiles the limits and overrides; `lease` is theirs unless they set one.
    pub(crate) fn limits(&self, lease: LeasePolicy) -> Result<KeyedLimits, Problem> {
        let (sizes, lease) = (self.sizes(), self.lease.map_or(lease, LeaseText::get));
        let defaults = PerAlgorithm::try_from_fn(|algorithm| sizes.limit(SECTION, algorithm))?;
        let defaults = defaults.map(|limit| KeyedLimit::new(limit, lease));
        let mut limits = KeyedLimits::new(self.fail_mode.get(), defaults);
        for (place, changed) in self.overrides.iter().enumerate() {
            let section = format!("{SECTION}.overrides[{place}]");
            changed.check(&self.overrides[..place]).map_err(|problem| problem.within(&section))?;
            let (sizes, lease) =
                (changed.over(&sizes), changed.lease.map_or(lease, LeaseText::get));
            for algorithm in KeyedAlgorithm::ALL.into_iter().filter(|it| changed.overrides(*it)) {
                let limit = KeyedLimit::new(sizes.limit(&section, algorithm)?, lease);
                limits = limits.with_override(algorithm, &changed.prefix, limit);
            }
        }
        Ok(limits)
    }

    const fn sizes(&self) -> Sizes {
        Sizes {
            token_bucket: self.token_bucket,
            sliding_window: self.sliding_window,
            sliding_window_counter: self.sliding_window_counter,
            fixed_window: self.fixed_window,
            leaky_bucket: self.leaky_bucket,
        }
    }
}

// === defaults ===

impl Default for TokenBucketConfig {
    fn default() -> Self {
        Self { capacity: Bounded::of::<100>(), refill_rate: Bounded::of::<10>() }
    }
}

impl Default for LeakyBucketConfig {
    fn default() -> Self {
        Self { capacity: Bounded::of::<100>(), leak_rate: Bounded::of::<10>() }
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { max_requests: Bounded::of::<100>(), window_size: WindowSize::from_secs(60) }
    }
}

// === impl AlgorithmName ===

impl AlgorithmName {
    /// Returns the algorithm.
    pub const fn get(self) -> KeyedAlgorithm {
        self.0
    }
}

impl TryFrom<String> for AlgorithmName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let known = KeyedAlgorithm::ALL.map(KeyedAlgorithm::name).join(", ");
        let expected = |_| format!("expected one of {known}, got {}", quoted(&text));
        text.parse().map(Self).map_err(expected)
    }
}

// === impl Print ===

print_sections! {
    RateLimiterConfig {
        algorithm, fail_mode, lease, token_bucket, sliding_window, sliding_window_counter, fixed_window,
        leaky_bucket, overrides,
    }
    TokenBucketConfig { capacity, refill_rate }
    LeakyBucketConfig { capacity, leak_rate }
    WindowConfig { max_requests, window_size }
}

impl Print for AlgorithmName {
    fn print(&self) -> Printed {
        Printed::scalar(self.get().name())
    }
}

#[cfg(test)]
mod tests;
