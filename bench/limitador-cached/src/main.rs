//! What four instances of limitador with its cached Redis admit of one limit: prints the number.
//!
//! `headgate-bench-limitador-cached REDIS_URL [REQUESTS_PER_MILLISECOND]`, as many requests as
//! possible without a number.

#![expect(clippy::print_stdout, reason = "the number is the product")]

use std::{collections::HashMap, env, error::Error, time::Duration};

use limitador::{
    AsyncRateLimiter,
    limit::{Context, Expression, Limit, Namespace},
    storage::redis::CachedRedisStorageBuilder,
};
use tokio::{
    task::JoinSet,
    time::{Instant, interval},
};

const INSTANCES: usize = 4;
const LIMIT: u64 = 20_000;
const LENGTH: Duration = Duration::from_secs(4);
/// No unit returns while it runs.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let url = arguments.next().ok_or("usage: headgate-bench-limitador-cached REDIS_URL [RATE]")?;
    let per_millisecond = arguments.next().map(|rate| rate.parse()).transpose()?;
    let mut instances = JoinSet::new();
    for _ in 0..INSTANCES {
        let instance = instance(&url).await?;
        instances.spawn(admitted(instance, per_millisecond));
    }
    println!("{}", instances.join_all().await.into_iter().sum::<u64>());
    Ok(())
}

/// An instance as limitador's server configures it: what was counted goes to Redis every second.
async fn instance(url: &str) -> Result<AsyncRateLimiter, Box<dyn Error>> {
    let storage = CachedRedisStorageBuilder::new(url).build().await?;
    let limiter = AsyncRateLimiter::new_with_storage(Box::new(storage));
    let variable = Expression::parse("user").expect("an identifier is an expression");
    limiter.add_limit(Limit::new("excess", LIMIT, WINDOW.as_secs(), [], [variable]));
    Ok(limiter)
}

/// Asks for one user, and returns how often that was admitted.
async fn admitted(limiter: AsyncRateLimiter, per_millisecond: Option<u64>) -> u64 {
    let namespace = Namespace::from("excess");
    let (mut ticks, end) = (interval(Duration::from_millis(1)), Instant::now() + LENGTH);
    let mut admitted = 0;
    while Instant::now() < end {
        match per_millisecond {
            Some(_) => _ = ticks.tick().await,
            None => tokio::task::yield_now().await,
        }
        for _ in 0..per_millisecond.unwrap_or(32) {
            let user = HashMap::from([("user".to_owned(), "excess".to_owned())]);
            let context = Context::from(user);
            let answer = limiter.check_rate_limited_and_update(&namespace, &context, 1).await;
            admitted += u64::from(!answer.expect("an answer").limited);
        }
    }
    admitted
}
