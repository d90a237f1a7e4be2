use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use headgate_kafka::{PublishError, Publisher};
use headgate_testkit::free_port;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::support::{config, message};

/// On a busy machine, the client takes seconds to learn that nothing listens.
const TIMEOUT: Duration = Duration::from_secs(5);

/// On a single thread, whose ticks would stop if anything blocked.
#[tokio::test(flavor = "current_thread")]
async fn without_brokers_publishing_fails_in_time_without_blocking() {
    let mut config = config(&format!("127.0.0.1:{}", free_port()));
    config.send_timeout = TIMEOUT;
    let publisher = Arc::new(Publisher::new(&config).unwrap());
    let ticks = Arc::new(AtomicUsize::new(0));
    let ticker = tokio::spawn({
        let ticks = Arc::clone(&ticks);
        async move {
            loop {
                sleep(Duration::from_millis(10)).await;
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        }
    });

    let start = Instant::now();
    let mut tasks = JoinSet::new();
    // More than may be in flight.
    for _ in 0..1_100 {
        let publisher = Arc::clone(&publisher);
        tasks.spawn(async move { publisher.publish(message("t", "s", "p")).await.unwrap_err() });
    }
    let errors = tasks.join_all().await;
    let took = start.elapsed();
    ticker.abort();

    // Generous, because the machine may be busy. If a call blocked, there would be hardly a tick.
    assert!((TIMEOUT / 2..TIMEOUT * 20).contains(&took), "{took:?}");
    assert!(ticks.load(Ordering::Relaxed) > 5, "{ticks:?} ticks");
    assert!(errors.iter().all(PublishError::is_retryable));
    let is_away = |error: &&PublishError| match error {
        PublishError::Unavailable { reason } => reason.contains("Connection refused"),
        _ => false,
    };
    assert!(errors.iter().filter(is_away).count() >= 1_000, "{:?}", errors.first());
}
