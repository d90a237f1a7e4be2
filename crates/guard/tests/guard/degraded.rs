//! Decisions that the store could not make: the log and the observer have them.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{Clock, FailCause, FailMode, ManualClock, Timestamp};
use headgate_guard::{Backend, Guard, Rejections, Routes};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{CapturedLog, Redis, require};
use tower::{ServiceBuilder, ServiceExt as _};

use crate::support::{hello, public, request};

/// A guard on Redis, its observer, and the clock of its warnings.
struct Guarded {
    guard: Guard,
    rejections: Arc<Rejections>,
    clock: Arc<ManualClock>,
}

impl Guarded {
    fn new(backend: Backend) -> Self {
        let rejections = Arc::new(Rejections::default());
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        let backend = backend
            .observer(Arc::clone(&rejections) as _)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let guard = Guard::builder(public(100), Routes::all("public")).backend(backend);
        Self { guard: guard.build().unwrap(), rejections, clock }
    }

    async fn status(&self) -> u16 {
        let service = ServiceBuilder::new().layer(self.guard.layer()).service(hello());
        service.oneshot(request()).await.unwrap().status().as_u16()
    }

    fn degraded(&self) -> u64 {
        FailCause::ALL.into_iter().map(|cause| self.rejections.degraded_count(cause)).sum()
    }
}

/// A busy machine is not an outage.
const PATIENCE: Duration = Duration::from_secs(30);

fn patient(redis: &Redis) -> Arc<RedisStore> {
    let config = RedisConfig::from_url(&redis.url()).unwrap();
    Arc::new(RedisStore::connect(config.timeout(PATIENCE).connect_timeout(PATIENCE)))
}

/// The lines about degraded decisions.
fn warnings(log: &CapturedLog) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains("store failed to decide for the guard"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn an_outage_is_logged_every_ten_seconds_with_the_number_of_decisions() {
    let redis = require!(Redis::start());
    let guarded = Guarded::new(Backend::shared(patient(&redis), NonZeroU32::MIN));
    let log = CapturedLog::start("headgate_guard=trace");
    assert_eq!(guarded.status().await, 200);
    assert_eq!((log.text().as_str(), guarded.degraded()), ("", 0));

    redis.kill();
    for _ in 0..5 {
        assert_eq!(guarded.status().await, 200);
    }
    let lines = warnings(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    for field in ["WARN", "mode=local", "reason=\"unavailable\"", "answers=1"] {
        assert!(lines[0].contains(field), "{lines:?}");
    }
    guarded.clock.advance(Duration::from_secs(10));
    assert_eq!(guarded.status().await, 200);
    let lines = warnings(&log);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("answers=5"), "{lines:?}");
    assert_eq!(guarded.rejections.degraded_count(FailCause::Unavailable), 6);
    assert!(!log.text().contains("127.0.0.1"), "{}", log.text());
}

#[tokio::test]
async fn a_hanging_store_is_logged_as_a_timeout() {
    let redis = require!(Redis::start());
    let hasty = RedisConfig::from_url(&redis.url()).unwrap().timeout(Duration::from_millis(50));
    let hasty = RedisStore::connect(hasty);
    let guarded = Guarded::new(Backend::shared(Arc::new(hasty), NonZeroU32::MIN));
    let log = CapturedLog::start("headgate_guard=warn");
    assert_eq!(guarded.status().await, 200);
    redis.pause();
    let logged = async {
        while !warnings(&log).iter().any(|line| line.contains("reason=\"timeout\"")) {
            guarded.clock.advance(Duration::from_secs(10));
            guarded.status().await;
            // The circuit breaker lets one call through every half second.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let logged = tokio::time::timeout(PATIENCE * 4, logged).await;
    assert!(logged.is_ok(), "{}", log.text());
    assert!(guarded.rejections.degraded_count(FailCause::Timeout) > 0);
}

#[tokio::test]
async fn a_store_without_a_failure_policy_is_logged_too() {
    let redis = require!(Redis::start());
    redis.kill();
    for (mode, name, status) in [(FailMode::Open, "open", 200), (FailMode::Local, "closed", 429)] {
        let backend = Backend::on(patient(&redis)).fail_mode(mode);
        let guarded = Guarded::new(backend);
        let log = CapturedLog::start("headgate_guard=warn");
        for _ in 0..3 {
            assert_eq!(guarded.status().await, status, "{mode}");
        }
        let lines = warnings(&log);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("mode={name}")), "{lines:?}");
        assert_eq!(guarded.degraded(), 3);
    }
}
