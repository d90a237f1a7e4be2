//! Refill and reset times, on a Redis whose clock the test advances.

use std::time::Duration;

use headgate_testkit::{Redis, require};

use super::{ALGORITHMS, backend::Backend, counted, number};
use crate::harness::{Reply, Server};

/// 2026-02-20T10:00:00Z: a minute begins.
const START: u64 = 1_771_581_600;

/// A server and its Redis.
struct Bench {
    server: Server,
    backend: Backend,
}

impl Bench {
    async fn new(redis: Redis) -> Self {
        let backend = Backend::redis(redis);
        Self { server: backend.serve(&[]).await, backend }
    }

    /// The answer of Redis: a denial is remembered for a moment, by a clock that is not moved.
    async fn check(&self, algorithm: &str, permits: u64) -> Reply {
        let query = format!("algorithm={algorithm}&key=user:123&permits={permits}");
        loop {
            let reply = self.server.check_key(&query).await;
            if reply.header("x-ratelimit-leased") != "true" {
                return reply;
            }
        }
    }

    fn advance(&self, by: Duration) {
        let Backend::Redis(redis) = &self.backend else { panic!("a clock that can be moved") };
        redis.clock().advance(by);
    }
}

fn redis() -> Result<Redis, headgate_testkit::Skip> {
    Redis::builder().fake_clock(START * 1_000_000).start()
}

/// Algorithm, `Retry-After` of one permit, and seconds to full recovery after a hundred permits.
const EXHAUSTED: [(&str, u64, u64); 5] = [
    ("TOKEN_BUCKET", 1, 10),
    ("SLIDING_WINDOW", 60, 60),
    ("SLIDING_WINDOW_COUNTER", 61, 120),
    ("FIXED_WINDOW", 60, 60),
    ("LEAKY_BUCKET", 1, 10),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_are_admitted_and_the_next_gets_retry_after() {
    let bench = Bench::new(require!(redis())).await;
    for (algorithm, retry, reset) in EXHAUSTED {
        for left in (0..100).rev() {
            let reply = bench.check(algorithm, 1).await;
            assert_eq!((reply.status.as_u16(), number(&reply, "remaining")), (200, left));
        }
        let reply = bench.check(algorithm, 1).await;
        assert_eq!(reply.status, 429, "{algorithm}");
        assert_eq!(number(&reply, "remaining"), 0);
        assert_eq!(counted(&reply, "x-ratelimit-remaining"), 0);
        assert_eq!(number(&reply, "resetAfterSeconds"), reset, "{algorithm}");
        assert_eq!(counted(&reply, "x-ratelimit-reset"), START + reset, "{algorithm}");
        assert_eq!(number(&reply, "retryAfterSeconds"), retry, "{algorithm}");
        assert_eq!(counted(&reply, "retry-after"), retry, "{algorithm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bucket_refills_ten_per_second() {
    let bench = Bench::new(require!(redis())).await;
    for algorithm in ["TOKEN_BUCKET", "LEAKY_BUCKET"] {
        assert_eq!(bench.check(algorithm, 100).await.status, 200);
        bench.advance(Duration::from_micros(99_999));
        assert_eq!(bench.check(algorithm, 1).await.status, 429, "{algorithm}");
        bench.advance(Duration::from_micros(1));
        assert_eq!(bench.check(algorithm, 1).await.status, 200, "{algorithm}");
        assert_eq!(bench.check(algorithm, 1).await.status, 429, "{algorithm}");

        // Twenty permits are available after two seconds, not after one.
        let denied = bench.check(algorithm, 20).await;
        assert_eq!(number(&denied, "retryAfterSeconds"), 2);
        bench.advance(Duration::from_secs(2));
        assert_eq!(bench.check(algorithm, 20).await.status, 200, "{algorithm}");
        bench.advance(Duration::from_secs(1000));
        assert_eq!(number(&bench.check(algorithm, 1).await, "remaining"), 99, "{algorithm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_allows_no_burst_at_a_boundary() {
    let bench = Bench::new(require!(redis())).await;
    bench.advance(Duration::from_secs(59));
    assert_eq!(bench.check("SLIDING_WINDOW", 60).await.status, 200);
    assert_eq!(bench.check("FIXED_WINDOW", 100).await.status, 200);
    bench.advance(Duration::from_secs(1));
    assert_eq!(bench.check("SLIDING_WINDOW", 40).await.status, 200);
    // A fixed window starts with the minute; a sliding one admits a hundred in any minute.
    assert_eq!(bench.check("FIXED_WINDOW", 100).await.status, 200);
    let denied = bench.check("SLIDING_WINDOW", 1).await;
    assert_eq!((denied.status.as_u16(), number(&denied, "retryAfterSeconds")), (429, 59));
    let denied = bench.check("SLIDING_WINDOW", 61).await;
    assert_eq!(number(&denied, "retryAfterSeconds"), 60);

    bench.advance(Duration::from_micros(58_999_999));
    assert_eq!(bench.check("SLIDING_WINDOW", 1).await.status, 429);
    bench.advance(Duration::from_micros(1));
    assert_eq!(number(&bench.check("SLIDING_WINDOW", 60).await, "remaining"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_retry_after_is_admitted() {
    let bench = Bench::new(require!(redis())).await;
    for algorithm in ALGORITHMS {
        assert_eq!(bench.check(algorithm, 100).await.status, 200);
        for permits in [1, 7, 50, 100] {
            let reply = bench.check(algorithm, permits).await;
            if reply.status == 429 {
                bench.advance(Duration::from_secs(counted(&reply, "retry-after")));
                let reply = bench.check(algorithm, permits).await;
                assert_eq!(reply.status, 200, "{algorithm} {permits}: {}", reply.text);
            }
        }
    }
}
