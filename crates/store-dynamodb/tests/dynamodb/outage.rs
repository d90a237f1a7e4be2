//! Outages of DynamoDB.

use std::time::Duration;

use headgate::StoreError;
use headgate_store_dynamodb::DynamoDbStore;
use headgate_testkit::{DynamoDb, require};
use tokio::time::{Instant, timeout};

use crate::support::{TEST_TIMEOUT, acquire, acquire_eventually, config, cooldown};

const TIMEOUT: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_an_error_in_time_and_recovers() {
    let server = require!(DynamoDb::start());
    let place = config(&server.endpoint(), "rate-limits");
    let store = DynamoDbStore::connect(place.clone());
    store.create_table().await.unwrap();
    let limit = cooldown();
    // The first calls connect and warm up the server, which takes a while.
    acquire_eventually(&store, "warm", &limit).await;

    server.stop();
    for names in [&["k"][..], &["k", "l"]] {
        let error = acquire(&store, names, &limit).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        // Not a timeout: it does not wait.
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }

    // It restarted without its table.
    server.restart();
    let refused = async {
        loop {
            let error = acquire(&store, &["k"], &limit).await.unwrap_err();
            if error.to_string().contains("ResourceNotFoundException") {
                break error;
            }
        }
    };
    let error = timeout(TEST_TIMEOUT, refused).await.expect("the server answers again");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    store.create_table().await.unwrap();
    acquire_eventually(&store, "warm", &limit).await;
    assert!(acquire(&store, &["k"], &limit).await.unwrap()[0].allowed);

    let hasty = DynamoDbStore::connect(place.timeout(TIMEOUT));
    acquire_eventually(&hasty, "warm too", &limit).await;
    server.pause();
    let began = Instant::now();
    let error = acquire(&hasty, &["k"], &limit).await.unwrap_err();
    let waited = began.elapsed();
    server.resume();
    assert!(matches!(error, StoreError::Timeout(TIMEOUT)), "{error}");
    assert!(waited >= TIMEOUT && waited < TEST_TIMEOUT, "{waited:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_an_outage_over_tls() {
    let server = require!(DynamoDb::shared());
    let endpoint = server.endpoint().replace("http://", "https://");
    let store = DynamoDbStore::connect(config(&endpoint, "rate-limits"));
    let error = acquire(&store, &["k"], &cooldown()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("InvalidContentType"), "{error}");
}
