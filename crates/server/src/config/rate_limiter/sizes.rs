use std::time::Duration;

use headgate::{Limit, LimitError};
use headgate_config::Problem;
use headgate_ratelimit::KeyedAlgorithm;

use super::{LeakyBucketConfig, TokenBucketConfig, Units, WindowConfig};

/// The limit of each algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) token_bucket: TokenBucketConfig,
    pub(super) sliding_window: WindowConfig,
    pub(super) sliding_window_counter: WindowConfig,
    pub(super) fixed_window: WindowConfig,
    pub(super) leaky_bucket: LeakyBucketConfig,
}

impl Sizes {
    /// Returns the limit of one algorithm; `section` is the key for error messages.
    pub(super) fn limit(&self, section: &str, algorithm: KeyedAlgorithm) -> Result<Limit, Problem> {
        let (token, leaky) = (self.token_bucket, self.leaky_bucket);
        let limit = match algorithm {
            KeyedAlgorithm::TokenBucket => bucket(algorithm, token.capacity, token.refill_rate),
            KeyedAlgorithm::LeakyBucket => bucket(algorithm, leaky.capacity, leaky.leak_rate),
            KeyedAlgorithm::SlidingWindow => window(algorithm, self.sliding_window),
            KeyedAlgorithm::SlidingWindowCounter => window(algorithm, self.sliding_window_counter),
            KeyedAlgorithm::FixedWindow => window(algorithm, self.fixed_window),
        };
        limit.map_err(|error| problem(section, algorithm, &error))
    }
}

fn bucket(algorithm: KeyedAlgorithm, capacity: Units, rate: Units) -> Result<Limit, LimitError> {
    let each_second = Limit::new(algorithm.engine(), rate.get(), Duration::from_secs(1))?;
    each_second.with_burst(capacity.get())
}

fn window(algorithm: KeyedAlgorithm, config: WindowConfig) -> Result<Limit, LimitError> {
    let window = Duration::from_secs(config.window_size.seconds());
    Limit::new(algorithm.engine(), config.max_requests.get(), window)
}

/// Names the key whose value is valid by itself, but not as part of the limit.
fn problem(section: &str, algorithm: KeyedAlgorithm, error: &LimitError) -> Problem {
    let (key, message) = match error {
        LimitError::BurstTooLarge => {
            let longest = Limit::MAX_WINDOW.as_secs();
            let message = format!(
                "a bucket of this size takes more than {longest} seconds to fill or to drain: \
                 lower it, or raise the rate"
            );
            ("capacity", message)
        }
        LimitError::TooLarge { max, got, .. } => {
            ("max_requests", format!("expected at most {max}, got {got}: each is remembered"))
        }
        other => ("max_requests", other.to_string()),
    };
    Problem::new(format!("{section}.{}.{key}", algorithm.engine()), message)
}
