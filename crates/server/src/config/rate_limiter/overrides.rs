//! Limits for keys with a given prefix.

use headgate::{Key, KeyError};
use headgate_config::{Problem, print_sections};
use headgate_ratelimit::KeyedAlgorithm;
use headgate_resilience::LeaseText;
use serde::Deserialize;

use super::{LeakyBucketConfig, Sizes, TokenBucketConfig, Units, WindowConfig, WindowSize};

/// Limits for keys that begin with `prefix`. Omitted values are those of `rate_limiter`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct OverrideConfig {
    /// Prefix of the keys.
    pub prefix: String,
    /// Part of each limit that a server takes in advance from Redis.
    pub lease: Option<LeaseText>,
    /// Limit of `TOKEN_BUCKET`.
    pub token_bucket: Option<TokenBucketOverride>,
    /// Limit of `SLIDING_WINDOW`.
    pub sliding_window: Option<WindowOverride>,
    /// Limit of `SLIDING_WINDOW_COUNTER`.
    pub sliding_window_counter: Option<WindowOverride>,
    /// Limit of `FIXED_WINDOW`.
    pub fixed_window: Option<WindowOverride>,
    /// Limit of `LEAKY_BUCKET`.
    pub leaky_bucket: Option<LeakyBucketOverride>,
}

/// Override of a token bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct TokenBucketOverride {
    /// Maximum number of tokens.
    pub capacity: Option<Units>,
    /// Tokens added per second.
    pub refill_rate: Option<Units>,
}

/// Override of a leaky bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct LeakyBucketOverride {
    /// Maximum level.
    pub capacity: Option<Units>,
    /// Units drained per second.
    pub leak_rate: Option<Units>,
}

/// Override of a fixed or sliding window.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct WindowOverride {
    /// Units admitted per window.
    pub max_requests: Option<Units>,
    /// Length of the window.
    pub window_size: Option<WindowSize>,
}

impl OverrideConfig {
    /// Reports an invalid or duplicate prefix, or a section without limits.
    pub(super) fn check(&self, before: &[Self]) -> Result<(), Problem> {
        let invalid = |message: &str| Err(Problem::new("prefix", message));
        match Key::new(&self.prefix) {
            Err(KeyError::Empty) => invalid("expected a text that is not empty"),
            Err(error) => {
                let error = error.to_string();
                invalid(&format!("no key begins with this: {error}"))
            }
            Ok(_) if before.iter().any(|other| other.prefix == self.prefix) => {
                invalid("another override has the same prefix")
            }
            Ok(_) if !KeyedAlgorithm::ALL.iter().any(|algorithm| self.overrides(*algorithm)) => {
                invalid("nothing is overridden: add a section such as token_bucket, or lease")
            }
            Ok(_) => Ok(()),
        }
    }

    /// Returns true if it overrides `algorithm`.
    pub(super) const fn overrides(&self, algorithm: KeyedAlgorithm) -> bool {
        if self.lease.is_some() {
            return true;
        }
        match algorithm {
            KeyedAlgorithm::TokenBucket => self.token_bucket.is_some(),
            KeyedAlgorithm::SlidingWindow => self.sliding_window.is_some(),
            KeyedAlgorithm::SlidingWindowCounter => self.sliding_window_counter.is_some(),
            KeyedAlgorithm::FixedWindow => self.fixed_window.is_some(),
            KeyedAlgorithm::LeakyBucket => self.leaky_bucket.is_some(),
        }
    }

    /// Applies the overrides to `base`.
    pub(super) fn over(&self, base: &Sizes) -> Sizes {
        let (token, leaky) = (base.token_bucket, base.leaky_bucket);
        Sizes {
            token_bucket: self.token_bucket.map_or(token, |changed| changed.over(token)),
            sliding_window: over(self.sliding_window, base.sliding_window),
            sliding_window_counter: over(self.sliding_window_counter, base.sliding_window_counter),
            fixed_window: over(self.fixed_window, base.fixed_window),
            leaky_bucket: self.leaky_bucket.map_or(leaky, |changed| changed.over(leaky)),
        }
    }
}

impl TokenBucketOverride {
    fn over(self, base: TokenBucketConfig) -> TokenBucketConfig {
        TokenBucketConfig {
            capacity: self.capacity.unwrap_or(base.capacity),
            refill_rate: self.refill_rate.unwrap_or(base.refill_rate),
        }
    }
}

impl LeakyBucketOverride {
    fn over(self, base: LeakyBucketConfig) -> LeakyBucketConfig {
        LeakyBucketConfig {
            capacity: self.capacity.unwrap_or(base.capacity),
            leak_rate: self.leak_rate.unwrap_or(base.leak_rate),
        }
    }
}

fn over(changed: Option<WindowOverride>, base: WindowConfig) -> WindowConfig {
    WindowConfig {
        max_requests: changed.and_then(|it| it.max_requests).unwrap_or(base.max_requests),
        window_size: changed.and_then(|it| it.window_size).unwrap_or(base.window_size),
    }
}

// === impl Print ===

print_sections! {
    OverrideConfig {
        prefix, lease, token_bucket, sliding_window, sliding_window_counter, fixed_window, leaky_bucket,
    }
    TokenBucketOverride { capacity, refill_rate }
    LeakyBucketOverride { capacity, leak_rate }
    WindowOverride { max_requests, window_size }
}
