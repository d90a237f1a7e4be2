use std::{
    hint::black_box,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use throttlecrab::{PeriodicStore, RateLimiter};

use crate::{
    contestant::{Contestant, Quota},
    stream::Keys,
};

/// throttlecrab's library. Its limiter needs `&mut`, so threads share it behind a lock.
pub(crate) struct Throttlecrab {
    limiter: Mutex<RateLimiter<PeriodicStore>>,
    quota: Quota,
}

impl Throttlecrab {
    /// Longer than any run: the other stores, and shorter intervals, sweep the whole map at times.
    const CLEANUP_INTERVAL: Duration = Duration::from_hours(24);

    pub(crate) fn new(quota: Quota, subjects: usize) -> Self {
        let store = PeriodicStore::builder()
            .capacity(subjects)
            .cleanup_interval(Self::CLEANUP_INTERVAL)
            .build();
        Self { limiter: Mutex::new(RateLimiter::new(store)), quota }
    }
}

impl Contestant for Throttlecrab {
    #[expect(clippy::disallowed_methods, reason = "its API asks callers for the wall clock's time")]
    fn decide(&self, keys: Keys<'_>, cost: u32) -> usize {
        let Quota { count, period, burst } = self.quota;
        let (count, burst, cost) = (i64::from(count), i64::from(burst), i64::from(cost));
        let period = period.as_secs().cast_signed();
        let mut admitted = 0;
        for key in keys {
            let now = SystemTime::now();
            let answer = self.limiter.lock().rate_limit(key, burst, count, period, cost, now);
            let answer = answer.expect("valid parameters");
            admitted += usize::from(black_box(&answer).0);
        }
        admitted
    }
}
