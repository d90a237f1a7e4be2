use std::{collections::HashMap, hint::black_box};

use limitador::{
    RateLimiter,
    limit::{Context, Expression, Limit, Namespace},
};

use crate::{
    contestant::{Contestant, Quota},
    stream::Keys,
};

/// limitador's library, in memory: one limit with one variable, its simplest configuration.
///
/// It counts in fixed windows: `burst` per period admits as many as a full bucket does.
pub(crate) struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Limitador {
    pub(crate) fn new(quota: Quota, subjects: usize) -> Self {
        let limiter = RateLimiter::new(2 * subjects as u64);
        let variable = Expression::parse("user").expect("an identifier is an expression");
        let (max, seconds) = (quota.burst.into(), quota.period.as_secs());
        limiter.add_limit(Limit::new("bench", max, seconds, [], [variable]));
        Self { limiter, namespace: "bench".into() }
    }
}

impl Contestant for Limitador {
    fn decide(&self, keys: Keys<'_>, cost: u32) -> usize {
        let mut admitted = 0;
        for key in keys {
            let values = HashMap::from([("user".to_owned(), key.to_owned())]);
            let context = Context::from(values);
            let answer =
                self.limiter.check_rate_limited_and_update(&self.namespace, &context, cost.into());
            let answer = answer.expect("the expression evaluates");
            admitted += usize::from(!black_box(&answer).limited);
        }
        admitted
    }
}
