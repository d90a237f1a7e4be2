mod overrides;
mod sizes;

use headgate_config::{Bounded, Print, Printed, Problem, print_sections, quoted};
use headgate_ratelimit::{KeyedAlgorithm, KeyedLimits, PerAlgorithm};
use headgate_resilience::FailModeName;
use serde::Deserialize;

use self::sizes::Sizes;
use super::WindowSize;

pub use self::overrides::{
    LeakyBucketOverride, OverrideConfig, TokenBucketOverride, WindowOverride,
};

/// A number that a limit can count to.
pub type Units = Bounded<1, { u32::MAX as u64 }>;

/// What is allowed to keys that no rule is about, by the name of an algorithm.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RateLimiterConfig {
    /// `rate_limiter.algorithm`: which one counts where a caller names none.
    pub algorithm: AlgorithmName,
    /// `rate_limiter.fail_mode`: who decides while the store cannot.
    pub fail_mode: FailModeName,
    /// `rate_limiter.token_bucket`: what is allowed under `TOKEN_BUCKET`.
    pub token_bucket: TokenBucketConfig,
    /// `rate_limiter.sliding_window`: what is allowed under `SLIDING_WINDOW`.
    pub sliding_window: WindowConfig,
    /// `rate_limiter.sliding_window_counter`: what is allowed under `SLIDING_WINDOW_COUNTER`.
    pub sliding_window_counter: WindowConfig,
    /// `rate_limiter.fixed_window`: what is allowed under `FIXED_WINDOW`.
    pub fixed_window: WindowConfig,
    /// `rate_limiter.leaky_bucket`: what is allowed under `LEAKY_BUCKET`.
    pub leaky_bucket: LeakyBucketConfig,
    /// `rate_limiter.overrides`: what is allowed to keys with certain beginnings instead.
    pub overrides: Vec<OverrideConfig>,
}

/// A bucket that refills.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct TokenBucketConfig {
    /// The most tokens it holds.
    pub capacity: Units,
    /// Tokens that flow back every second.
    pub refill_rate: Units,
}

/// A bucket that drains.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct LeakyBucketConfig {
    /// The most that it takes in.
    pub capacity: Units,
    /// How much drains every second.
    pub leak_rate: Units,
}

/// So many in so long.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct WindowConfig {
    /// How many.
    pub max_requests: Units,
    /// In how long.
    pub window_size: WindowSize,
}

/// The name of an algorithm, in either case.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct AlgorithmName(KeyedAlgorithm);

const SECTION: &str = "rate_limiter";

// === impl RateLimiterConfig ===

impl RateLimiterConfig {
    /// What is allowed, compiled.
    pub(crate) fn limits(&self) -> Result<KeyedLimits, Problem> {
        let sizes = self.sizes();
        let defaults = PerAlgorithm::try_from_fn(|algorithm| sizes.limit(SECTION, algorithm))?;
        let mut limits = KeyedLimits::new(self.fail_mode.get(), defaults);
        for (place, changed) in self.overrides.iter().enumerate() {
            let section = format!("{SECTION}.overrides[{place}]");
            changed.check(&self.overrides[..place]).map_err(|problem| problem.within(&section))?;
            let sizes = changed.over(&sizes);
            for algorithm in KeyedAlgorithm::ALL.into_iter().filter(|it| changed.says(*it)) {
                let limit = sizes.limit(&section, algorithm)?;
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
    /// Which one it names.
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
        algorithm, fail_mode, token_bucket, sliding_window, sliding_window_counter, fixed_window,
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
