//! DynamoDB goes away, hangs and comes back.

use std::time::Duration;

use headgate::StoreError;
use headgate_store_dynamodb::DynamoDbStore;
use headgate_testkit::{DynamoDb, require};
use tokio::time::Instant;

use crate::support::{acquire, config, cooldown};

const TIMEOUT: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_an_error_in_time_and_it_heals_by_itself() {
    let server = require!(DynamoDb::start());
    let place = config(&server.endpoint(), "rate-limits");
    let store = DynamoDbStore::connect(place.timeout(TIMEOUT));
    store.create_table().await.unwrap();
    let limit = cooldown();
    // The first call connects and starts what the server has not needed yet: it may take its time.
    while acquire(&store, &["warm"], &limit).await.is_err() {}

    server.stop();
    let began = Instant::now();
    for names in [&["k"][..], &["k", "l"]] {
        let error = acquire(&store, names, &limit).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
    assert!(began.elapsed() < 2 * TIMEOUT, "{:?}", began.elapsed());

    // It came back without its table.
    server.restart();
    let refused = async {
        loop {
            match acquire(&store, &["k"], &limit).await.unwrap_err() {
                error @ StoreError::Unavailable(_) => break error.to_string(),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(60), refused).await.unwrap();
    assert!(error.contains("ResourceNotFoundException"), "{error}");
    store.create_table().await.unwrap();
    while acquire(&store, &["warm"], &limit).await.is_err() {}
    assert!(acquire(&store, &["k"], &limit).await.unwrap()[0].allowed);

    server.pause();
    let began = Instant::now();
    let error = acquire(&store, &["k"], &limit).await.unwrap_err();
    let waited = began.elapsed();
    server.resume();
    assert!(matches!(error, StoreError::Timeout(TIMEOUT)), "{error}");
    assert!(waited >= TIMEOUT && waited < 2 * TIMEOUT, "{waited:?}");
}
