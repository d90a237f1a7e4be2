use std::{hint::black_box, num::NonZeroU32};

use governor::{DefaultKeyedRateLimiter, RateLimiter};

use crate::{
    contestant::{Contestant, Quota},
    stream::Keys,
};

/// governor's keyed limiter as in its documentation: a `DashMap`, no middleware.
pub(crate) struct Governor(DefaultKeyedRateLimiter<String>);

impl Governor {
    pub(crate) fn new(quota: Quota) -> Self {
        let burst = NonZeroU32::new(quota.burst).expect("a burst");
        let quota = governor::Quota::with_period(quota.period / quota.count).expect("a period");
        Self(RateLimiter::dashmap(quota.allow_burst(burst)))
    }
}

impl Contestant for Governor {
    fn decide(&self, keys: Keys<'_>, cost: u32) -> usize {
        // Lookups need a `&String`. One buffer for all requests is the cheapest way to provide it;
        // a new key is copied.
        let mut key = String::new();
        let mut admitted = 0;
        for text in keys {
            key.clear();
            key.push_str(text);
            let allowed = match NonZeroU32::new(cost) {
                // The call for one cell is faster than that for n.
                None | Some(NonZeroU32::MIN) => black_box(&self.0.check_key(&key)).is_ok(),
                Some(cost) => matches!(black_box(&self.0.check_key_n(&key, cost)), Ok(Ok(()))),
            };
            admitted += usize::from(allowed);
        }
        admitted
    }
}
